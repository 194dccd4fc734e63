"""Asking a model turn by turn: made again where that certainly had no effect, and measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pytest_mst.domain.turn_retry import NoRetry, TurnRetry
from pytest_mst.domain.usage import Usage
from pytest_mst.providers.endpoint import Endpoint
from pytest_mst.providers.failure import FailureKind, ProviderError, ProviderFailure, failure_of
from pytest_mst.providers.model import Models, models_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.settings import ModelSettings


_UNREADABLE = (TypeError, ValueError, AttributeError, LookupError)
"""What SDKs raise over an answer that is none of theirs; requests are made of what was checked."""


_SAYS_LIMIT_CHARS = 2_000


class Asker:
    """Asks one model, and keeps account of what that took."""

    def __init__(
        self,
        endpoint: Endpoint,
        turns: TurnRetry | None = None,
        *,
        stream: bool = False,
        models: Models | None = None,
    ) -> None:
        """Take what is asked, and by whom waits are made.

        Args:
            endpoint: the model.
            turns: waits before a request is made again; without it the first failure stands.
            stream: whether answers are to come in pieces.
            models: where models are opened; those of the running event loop by default.

        """
        self.endpoint = endpoint
        self._turns = turns or NoRetry()
        self._stream = stream
        self._model = (models or models_here()).open(endpoint)
        self._used: list[Any] = []
        self._model_s = 0.0

    async def ask(
        self,
        messages: Sequence[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Make one request, and make it again after what certainly had no effect.

        Nothing of an answer is acted on before it is whole: one that breaks off had no effect.

        Raises:
            ProviderError: there is no answer, and another try of this request is no use.
            InfrastructureError: the tries are used up, or do not fit the deadline.

        """
        from pydantic_ai.exceptions import AgentRunError

        next_try = 2
        while True:
            began = time.monotonic()
            try:
                response = await self._once(list(messages), settings, parameters)
            except (AgentRunError, *_UNREADABLE) as error:
                where = self.endpoint
                failure = failure_of(error, label=where.label, model=where.model)
                if failure is None and isinstance(error, AgentRunError):
                    raise
                failure = failure or self._unreadable(repr(error))
                if failure.hint is None:
                    raise ProviderError(failure) from error
                hint, told = failure.hint, failure.infrastructure()
            else:
                if not response.parts and response.finish_reason is None:
                    raise ProviderError(self._unreadable("an answer without content or reason"))
                self._used.append(response.usage)
                self._turns.answered()
                return response
            finally:
                self._model_s += time.monotonic() - began
            await self._turns.wait(told, hint, next_try=next_try)
            next_try += 1

    def _unreadable(self, says: str) -> ProviderFailure:
        where = self.endpoint
        return ProviderFailure(
            FailureKind.UNREADABLE, where.label, where.model, says=says[:_SAYS_LIMIT_CHARS]
        )

    async def _once(
        self,
        messages: list[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
    ) -> ModelResponse:
        if not self._stream:
            return await self._model.request(messages, settings, parameters)
        async with self._model.request_stream(messages, settings, parameters) as streamed:
            async for _ in streamed:
                pass
            return streamed.get()

    @property
    def usage(self) -> Usage:
        """What all of its requests took so far, as the API reported it; no cost."""
        if not self._used:
            return Usage(requests=0, model_ms=round(self._model_s * 1000))
        return Usage(
            requests=len(self._used),
            input_tokens=sum(one.input_tokens for one in self._used),
            output_tokens=sum(one.output_tokens for one in self._used),
            cache_read_tokens=sum(one.cache_read_tokens for one in self._used) or None,
            cache_write_tokens=sum(one.cache_write_tokens for one in self._used) or None,
            model_ms=round(self._model_s * 1000),
        )
