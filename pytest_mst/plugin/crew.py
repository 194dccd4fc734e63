"""The loop's side of the engine: makes attempts, first come, first served, several at once."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections import deque
from collections.abc import Iterable

import anyio

from pytest_mst.attempt.again import make
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.plugin.places import Places
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter

CUT_SHORT_BOUND_S = 15.0
"""How long attempts that are cut short may take to say so."""


class Order:
    """An attempt to make, where it is written, and what waits for it."""

    __slots__ = ("attempt", "future", "rules", "scope", "writer")

    def __init__(self, attempt: AttemptJob, writer: RunWriter, rules: RunRules = NO_RULES) -> None:
        self.attempt = attempt
        self.writer = writer
        self.rules = rules
        self.future: concurrent.futures.Future[FinishedAttempt | None] = concurrent.futures.Future()
        """`None`: the crew was stopped before the attempt began."""
        self.scope: anyio.CancelScope | None = None
        """While it is under way."""


class Crew:
    """Works off orders in the event loop that `serve` runs in."""

    def __init__(self, hub: Hub, size: int) -> None:
        """Make a crew, in the event loop that it is to work in.

        Args:
            hub: the servers' connections.
            size: attempts under way at once.

        """
        self._hub = hub
        self._waiting: deque[Order] = deque()
        self._places = Places(size, self._begin_next)
        self._workers = 0
        self._stopped = False
        self._loop = asyncio.get_running_loop()
        self._ended = False
        self._wake = asyncio.Event()
        """Set when there may be somebody to begin, or it is to end."""
        self._idle = anyio.Event()
        """Set when no attempt is under way any more."""
        self._tasks = anyio.create_task_group()

    async def serve(
        self, *, task_status: anyio.abc.TaskStatus[Crew] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Work until `end` is called."""
        async with self._tasks:
            task_status.started(self)
            while not self._ended:
                await self._wake.wait()
                self._wake.clear()  # first: what comes from now on wakes it again
                self._begin_next()
            self._tasks.cancel_scope.cancel()

    def take(self, orders: Iterable[Order]) -> None:
        """Take orders in; from any thread."""
        self._loop.call_soon_threadsafe(self._enqueue, list(orders))

    def _enqueue(self, orders: list[Order]) -> None:
        if self._stopped:
            for order in orders:
                order.future.set_result(None)
            return
        self._waiting.extend(orders)
        self._wake.set()  # a callback of the loop is no task, and cannot start one

    def _begin_next(self) -> None:
        """Let somebody work in each free place, as far as there are orders."""
        for _ in range(min(self._places.free, len(self._waiting))):
            self._places.take()
            if not self._workers:
                self._idle = anyio.Event()
            self._workers += 1
            self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        """Work off the next order, if none has taken it meanwhile; then whoever is next is."""
        try:
            if self._waiting:
                await self._one(self._waiting.popleft())
        finally:
            self._places.leave()
            self._workers -= 1
            if not self._workers:
                self._idle.set()

    async def _one(self, order: Order) -> None:
        if self._stopped:
            order.future.set_result(None)
            return
        with anyio.CancelScope() as order.scope:
            try:
                finished = await make(
                    order.attempt, self._hub, order.writer, order.rules, away=self._places.away
                )
            except BaseException as error:  # around one attempt: the others go on, this one tells
                order.future.set_exception(error)
                if not isinstance(error, Exception) and self._stopped:
                    raise  # cut short; else whoever waits behind it would wait for ever
                return
            order.future.set_result(finished)

    def give_up(self, order: Order) -> None:
        """Cut one attempt short, or do not begin it; from any thread."""
        self._loop.call_soon_threadsafe(self._let_go, order)

    def _let_go(self, order: Order) -> None:
        if order in self._waiting:
            self._waiting.remove(order)
            order.future.set_result(None)
        elif order.scope is not None and not order.future.done():
            order.scope.cancel()

    def stop(self) -> None:
        """Begin no other attempt; from any thread."""
        self._stopped = True

    async def cut_short(self) -> None:
        """Cancel the attempts under way; return when each has said so, within a bound."""
        self._stopped = True
        for order in self._waiting:
            order.future.set_result(None)
        self._waiting.clear()
        self._tasks.cancel_scope.cancel()
        if self._workers:
            with anyio.move_on_after(CUT_SHORT_BOUND_S):
                await self._idle.wait()

    async def end(self) -> None:
        """Stop working."""
        self._ended = True
        self._wake.set()


async def serve_crew(
    hub: Hub, size: int, *, task_status: anyio.abc.TaskStatus[Crew] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Make a crew in the running event loop, hand it out, and let it work."""
    await Crew(hub, size).serve(task_status=task_status)
