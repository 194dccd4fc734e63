"""Attempts whose client has one connection for all of them: what is recorded, and whose it is."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial

from pytest_mst.attempt.job import AttemptJob, Target
from pytest_mst.attempt.retry import Away
from pytest_mst.clients.limits import Limits
from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure, Scope
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.trace import Trace
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.grading.attribution import Attribution, Doubt, attribute
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.shared_boundary import Part, SharedBoundary
from pytest_mst.store.append import RunWriter
from pytest_mst.store.connection_file import ConnectionFile

NOT_FROM_A_BODY = InfrastructureFailure(
    Broke.SETUP,
    "the client has one connection for all its attempts, so that what one of them wrote is known "
    "only when those beside it have ended: let the test take the finished `trial` instead of "
    "`mst.run`, or use another client",
    retryable=False,
    accepted=False,
)
"""How an attempt ends whose client a test body was to run."""


class SharedConnection:
    """One connection, opened for the first attempt that needs it and kept until the hub closes.

    Attempts end in some order, and in that order they take what their traces claim. What an
    attempt has taken stays its own; see `attribute`.
    """

    def __init__(self, target: Target, boundary: SharedBoundary, file: ConnectionFile) -> None:
        self.boundary = boundary
        self._target = target
        self._file = file
        self._traces: dict[Part, Trace | None] = {}
        """Of the attempts that have ended, in the order in which they did."""
        self._open: set[Part] = set()
        """The attempts whose record is not settled."""
        self._owners: dict[int, Part] = {}
        self._ends = 0
        self._known: tuple[tuple[int, int], Attribution[Part]] | None = None
        """The last attribution, and how many attempts had ended and entries there were then."""

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, target: Target, hub: Hub, writer: RunWriter
    ) -> AsyncIterator[SharedConnection]:
        """Open the connection of a variant."""
        connection_id = "mstc" + secrets.token_hex(6)
        file = writer.connection_file(target.variant, connection_id)
        boundary = SharedBoundary(file.record, connection_id)
        try:
            async with hub.open_boundary(boundary, target.servers):
                yield cls(target, boundary, file)
        finally:
            file.close()

    def begin(self, job: AttemptJob, writer: RunWriter) -> Share:
        """Let an attempt begin."""
        part = self.boundary.begin(job.id)
        self._open.add(part)
        return Share(self, part, writer)

    def end(self, part: Part, trace: Trace) -> None:
        """Take an attempt's trace once its client is done with the connection."""
        self._traces[part] = trace
        self._ends += 1
        part.leave()

    def attribution(self) -> Attribution[Part]:
        """Give what was recorded to the attempts that have ended, as far as that is known."""
        now = (self._ends, self.boundary.recorded_in_all)
        if self._known is None or self._known[0] != now:
            found = attribute(
                self._traces,
                self.boundary.recorded,
                self._target.tools_behind_proxy,
                self._owners,
            )
            self._owners.update(found.owners)
            self._known = (now, found)
        return self._known[1]

    def give(self, entries: Sequence[WriteEntry], part: Part) -> None:
        """Note in the connection's file whose entries are."""
        self._file.give(entries, part.attempt)

    def settled(self, part: Part) -> None:
        """Let go of what no attempt has to be told any more."""
        self._open.discard(part)
        kept = [one for one in self.boundary.recorded if self._open & one.under_way]
        needed = self._open.union(*(one.under_way for one in kept))
        seqs = {one.entry.seq for one in kept}
        self.boundary.recorded[:] = kept
        self._traces = {one: trace for one, trace in self._traces.items() if one in needed}
        self._owners = {seq: owner for seq, owner in self._owners.items() if seq in seqs}


class Share:
    """One attempt's share of a connection."""

    def __init__(self, connection: SharedConnection, part: Part, writer: RunWriter) -> None:
        self._connection = connection
        self.part = part
        self._writer = writer

    async def all_known(self, away: Away) -> None:
        """Wait until it is known which entries are the attempt's.

        Args:
            away: entered meanwhile: those who are waited for may need the place.

        """
        if not self.part.is_known:
            async with away():
                await self.part.all_known()

    def take(self) -> tuple[list[WriteEntry], Doubt]:
        """Store what is known to be the attempt's by now, and return it.

        Raises:
            StoreError: it cannot be stored.

        """
        found = self._connection.attribution()
        given = found.given.get(self.part, ())
        own = [replace(entry, seq=seq) for seq, entry in enumerate(given)]
        try:
            with self._writer.write_sink(self.part.attempt) as sink:
                for entry in own:
                    sink(entry)
            self._connection.give(given, self.part)
            return own, found.doubt(self.part)
        finally:
            self._connection.settled(self.part)


async def begin_shared(
    job: AttemptJob, hub: Hub, writer: RunWriter
) -> tuple[SharedConnection, Share]:
    """Let an attempt begin on its variant's connection; whoever does ends it there.

    Raises:
        InfrastructureError: the connection cannot be opened, or not be shared.

    """
    check_can_share(job)
    key = (str(writer.layout.run_dir), job.target.variant)
    opened = partial(SharedConnection.opened, job.target, hub, writer)
    connection: SharedConnection = await hub.kept.get(key, opened)
    return connection, connection.begin(job, writer)


def check_can_share(job: AttemptJob) -> None:
    """Refuse what cannot be kept where nothing tells whose a call is.

    Raises:
        InfrastructureError: the attempt cannot be made.

    """
    name = job.target.client.name
    why = f"the attempts of client {name!r} share one connection"
    with suppress(OptionsError):  # the client's own run says what is wrong with them
        if Limits.of(job.options).calls is not None:
            reason = f"{why}, so that nobody can count the calls of one; take maxToolCalls out"
            raise InfrastructureError(Broke.SETUP, reason, retryable=False, scope=Scope.CASE)
    for label, server in job.target.servers.items():
        if server.mode is WriteMode.LIVE:
            reason = f"{why}, so that server {label!r} cannot be live; use writes: planned"
        elif server.isolation == "attempt":
            reason = f"{why}; server {label!r} is to have one for each: take its isolation out"
        else:
            continue
        raise InfrastructureError(Broke.SETUP, reason, retryable=False, scope=Scope.VARIANT)
