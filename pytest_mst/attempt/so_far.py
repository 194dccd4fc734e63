"""What an attempt has come to while it is under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_mst.attempt.direct import unlisted_calls
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.live_steps import LiveFacts
from pytest_mst.attempt.retry import Away
from pytest_mst.attempt.shared_connection import Share
from pytest_mst.clients.client import TraceLog
from pytest_mst.domain.attempt import Try
from pytest_mst.domain.ending import Ending, Trial
from pytest_mst.domain.failure_class import FailurePhase
from pytest_mst.domain.write import ServerTools, WriteEntry
from pytest_mst.grading.attribution import NO_DOUBT, Doubt
from pytest_mst.proxy.record import ObservedCall


@dataclass(slots=True)
class SoFar:
    """What an attempt has come to, kept outside of it so that a cut leaves what there was."""

    log: TraceLog
    entries: list[WriteEntry] = field(default_factory=list)
    calls: list[ObservedCall] = field(default_factory=list)
    tries: list[Try] = field(default_factory=list)
    phase: FailurePhase = "setup"
    error: BaseException | None = None
    """What was raised last, where the attempt broke."""
    live: LiveFacts = field(default_factory=LiveFacts)
    """What came of our own calls around the client."""
    share: Share | None = None
    """Of a connection that others use too, until it is taken."""
    doubt: Doubt = NO_DOUBT
    """What nobody knows of the record of such a connection."""
    direct: Mapping[str, ServerTools] = field(default_factory=dict)
    """What the servers that the client connects to itself listed before it acted, by label."""

    async def share_known(self, ending: Ending, away: Away) -> None:
        """Wait, where attempts share a connection, until it is known what came from this one.

        What is no trial is graded by nobody, and takes what it can have by now.

        Raises:
            StoreError: it cannot be stored.

        """
        if self.share is not None and isinstance(ending, Trial):
            await self.share.all_known(away)
        self.take_share()

    def take_share(self) -> None:
        """Take what came over a shared connection and is known to be this attempt's, once.

        Raises:
            StoreError: it cannot be stored.

        """
        share, self.share = self.share, None
        if share is not None:
            self.entries, self.doubt = share.take()

    def checked(self, job: AttemptJob, ending: Ending) -> Ending:
        """Return how an attempt ended, once its calls past the boundary were looked at."""
        if not self.direct or not isinstance(ending, Trial):
            return ending
        seen = frozenset(call.tool for call in self.calls)
        return unlisted_calls(job, self.log, self.direct, seen) or ending

    @classmethod
    def before(cls, job: AttemptJob, tries: list[Try] | None = None) -> SoFar:
        """Return what an attempt has come to before it begins: nothing.

        Args:
            job: the attempt.
            tries: where its waits will be noted; a list of its own by default.

        """
        log = TraceLog(servers=tuple(job.target.servers))
        return cls(log, tries=[] if tries is None else tries)
