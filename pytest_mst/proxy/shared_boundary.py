"""One boundary that several attempts use at once, through one connection of their client's.

Nothing in a call says whose it is. So this keeps, of each call that was recorded, the attempts
that were under way meanwhile; who reads their traces can then tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.shared_entry import SharedEntry
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.write import WriteEntry
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.gate import Gate
from pytest_mst.proxy.json_rpc import CONNECTION_CLOSED, OnProgress, Params
from pytest_mst.proxy.record import CallRecord

_begun: ContextVar[list[int]] = ContextVar("_begun")
"""The numbers of the calls that the call being taken has begun: one, once it is let in."""


@dataclass(eq=False, slots=True)
class Part:
    """One attempt's part in a shared boundary."""

    attempt: AttemptId
    boundary: SharedBoundary
    lost: InfrastructureError | None = None
    """Why the attempt cannot go on, where it cannot."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    _others: tuple[Part, ...] = ()
    """Those that were under way when it ended."""
    _calls: tuple[_Flight, ...] = ()
    """The calls that were, and may be its own."""

    @property
    def taken(self) -> int:
        """How many calls the boundary took, of whomever."""
        return self.boundary.taken

    def leave(self) -> None:
        """End the attempt's part: calls that come now are not its own."""
        self._others, self._calls = self.boundary.ended(self)
        self.ended.set()

    @property
    def is_known(self) -> bool:
        """Whether there is nothing to wait for; see `all_known`."""
        return all(other.ended.is_set() for other in self._others) and all(
            flight.done.is_set() for flight in self._calls
        )

    async def all_known(self) -> None:
        """Wait until nothing can come any more that may be this attempt's.

        That is when the attempts that were under way as it ended have ended, and the calls that
        were have been answered. Those that began since are not waited for.
        """
        for other in self._others:
            await other.ended.wait()
        for flight in self._calls:
            await flight.done.wait()


@dataclass(eq=False, slots=True)
class _Flight:
    """A call that has not been answered yet."""

    under_way: set[Part]
    done: anyio.Event = field(default_factory=anyio.Event)


class _SharedRecord(CallRecord):
    """The record of a connection that lives long: of answered calls no more stays than who called.

    Entries go to the sink, and stay with whoever that is.
    """

    def __init__(self, sink: Callable[[WriteEntry], None], on_begin: Callable[[int], None]) -> None:
        super().__init__(sink)
        self._on_begin = on_begin

    def begin(self, server: str, tool: str, arguments: object, join_id: str | None) -> int:
        number = super().begin(server, tool, arguments, join_id)
        self._on_begin(number)
        return number

    def forget(self, call: int) -> None:
        """Let go of what a call was about; it was answered."""
        self.calls[call] = replace(self.calls[call], arguments={}, result=None)


class SharedBoundary(Boundary):
    """The servers of a variant, as the one connection of its client sees them.

    It takes calls while an attempt is under way. What makes it impossible for an attempt to go
    on is told to those that are under way, and to no later one.
    """

    def __init__(self, sink: Callable[[WriteEntry], None], connection_id: str) -> None:
        """Make a boundary that no attempt has used.

        Args:
            sink: stores an entry before it returns; raises `StoreError` or `OSError` where it
                cannot.
            connection_id: what `{{trial.id}}` stands for in the templates of simulated replies.

        """
        self._shared_record = _SharedRecord(self._keep, self._call_begun)
        super().__init__(self._shared_record, connection_id)
        self._store = sink
        self._under_way: dict[Part, None] = {}
        self._flights: dict[int, _Flight] = {}
        self._parts_so_far = 0
        self.recorded: list[SharedEntry[Part]] = []
        """The entries so far, but for those that were let go."""
        self.recorded_in_all = 0

    def begin(self, attempt: AttemptId) -> Part:
        """Let an attempt begin."""
        part = Part(attempt, self)
        self._under_way[part] = None
        self._parts_so_far += 1
        for flight in self._flights.values():
            flight.under_way.add(part)
        return part

    def ended(self, part: Part) -> tuple[tuple[Part, ...], tuple[_Flight, ...]]:
        """Take an attempt out of those under way; return what its own record still waits for."""
        del self._under_way[part]
        flights = tuple(one for one in self._flights.values() if part in one.under_way)
        return tuple(self._under_way), flights

    def lose(self, error: InfrastructureError) -> None:
        """Take note that no attempt under way can go on; the first reason counts for each."""
        for part in self._under_way:
            if part.lost is None:
                part.lost = error

    async def call(
        self,
        gate: Gate,
        params: Params,
        join_id: str | None,
        *,
        own: bool = False,
        stamp: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Mapping[str, Any]:
        """Take one `tools/call`; see `Boundary.call`."""
        begun: list[int] = []
        token = _begun.set(begun)
        try:
            return await super().call(
                gate, params, join_id, own=own, stamp=stamp, on_progress=on_progress
            )
        finally:
            _begun.reset(token)
            for number in begun:
                self._shared_record.forget(number)
                flight = self._flights.pop(number, None)
                if flight is not None:
                    flight.done.set()

    def _call_begun(self, number: int) -> None:
        _begun.get().append(number)
        self._flights[number] = _Flight(set(self._under_way))

    def _keep(self, entry: WriteEntry) -> None:
        self._store(entry)
        under_way = frozenset(self._flights[entry.call_seq].under_way)
        sole = len(under_way) == self._parts_so_far == 1
        self.recorded.append(SharedEntry(entry, under_way, sole))
        self.recorded_in_all += 1

    async def _admit(self) -> None:
        await super()._admit()
        if not self._under_way:
            raise ToolCallError(CONNECTION_CLOSED, "No attempt is under way")
