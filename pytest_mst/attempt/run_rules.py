"""What the attempts of one run have in common: when to stop, when to try again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pytest_mst.attempt.budget import Budget
from pytest_mst.attempt.classify import Classify, classified
from pytest_mst.attempt.direct import DirectListings
from pytest_mst.attempt.gates import Gates
from pytest_mst.attempt.judge_asking import AskJudge, ModelAsking
from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.domain.ending import InfrastructureFailure, Scope
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.failure_class import FailurePhase
from pytest_mst.domain.run import AttemptId, locator, utc_text
from pytest_mst.domain.stop import Stop
from pytest_mst.store.backoff import Backoffs


@dataclass(frozen=True, slots=True)
class RunRules:
    """The rules of one run, the same for every attempt; the defaults have none."""

    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """How often an attempt is tried, and how long it waits in between."""
    backoffs: Backoffs | None = None
    """The endpoints that are to be left alone; `None` where attempts tell each other nothing."""
    run_id: str = ""
    gates: Gates | None = None
    """Which attempts are not to begin; `None` where none is ever stopped."""
    classify: Classify | None = None
    """Asked what a failure means; `None` where its producer's word is enough."""
    ask_judge: AskJudge = field(default_factory=ModelAsking)
    """Asks the models of judges."""
    budget: Budget | None = None
    """What the session's models may cost; `None`: whatever they do."""
    listings: DirectListings | None = None
    """Of the servers that clients connect to themselves; `None`: listed for each attempt."""

    def is_stopped(self, attempt: AttemptId) -> bool:
        """Tell whether an attempt that has not begun is to stay unstarted."""
        if self.gates is None:
            return False
        spent = None if self.budget is None else self.budget.why_stopped
        if spent is not None:
            self.stop(attempt, Scope.RUN, spent)
        return self.gates.is_closed(attempt)

    def stop(self, attempt: AttemptId, scope: Scope, reason: str) -> None:
        """Close the gate of a scope around an attempt that met a reason to; none for a trial's.

        Args:
            attempt: which one.
            scope: how far the reason reaches.
            reason: what happened, in one line for people.

        """
        if self.gates is None or scope is Scope.TRIAL:
            return
        at = utc_text(datetime.now(UTC))
        with suppress(StoreError):  # closed here; the attempt's own record meets the same trouble
            self.gates.close(Stop.met(attempt, scope, reason, locator(self.run_id, attempt), at))

    def judged(
        self,
        attempt: AttemptId,
        failure: InfrastructureFailure,
        phase: FailurePhase,
        error: BaseException | None,
    ) -> InfrastructureFailure:
        """Settle what ended an attempt: the classifier is asked, then a gate closed if need be.

        Args:
            attempt: which one.
            failure: as its producer said it.
            phase: where the attempt broke.
            error: what was raised, if anything was.

        """
        failure = self.heard(failure, phase, error)
        self.stop(attempt, failure.scope, failure.reason)
        return failure

    def heard(
        self, failure: InfrastructureFailure, phase: FailurePhase, error: BaseException | None
    ) -> InfrastructureFailure:
        """Return a failure as it is once the classifier was asked; no gate is closed."""
        if self.classify is None:
            return failure
        return classified(failure, phase, error, self.classify)


NO_RULES = RunRules()
"""For attempts that are of no run that could be stopped or wait."""
