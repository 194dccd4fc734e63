"""When an attempt is tried again, and after how long: pure, but for the dice."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio

from pytest_mst.domain.ending import (
    RETRY_KIND_BY_DEFAULT,
    Broke,
    InfrastructureFailure,
    Scope,
)
from pytest_mst.domain.retry import TRIES, RetryHint, RetryKind, wait_text

_BROKE: dict[RetryKind, Broke] = {
    RetryKind.RATE_LIMIT: Broke.PROVIDER,
    RetryKind.OVERLOADED: Broke.PROVIDER,
    RetryKind.UNAVAILABLE: Broke.PROVIDER,
    RetryKind.NETWORK: Broke.NETWORK,
    RetryKind.NOT_STARTED: Broke.CLIENT_APP,
}
"""What broke for an attempt that others' failures keep from beginning."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often an attempt is tried, and how long it waits in between."""

    tries: int = TRIES
    """In all."""
    first_wait_s: float = 2.0
    """Doubled before each further try."""
    cap_s: float = 60.0
    """The longest wait, whatever the endpoint asks for; what chance adds comes on top."""
    jitter: float = 0.25
    """The largest part of a wait that chance adds to it, so that attempts do not come at once."""
    dice: Callable[[], float] = random.random
    """Chance, 0 to 1."""
    sleep: Callable[[float], Awaitable[object]] = anyio.sleep

    def wait_s(self, next_try: int, after_s: float | None) -> float:
        """Return how long to wait before a try.

        Args:
            next_try: 1-based; the first try that is waited for is the second.
            after_s: what the endpoint asks for; where it does, this counts.

        """
        doubled_s = self.first_wait_s * 2.0 ** (next_try - 2)
        return self.spread_s(doubled_s if after_s is None else after_s)

    def spread_s(self, wait_s: float) -> float:
        """Return a wait, cut to the cap, with what chance adds to it."""
        return min(wait_s, self.cap_s) * (1 + self.jitter * self.dice())


def hint_of(failure: InfrastructureFailure, said: RetryHint | None) -> RetryHint | None:
    """Return why and when to try again inside the attempt; `None` where it must not be.

    It is tried again only after what certainly had no effect, as far as the failure knows, and
    what a moment's wait can help. A set-up that failed is not waited for, unless whoever met the
    failure says so: what it needs is done outside of the attempt.

    Args:
        failure: how the client ended.
        said: what was said of trying again by whoever met the failure.

    """
    no_effect = failure.accepted is False and failure.scope is Scope.TRIAL
    if not (failure.retryable and no_effect):
        return None
    if said is None and failure.broke is not Broke.SETUP:
        return RetryHint(RETRY_KIND_BY_DEFAULT[failure.broke])
    return said


def exhausted(failure: InfrastructureFailure, tries: int, kind: RetryKind) -> InfrastructureFailure:
    """Return the ending of an attempt whose tries have all failed."""
    reason = f"retries exhausted ({tries} attempts, {kind}): {failure.reason}"
    return replace(failure, reason=reason)


def no_time_left(
    failure: InfrastructureFailure, kind: RetryKind, wait_s: float, left_s: float
) -> InfrastructureFailure:
    """Return the ending of an attempt that would still wait when its deadline comes."""
    reason = (
        f"{kind}: a wait of {wait_text(wait_s)} does not fit the {wait_text(max(0.0, left_s))} "
        f"that are left before the deadline (`timeout`): {failure.reason}"
    )
    return replace(failure, reason=reason)


def unanswered(kind: RetryKind, timeout_s: float) -> InfrastructureFailure:
    """Return the ending of an attempt whose deadline came after such an answer, and no other."""
    reason = (
        f"{kind}: the endpoint answered nothing else until the deadline (`timeout`), "
        f"after {timeout_s:g} s"
    )
    return InfrastructureFailure(_BROKE[kind], reason, retryable=True)


def held_up(kind: RetryKind) -> InfrastructureFailure:
    """Return what keeps an attempt from beginning when others were told to wait."""
    reason = "another attempt was told to leave the endpoint alone"
    return InfrastructureFailure(_BROKE[kind], reason, retryable=True, accepted=False)
