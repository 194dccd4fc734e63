"""Trying again inside one attempt what certainly had no effect, and the waits in between."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import anyio

from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.retry_policy import exhausted, held_up, no_time_left
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.domain.attempt import Try
from pytest_mst.domain.ending import Ending, InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.retry import SHARED, RetryHint, RetryKind
from pytest_mst.domain.run import utc_text
from pytest_mst.store.append import RunWriter

Away: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]
"""Gives the attempt's place to another while it is entered, and takes one again at its end."""


@dataclass(frozen=True, slots=True)
class Tried:
    """How one try of a client ended."""

    ending: Ending
    retry: RetryHint | None = None
    """Why and when to try again; `None` where the ending stands."""
    error: BaseException | None = None
    """What was raised, where that is what ended it."""


Once: TypeAlias = Callable[[int], Awaitable[Tried]]
"""Makes one try, given its number, 0-based."""


class Tries:
    """The tries of one attempt, and what it waits for in between."""

    def __init__(
        self,
        job: AttemptJob,
        writer: RunWriter,
        rules: RunRules,
        clock: Clock,
        away: Away = nullcontext,
    ) -> None:
        """Take an attempt that has not been tried.

        Args:
            job: the attempt.
            writer: where its waits are noted as they begin.
            rules: the run's.
            clock: of the attempt; waits are left out.
            away: entered while it waits.

        """
        self._job = job
        self._writer = writer
        self._policy = rules.retry
        self._backoffs = rules.backoffs
        self._clock = clock
        self._away = away
        self.made: list[Try] = []
        """The waits there were, in order."""
        self.last_answer: RetryKind | None = None
        """What the endpoint refused the last try with, while the next is waited for or made."""
        self.refused_turn: RetryKind | None = None
        """What the endpoint refused the client's last request with, until it answers one."""
        self._deadline = anyio.CancelScope()

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        """Wait inside a try until a client's request may be made again; see `TurnRetry`.

        Raises:
            InfrastructureError: the tries are used up, or the wait does not fit the deadline.

        """
        kind, deadline = hint.kind, self._deadline
        wait_s = self._with_others(kind, self._policy.wait_s(next_try, hint.after_s))
        if next_try > self._policy.tries:
            raise InfrastructureError.of(exhausted(failure, self._policy.tries, kind))
        self.refused_turn = kind if kind.is_answer else None
        if not await self._wait(kind.value, next_try, wait_s, deadline):
            left_s = _left_s(deadline)
            raise InfrastructureError.of(no_time_left(failure, kind, wait_s, left_s))

    def answered(self) -> None:
        """Take note that a client's request was answered."""
        self.refused_turn = None

    async def run(self, once: Once, deadline: anyio.CancelScope) -> Ending:
        """Try until an ending stands.

        Args:
            once: makes one try.
            deadline: what cuts the attempt off. Waits count towards it; waiting for a place
                does not.

        """
        number = 0
        self._deadline = deadline
        while True:
            self.refused_turn = None
            tried = await once(number)
            self.last_answer = None
            failure, hint = tried.ending, tried.retry
            if hint is None or isinstance(failure, Trial):
                return failure
            kind, next_try = hint.kind, number + 2
            wait_s = self._with_others(kind, self._policy.wait_s(next_try, hint.after_s))
            if next_try > self._policy.tries:
                return exhausted(failure, self._policy.tries, kind)
            self.last_answer = kind if kind.is_answer else None
            if not await self._wait(kind.value, next_try, wait_s, deadline):
                return no_time_left(failure, kind, wait_s, _left_s(deadline))
            number += 1

    async def after_others(self, deadline: anyio.CancelScope) -> InfrastructureFailure | None:
        """Wait before the first try while others were told to.

        Returns:
            The ending of the attempt, where that takes longer than its deadline.

        """
        known = self._backoffs.left(self._job.endpoint) if self._backoffs is not None else None
        if known is None:
            return None
        wait_s = self._policy.spread_s(known.left_s)
        self.last_answer = known.kind if known.kind.is_answer else None
        if await self._wait(f"{known.kind}, {SHARED}", 1, wait_s, deadline):
            return None
        return no_time_left(held_up(known.kind), known.kind, wait_s, _left_s(deadline))

    def _with_others(self, kind: RetryKind, wait_s: float) -> float:
        """Have the others wait too; return the wait, which is theirs where that is longer.

        Chance adds to theirs anew: who waits for one end is not to come at one instant.
        """
        if self._backoffs is None or not kind.of_endpoint:
            return wait_s
        self._backoffs.hold(self._job.endpoint, kind, wait_s)
        known = self._backoffs.left(self._job.endpoint)
        if known is None or known.left_s <= wait_s:
            return wait_s
        return self._policy.spread_s(known.left_s)

    async def _wait(
        self, reason: str, next_try: int, wait_s: float, deadline: anyio.CancelScope
    ) -> bool:
        """Wait, note that, and let another attempt have the place meanwhile.

        Returns:
            Whether that fits the deadline; where it does not, nothing is waited for.

        """
        if wait_s >= _left_s(deadline):
            return False
        wait_ms = round(wait_s * 1000)
        self.made.append(Try(utc_text(datetime.now(UTC)), reason, wait_ms, next_try))
        with suppress(StoreError):  # the attempt's own file says it too; that one has to be there
            self._writer.retrying(
                self._job.id,
                self._job.locator,
                next_try=next_try,
                of=self._policy.tries,
                reason=reason,
                wait_ms=wait_ms,
            )
        with self._clock.paused():
            async with self._away():
                await self._policy.sleep(wait_s)
                left_s = _left_s(deadline)
                deadline.deadline = math.inf  # the time until there is a place is not its own
            deadline.deadline = anyio.current_time() + left_s
        return True


def _left_s(deadline: anyio.CancelScope) -> float:
    return deadline.deadline - anyio.current_time()
