"""What a program asks its model through: a recording of ours, and what it says of failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.program.servers import without_path
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.retry import RetryHint
from pytest_mst.domain.usage import Usage
from pytest_mst.providers.failure import FailureKind

if TYPE_CHECKING:
    from pytest_mst.clients.program.run import Watch
    from pytest_mst.providers.exchange import Exchange
    from pytest_mst.providers.recording import Recording

_FIRST_REDIRECT = 300
"""The first HTTP status that is no success."""


class ModelApi:
    """The model's API as one attempt's program meets it, and as we saw it."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    @property
    def url(self) -> str:
        """What the program is to ask in place of the API; whoever knows it is let in."""
        return self._recording.url

    @property
    def calls(self) -> list[Exchange]:
        """The requests to the model so far, in the order in which they came."""
        return [one for one in self._recording.log if one.model_call]

    @property
    def accepted(self) -> bool | None:
        """Whether the model has taken the input; `False` where it answered nothing at all."""
        answered = any(
            one.status is not None and one.status < _FIRST_REDIRECT for one in self.calls
        )
        return None if answered else False

    @property
    def usage(self) -> Usage:
        """What the answers so far say that they used."""
        return self._recording.usage

    def failure(self) -> InfrastructureFailure | None:
        """Return what the last request to the model ended with, where it failed."""
        failed = self._recording.failure()
        return None if failed is None else failed.infrastructure(accepted=self.accepted)

    def hint(self) -> RetryHint | None:
        """Return why and when to ask again, where the last request says so."""
        failed = self._recording.failure()
        return None if failed is None else failed.hint

    def until_turns(self, limit: int) -> Watch:
        """Return a watch that ends a program which begins one turn more than it may.

        A turn is a request to the model that was answered, or may still be.
        """

        async def watch() -> Trial:
            while self._turns() <= limit:
                await self._recording.next_exchange()
            return Trial(stopped_by="turns")

        return watch

    def _turns(self) -> int:
        return sum(_is_turn(one) for one in self.calls)

    @property
    def context_is_full(self) -> bool:
        """Whether the last request did not fit the context, after others had been answered."""
        failed = self._recording.failure()
        is_context = failed is not None and failed.kind is FailureKind.CONTEXT
        return is_context and self.accepted is None


def _is_turn(call: Exchange) -> bool:
    """Tell whether a request was answered, or may still be; one that failed was no turn."""
    is_answer = call.status is None or call.status < _FIRST_REDIRECT
    return is_answer and call.kind is None and call.ended in (None, "whole")


@asynccontextmanager
async def recorded_api(
    request: ClientRequest, base_url: str, *, recorded: bool
) -> AsyncIterator[ModelApi | None]:
    """Put a recording before a model's API while one attempt's program runs.

    Where the attempt is cut off while the API refuses its requests, that is how it ended:
    `request.trace.failing` says so.

    Args:
        request: the attempt.
        base_url: of the API.
        recorded: whether to; the program asks the API by itself otherwise.

    """
    if not recorded:
        yield None
        return
    from pytest_mst.providers.recording import Recording

    async with Recording(base_url) as recording:
        api = ModelApi(recording)
        request.trace.hidden[api.url] = without_path(api.url)
        try:
            yield api
        except anyio.get_cancelled_exc_class():
            failing = api.failure()
            if failing is not None and failing.retryable:  # else it is not what it waited for
                request.trace.failing = failing
            raise
