"""The engine: makes attempts ahead of pytest's loop, several at once, in one background loop.

All bookkeeping is on pytest's thread; the loop's thread only runs tasks. (A lock shared with
done-callbacks can deadlock: starting a task waits for the loop's thread.)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import anyio
import anyio.from_thread
import pytest

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.load_check import check_evals
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.started_servers import started_labels
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.run import AttemptId
from pytest_mst.plugin.crew import CUT_SHORT_BOUND_S, Crew, Order, serve_crew
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.started import StartedPrograms
from pytest_mst.proxy.upstream_spec import UpstreamSpec

_T = TypeVar("_T")

JobKey: TypeAlias = tuple[str, AttemptId]
"""Run id and attempt."""

_MODELS = "pytest_mst.providers.model"
"""Has connections to model APIs open once it was imported; not before."""
_TICK_S = 0.5
_CLOSE_BOUND_S = 2.0
"""How long the loop of an interrupted session may take to end."""


@dataclass(frozen=True, slots=True)
class Job:
    """An attempt to make, known by its key until it is asked for."""

    key: JobKey
    make: Callable[[], Order]


class Engine:
    """Runs attempts in a background event loop; one per process."""

    def __init__(self, concurrency: int, on_wait: Callable[[], None]) -> None:
        """Make an engine that is not yet started.

        Args:
            concurrency: attempts under way at once in this process.
            on_wait: called on pytest's thread, about twice a second while it waits.

        """
        self.set_concurrency(concurrency)
        self.upcoming: Callable[[], Iterator[Job]] = lambda: iter(())
        """The attempts that pytest's loop will ask for next, in its order."""
        self.cut_body_short: Callable[[], None] | None = None
        """Cuts short the attempt whose client a test body runs, while there is one."""
        self.allow_live = False
        """Whether servers may be live."""
        self._on_wait = on_wait
        self._orders: dict[JobKey, Order] = {}
        """Of the attempts that were ordered and not yet handed out."""
        self._asked_for: set[JobKey] = set()
        self._stopped = False
        self._held_up = False
        """Attempts under way were to be cut short, and have not said yet that they were."""
        self._stack = ExitStack()
        self._connections = ExitStack()
        self._portal: anyio.from_thread.BlockingPortal | None = None
        self._hub: Hub | None = None
        self._programs: StartedPrograms | None = None
        self._crew: Crew | None = None

    def set_concurrency(self, concurrency: int) -> None:
        """Say how many attempts are under way at once; before the first."""
        self.concurrency = concurrency
        self.ahead = 2 * concurrency
        """How many attempts may be queued, under way, or ended and not yet asked for."""

    @property
    def portal(self) -> anyio.from_thread.BlockingPortal:
        """The way into the background loop, which is started at the first use."""
        if self._portal is None:
            self._portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        return self._portal

    @property
    def hub(self) -> Hub:
        """The servers' connections; they live in the background loop."""
        if self._hub is None:
            opened = self.portal.wrap_async_context_manager(Hub())
            self._hub = self._connections.enter_context(opened)
        return self._hub

    @property
    def programs(self) -> StartedPrograms:
        """The programs that servers have, started by this process; ended after the connections."""
        if self._programs is None:
            entered = self.portal.wrap_async_context_manager(StartedPrograms())
            self._programs = self._stack.enter_context(entered)
        return self._programs

    @property
    def crew(self) -> Crew:
        """Whoever makes the attempts in the background loop."""
        if self._crew is None:
            _, self._crew = self.portal.start_task(serve_crew, self.hub, self.concurrency)
        return self._crew

    @property
    def is_held_up(self) -> bool:
        """Whether a client that will not end may keep the background loop from anything else."""
        return self._held_up

    def call(self, function: Callable[..., Awaitable[_T]], *args: Any) -> _T:
        """Run an async function in the background loop and wait for it."""
        return self.portal.call(function, *args)

    def load_check(
        self,
        evals: Mapping[Path, tuple[LoadedEval, Sequence[Variant]]],
        objects: Mapping[str, object] = MappingProxyType({}),
        *,
        start: bool = False,
    ) -> dict[Path, PreparedEval]:
        """List the servers of evals and settle their write modes.

        Args:
            evals: the evals, each with its chosen variants.
            objects: live server objects in this process, by label.
            start: whether the programs that servers have are to be started; else they are there.

        Raises:
            MstError: a server's writes are not accounted for, or a variable is not set.

        """
        if not evals:
            return {}
        has_some = any(started_labels(loaded.config) for loaded, _ in evals.values())
        programs = self.programs if start and has_some else None
        check = partial(check_evals, allow_live=self.allow_live)
        return self.call(check, evals, self.hub, os.environ, objects, programs)

    def keep_program_logs(self, specs: Callable[[], Iterable[UpstreamSpec]]) -> None:
        """Have what programs write kept where servers of theirs want it, if any were started."""
        if self._programs is not None:
            for spec in specs():
                self.call(self._programs.keep_log, spec)

    def hold(self, serve: Callable[..., Awaitable[Any]]) -> None:
        """Start what stays open in the background loop; return once it is ready.

        Raises what it raises before it is.
        """
        self.portal.start_task(serve)

    def start(
        self, function: Callable[..., Awaitable[_T]], *args: Any
    ) -> concurrent.futures.Future[_T]:
        """Start an async function in the background loop, and return what to wait for."""
        return self.portal.start_task_soon(function, *args)

    def submit(self, function: Callable[..., Awaitable[_T]], *args: Any) -> _T:
        """Run an async function in the background loop; showing progress while it lasts."""
        return self.wait_for(self.start(function, *args))

    def wait_for(self, future: concurrent.futures.Future[_T]) -> _T:
        """Wait for what runs in the background loop, showing progress meanwhile."""
        self._until_done(future)
        return future.result()

    def _until_done(self, future: concurrent.futures.Future[Any]) -> None:
        while not future.done():
            concurrent.futures.wait([future], timeout=_TICK_S)
            if not future.done():
                self._on_wait()

    def get(self, job: Job) -> FinishedAttempt | None:
        """Wait for an attempt, made ahead or made now; `None` when the engine was stopped first."""
        self._order(job)
        self._asked_for.add(job.key)
        order = self._orders[job.key]
        try:
            return self.wait_for(order.future)
        finally:
            if order.future.done():  # else something else ended the wait, and it goes on
                del self._orders[job.key]

    def get_if_begun(self, job: Job) -> FinishedAttempt | None:
        """Wait for an attempt that is under way or has ended; begin none."""
        return self.get(job) if job.key in self._orders else None

    def has_made(self, key: JobKey) -> bool:
        """Tell whether an attempt was begun ahead, once it has ended; begins none."""
        order = self._orders.get(key)
        if order is None:
            return False
        self._until_done(order.future)
        return order.future.exception() is not None or order.future.result() is not None

    def has_result(self, job: Job) -> bool:
        """Tell whether asking for an attempt would not have to wait."""
        order = self._orders.get(job.key)
        return order is not None and order.future.done()

    def was_asked_for(self, job: Job) -> bool:
        """Tell whether an attempt was handed out, or had no result to hand out."""
        return job.key in self._asked_for and job.key not in self._orders

    def give_up(self, job: Job) -> bool:
        """Cut an attempt short that nobody waits for any more.

        Returns:
            Whether it was under way. What had ended is kept for whoever asks.

        """
        order = self._orders.get(job.key)
        if order is None or order.future.done():
            return False
        del self._orders[job.key]
        self._asked_for.add(job.key)
        self.crew.give_up(order)
        with contextlib.suppress(concurrent.futures.CancelledError, asyncio.CancelledError):
            order.future.result(timeout=CUT_SHORT_BOUND_S)
        return True

    def _order(self, first: Job) -> None:
        """Order an attempt that is asked for now, and as many of the next as there is room for."""
        crew, orders = self.crew, []
        for job in self._to_order(first):
            order = self._orders[job.key] = job.make()
            orders.append(order)
        if orders:
            crew.take(orders)

    def _to_order(self, first: Job) -> Iterator[Job]:
        if first.key not in self._orders:
            yield first
        room = self.ahead - len(self._orders)
        if self._stopped or room < max(1, self.ahead // 4):
            return
        for job in self.upcoming():
            if job.key not in self._orders and job.key not in self._asked_for:
                yield job
                room -= 1
                if room <= 0:
                    return

    def stop(self) -> None:
        """Begin no other attempt; those under way go on."""
        self._stopped = True
        if self._crew is not None:
            self._crew.stop()

    def drain(self) -> None:
        """Let the attempts under way end and be recorded, and begin no other.

        Each is bounded by its own deadline.
        """
        self.stop()
        for key, order in list(self._orders.items()):
            with contextlib.suppress(concurrent.futures.CancelledError, asyncio.CancelledError):
                self.wait_for(order.future)
            del self._orders[key]

    def cancel(self) -> None:
        """Cut the attempts under way short; each records that, within a bound."""
        self.stop()
        self._held_up = True
        try:
            if self._crew is not None:
                self.start(self._crew.cut_short).result(timeout=CUT_SHORT_BOUND_S + 1)
            if self.cut_body_short is not None:
                self.cut_body_short()
            self._held_up = False
        except concurrent.futures.TimeoutError:
            pass  # a client holds up the loop: what it was at is told from the journal
        finally:
            self._orders.clear()

    def close(self) -> None:
        """End the background loop and every server and program with it. Safe to call twice.

        Where an interrupted session is held up by a client that will not end, the process ends
        here instead: by now everything is written, and its servers end with it.
        """
        if not self._held_up:
            self._close()
            return
        closing = threading.Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(_CLOSE_BOUND_S)
        if closing.is_alive():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(pytest.ExitCode.INTERRUPTED)

    def leave_to_workers(self) -> None:
        """End the connections, since workers make the attempts; programs it started go on."""
        self.stop()
        if self._crew is not None:
            self.call(self._crew.end)
            self._crew = None
        if self._portal is not None and (model := sys.modules.get(_MODELS)) is not None:
            self.call(model.close_here)
        self._orders.clear()
        self._connections.close()
        self._hub = None
        if self._programs is None:
            self._stack.close()
            self._portal = None

    def _close(self) -> None:
        self.leave_to_workers()
        self._stack.close()
        self._programs = None
        self._portal = None
