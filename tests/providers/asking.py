"""Endpoints on loopback, one for each API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure
from pytest_mst.domain.retry import RetryHint
from pytest_mst.providers.asker import Asker
from pytest_mst.providers.endpoint import APIS, Api, Endpoint, endpoint_for
from pytest_mst.providers.model import Models
from tests.model_provider import ModelProvider

EVERY_API: tuple[Api, ...] = APIS


def endpoint(provider: ModelProvider, api: Api) -> Endpoint:
    """Return where the loopback provider plays an API."""
    return endpoint_for(f"{api}:test-model", {}, provider.environment)


@asynccontextmanager
async def asker(endpoint: Endpoint, *, stream: bool = False) -> AsyncIterator[Asker]:
    """Ask over connections that are closed afterwards."""
    models = Models()
    try:
        yield Asker(endpoint, stream=stream, models=models)
    finally:
        await models.close()


def question(text: str = "do it") -> list[ModelRequest]:
    return [ModelRequest(parts=[UserPromptPart(text)])]


def one_tool() -> ModelRequestParameters:
    tool = ToolDefinition(
        name="read_item",
        description="Read an item",
        parameters_json_schema={"type": "object", "properties": {"id": {"type": "string"}}},
    )
    return ModelRequestParameters(function_tools=[tool])


class Waiting:
    """Keeps what is waited for, and waits for nothing."""

    def __init__(self, tries: int = 4) -> None:
        self.waits: list[tuple[InfrastructureFailure, RetryHint, int]] = []
        self._tries = tries

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        self.waits.append((failure, hint, next_try))
        if next_try > self._tries:
            raise InfrastructureError.of(failure)

    def answered(self) -> None:
        """Nothing is waited for any more."""


async def asked_again(place: Endpoint, *, stream: bool, waiting: Waiting) -> str | None:
    models = Models()
    try:
        asking = Asker(place, waiting, stream=stream, models=models)
        return (await asking.ask(question(), {}, one_tool())).text
    finally:
        await models.close()
