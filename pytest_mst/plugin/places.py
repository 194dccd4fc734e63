"""The places in a crew: how many attempts are under way at once, and who is next."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio


class Places:
    """A number of places, kept in one event loop.

    Whoever has a place may give it away for a while. Who comes back takes the next one that gets
    free, before anybody new.
    """

    def __init__(self, size: int, on_free: Callable[[], None]) -> None:
        """Make free places.

        Args:
            size: how many.
            on_free: called when there is a place and nobody has come back for it.

        """
        self._size = size
        self._on_free = on_free
        self._taken = 0
        self._back: deque[anyio.Event] = deque()
        """Of those who have come back, in that order; each is set when a place is theirs."""

    @property
    def free(self) -> int:
        """How many places anybody new may take."""
        return max(0, self._size - self._taken)

    def take(self) -> None:
        """Take a place."""
        self._taken += 1

    def leave(self) -> None:
        """Leave a place to who has come back for one, or to anybody new."""
        self._taken -= 1
        if self._taken >= self._size:
            return  # there was one too many
        if self._back:
            self._taken += 1
            self._back.popleft().set()
        else:
            self._on_free()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Leave one's place, and wait for one at the end.

        Who is cancelled meanwhile waits for none: it has a place at once, to end in.
        """
        self.leave()
        try:
            yield
        except BaseException:
            self.take()
            raise
        await self._come_back()

    async def _come_back(self) -> None:
        if self.free:
            self.take()
            return
        mine = anyio.Event()
        self._back.append(mine)
        try:
            await mine.wait()
        except BaseException:
            if not mine.is_set():
                self._back.remove(mine)
                self.take()
            raise
