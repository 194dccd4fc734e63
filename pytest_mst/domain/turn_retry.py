"""Asking a model again inside a turn: who waits, and says when that is no use any more."""

from __future__ import annotations

from typing import Protocol

from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure
from pytest_mst.domain.retry import RetryHint


class TurnRetry(Protocol):
    """Waits before a request is made again that certainly had no effect.

    The wait is noted among the attempt's tries, shared with others that ask the same endpoint,
    and left out of durations and of the client's own limit of time.
    """

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        """Wait until the request may be made again.

        Args:
            failure: what the last try of this request ended with.
            hint: why and when to try again.
            next_try: which try of this request is next, 1-based: at least 2.

        Raises:
            InfrastructureError: the tries are used up, or the wait does not fit the deadline; it
                says so, and is how the attempt ended.

        """
        ...

    def answered(self) -> None:
        """Take note that the request was answered: what refused it before is over."""
        ...


class NoRetry:
    """For whoever has nobody to wait with: the first failure stands."""

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        """Say the failure.

        Raises:
            InfrastructureError: always.

        """
        raise InfrastructureError.of(failure, hint)

    def answered(self) -> None:
        """Do nothing: nothing was waited for."""
