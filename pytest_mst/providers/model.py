"""pydantic-ai's models, opened for our endpoints: no retries of their own, connections shared."""

from __future__ import annotations

import asyncio
import importlib.util
import weakref
from typing import TYPE_CHECKING, Any

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope
from pytest_mst.providers.endpoint import Endpoint

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model

CONNECT_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 600.0
"""How long an API may say nothing; what hangs for less is for the attempt's own deadline."""
_CONNECTIONS = 512
"""More than attempts are ever under way at once."""


def missing_extra(what: str) -> InfrastructureFailure | None:
    """Return why no model can be asked where the extra `llm` is not installed.

    Args:
        what: who needs it, such as `client 'mst'`.

    """
    needed = ("pydantic_ai", "anthropic", "openai", "google.genai")
    try:
        missing = [name for name in needed if importlib.util.find_spec(name) is None]
    except ModuleNotFoundError:  # of a package in a package that is not there
        missing = ["google.genai"]
    if not missing:
        return None
    reason = f"{what} needs the extra llm: pip install 'pytest-mst[llm]'"
    return InfrastructureFailure(
        Broke.SETUP, reason, retryable=False, scope=Scope.VARIANT, accepted=False
    )


class Models:
    """The models of one event loop, and the connections they share."""

    def __init__(self) -> None:
        self._http: httpx2.AsyncClient | None = None
        self._opened: dict[Endpoint, Model[Any]] = {}

    def open(self, endpoint: Endpoint) -> Model[Any]:
        """Return the model of an endpoint."""
        model = self._opened.get(endpoint)
        if model is None:
            model = self._opened[endpoint] = _opened(endpoint, self._connections())
        return model

    def _connections(self) -> httpx2.AsyncClient:
        if self._http is None:
            import httpx2

            self._http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                limits=httpx2.Limits(
                    max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS
                ),
                follow_redirects=False,  # a key goes nowhere but where it is said to
            )
        return self._http

    async def close(self) -> None:
        """Close the connections; a model that is asked for afterwards is opened anew."""
        http, self._http = self._http, None
        self._opened.clear()
        if http is not None:
            await http.aclose()


_OF_LOOPS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Models] = (
    weakref.WeakKeyDictionary()
)


def models_here() -> Models:
    """Return the models of the running event loop; whoever ends the loop calls `close_here`."""
    return _OF_LOOPS.setdefault(asyncio.get_running_loop(), Models())


async def close_here() -> None:
    """Close the connections of the running event loop."""
    models = _OF_LOOPS.pop(asyncio.get_running_loop(), None)
    if models is not None:
        await models.close()


def _opened(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model[Any]:
    match endpoint.api:
        case "anthropic":
            return _anthropic(endpoint, http)
        case "google":
            return _google(endpoint, http)
        case "openai" | "openai-responses":
            return _openai(endpoint, http)


def _anthropic(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model[Any]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=endpoint.key, base_url=endpoint.base_url, max_retries=0, http_client=http
    )
    return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=client))


def _openai(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model[Any]:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(
        api_key=endpoint.key, base_url=endpoint.base_url, max_retries=0, http_client=http
    )
    provider = OpenAIProvider(openai_client=client)
    if endpoint.api == "openai":
        return OpenAIChatModel(endpoint.model, provider=provider)
    return OpenAIResponsesModel(endpoint.model, provider=provider)


def _google(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model[Any]:
    from google.genai.types import HttpRetryOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(
        api_key=endpoint.key,
        base_url=endpoint.base_url,
        http_client=http,
        retry_options=HttpRetryOptions(attempts=1),
    )
    return GoogleModel(endpoint.model, provider=provider)
