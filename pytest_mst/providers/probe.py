"""Trying an endpoint once before anything is paid for: is the key let in, is there such a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.providers.endpoint import Endpoint
from pytest_mst.providers.exchange import Exchange, parsed, read_error
from pytest_mst.providers.failure import FailureKind, ProviderFailure

PROBE_TIMEOUT_S = 10.0
_NOT_CERTAIN = (401, 403, 404)
"""Not every server with the API lists its models, and not every key may list them."""


async def probe(endpoint: Endpoint) -> InfrastructureFailure | None:
    """Ask an API for its model, which costs nothing.

    Returns:
        Why no attempt can be made with it, where that is certain: the key is refused, or there is
        no such model. `None` also where the API cannot be reached or is busy: attempts are made
        again after that, and this one is not.

    """
    import httpx2

    async with httpx2.AsyncClient(timeout=PROBE_TIMEOUT_S, follow_redirects=False) as http:
        try:
            found = await http.get(_model_url(endpoint), headers=_headers(endpoint))
            if found.status_code in _NOT_CERTAIN:  # a key, or a server, may do without this
                found = await http.post(
                    _ask_url(endpoint), headers=_headers(endpoint), json=_smallest(endpoint)
                )
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError):
            return None
    return _certain(endpoint, found.status_code, found.content)


def _certain(endpoint: Endpoint, status: int, body: bytes) -> InfrastructureFailure | None:
    """Return what an answer says for certain: a refused key, a model or an API that is not there.

    What it is not known by its status alone, the error's own type tells.
    """
    seen = Exchange(0, "GET", "", model_call=True, status=status)
    read_error(seen, parsed(body))
    kind = seen.kind
    if kind is FailureKind.AUTH:
        return _failure(kind, endpoint, status, f"the key is in {endpoint.key_env}")
    if kind is not FailureKind.NOT_FOUND:
        return None
    if seen.error_type is None and seen.error_code is None:
        where = f"there is no {endpoint.api} API at this address; see baseUrl"
        return _failure(kind, endpoint, status, where)
    return _failure(kind, endpoint, status, f"asked with the key in {endpoint.key_env}")


def _failure(
    kind: FailureKind, endpoint: Endpoint, status: int, says: str
) -> InfrastructureFailure:
    told = ProviderFailure(kind, endpoint.label, endpoint.model, status=status)
    failure = told.infrastructure(accepted=False)
    return replace(failure, reason=f"{failure.reason} ({says})")


def _headers(endpoint: Endpoint) -> dict[str, str]:
    match endpoint.api:
        case "anthropic":
            return {"x-api-key": endpoint.key, "anthropic-version": "2023-06-01"}
        case "google":
            return {"x-goog-api-key": endpoint.key}
        case "openai" | "openai-responses":
            return {"authorization": f"Bearer {endpoint.key}"}


def _model_url(endpoint: Endpoint) -> str:
    match endpoint.api:
        case "anthropic":
            return f"{endpoint.base_url}/v1/models/{endpoint.model}"
        case "google":
            return f"{endpoint.base_url}/v1beta/models/{endpoint.model}"
        case "openai" | "openai-responses":
            return f"{endpoint.base_url}/models/{endpoint.model}"


def _ask_url(endpoint: Endpoint) -> str:
    match endpoint.api:
        case "anthropic":
            return f"{endpoint.base_url}/v1/messages"
        case "google":
            return f"{endpoint.base_url}/v1beta/models/{endpoint.model}:generateContent"
        case "openai":
            return f"{endpoint.base_url}/chat/completions"
        case "openai-responses":
            return f"{endpoint.base_url}/responses"


def _smallest(endpoint: Endpoint) -> Mapping[str, Any]:
    """Return the smallest request there is."""
    said = [{"role": "user", "content": "."}]
    match endpoint.api:
        case "anthropic" | "openai":
            return {"model": endpoint.model, "max_tokens": 1, "messages": said}
        case "google":
            contents = [{"role": "user", "parts": [{"text": "."}]}]
            return {"contents": contents, "generationConfig": {"maxOutputTokens": 1}}
        case "openai-responses":
            return {"model": endpoint.model, "max_output_tokens": 16, "input": "."}
