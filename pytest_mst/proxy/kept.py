"""What is opened once and stays open for whoever needs it next, until everything is closed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar, cast

import anyio
from anyio.abc import TaskGroup, TaskStatus

_T = TypeVar("_T")


class Kept:
    """Async context managers held open, each in a task of its own, by key."""

    def __init__(self, tasks: TaskGroup | None) -> None:
        """Hold nothing yet.

        Args:
            tasks: where the holding tasks run; without, nothing can be opened.

        """
        self._tasks = tasks
        self._open: dict[Hashable, object] = {}
        self._locks: dict[Hashable, anyio.Lock] = {}
        self._ending: list[tuple[anyio.Event, anyio.Event]] = []

    async def get(self, key: Hashable, opened: Callable[[], AbstractAsyncContextManager[_T]]) -> _T:
        """Return what is open under a key; the first to ask opens it.

        Args:
            key: names it, and with it its type.
            opened: makes what is entered where nothing is open. What it raises, the caller
                gets, and the next one tries again.

        """
        if self._tasks is None:
            msg = "nothing can be kept open before the hub is entered"
            raise RuntimeError(msg)
        async with self._locks.setdefault(key, anyio.Lock()):
            if key not in self._open:
                self._open[key] = await self._tasks.start(self._hold, opened)
            return cast("_T", self._open[key])

    async def close(self) -> None:
        """Close everything, the last opened first; return when that is done."""
        for ask, done in reversed(self._ending):
            ask.set()
            await done.wait()
        self._open.clear()

    async def _hold(
        self,
        opened: Callable[[], AbstractAsyncContextManager[_T]],
        *,
        task_status: TaskStatus[_T],
    ) -> None:
        ask, done = anyio.Event(), anyio.Event()
        try:
            async with opened() as held:
                self._ending.append((ask, done))
                task_status.started(held)
                await ask.wait()
        finally:
            done.set()
