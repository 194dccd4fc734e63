"""Errors of model SDKs, as an agent in Python meets them, told by their typed fields."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Protocol

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.retry import retry_after_s
from pytest_mst.providers.exchange import Exchange, read_error
from pytest_mst.providers.failure import FailureKind, ProviderFailure, failure_of

_STATUS = ("status_code", "code", "http_status")
"""Where SDKs keep the HTTP status: openai, anthropic, mistral and pydantic-ai; google-genai; cohere
and older ones."""
_NOT_SENT = ("ConnectError", "ConnectTimeout", "PoolTimeout")
_LATE = ("ReadTimeout", "WriteTimeout", "TimeoutException")
_BROKEN = ("ReadError", "WriteError", "RemoteProtocolError", "CloseError")
_HTTP_LIBRARIES = ("httpx", "httpx2")
_HTTP_ERRORS = range(400, 600)
_OF_AN_ANSWER = ("response", "body", "details")
"""What errors of SDKs have beside a status: the answer that it was of."""


class Asking(Protocol):
    """What is known of the attempt: a `ClientRequest`."""

    @property
    def model(self) -> str | None:
        """Who is asked."""
        ...


def model_errors(
    request: Asking, *, api: str = "its model's API", model: str | None = None
) -> AbstractContextManager[None]:
    """Turn what a model SDK raises in a `with` block into how the attempt ended.

    An error that has an HTTP status, as those of openai, anthropic, google-genai and pydantic-ai
    do, is a failure of the provider of the kind that the status and the API's own code say; one of
    the HTTP library that they use is a failure of the network: the block then raises an
    `InfrastructureError`. What else is raised passes through, also `AssertionError` and errors of
    tools. Wrap what asks the model, and nothing of your own that speaks HTTP to others.

    Args:
        request: what the client was given.
        api: what to call the API in messages; no secret.
        model: who is asked; by default the model of the request.

    """
    return _ModelErrors(api, model or request.model or "of its choice")


class _ModelErrors(AbstractContextManager[None]):
    def __init__(self, api: str, model: str) -> None:
        self._api = api
        self._model = model

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception):  # a cancellation is nobody's failure
            return
        failure = sdk_failure(error, label=self._api, model=self._model)
        if failure is not None:
            raise InfrastructureError.of(failure.infrastructure(), failure.hint) from error


def sdk_failure(error: BaseException, *, label: str, model: str) -> ProviderFailure | None:
    """Return what an error of an SDK says of a model's API; `None` where it says nothing of it.

    What it was raised from is looked at, too, since agent frameworks wrap what they meet.

    Args:
        error: what was raised.
        label: what stands for the API.
        model: who was asked.

    """
    seen: set[int] = set()
    for one in _chain(error, seen):
        known = failure_of(one, label=label, model=model) if _knows_pydantic_ai(one) else None
        found = known or _by_status(one, label, model) or _by_network(one, label, model)
        if found is not None:
            return found
    return None


def _chain(error: BaseException, seen: set[int]) -> Iterator[BaseException]:
    """Yield an error, those of its group, and what each was raised from; each once."""
    if id(error) in seen:  # chains can be closed to a circle by hand
        return
    seen.add(id(error))
    yield error
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _chain(one, seen)
    if error.__cause__ is not None:  # what was only being handled meanwhile says nothing of it
        yield from _chain(error.__cause__, seen)


def _knows_pydantic_ai(error: BaseException) -> bool:
    """Tell whether an error is of pydantic-ai, without importing it for those that are not."""
    return "pydantic_ai" in sys.modules and type(error).__module__.startswith("pydantic_ai")


def _by_status(error: BaseException, label: str, model: str) -> ProviderFailure | None:
    if not any(hasattr(error, name) for name in _OF_AN_ANSWER):
        return None  # a code of something else, such as what a tool met
    status = next(
        (
            value
            for name in _STATUS
            if isinstance(value := getattr(error, name, None), int)
            and not isinstance(value, bool)
            and value in _HTTP_ERRORS
        ),
        None,
    )
    if status is None:
        return None
    exchange = Exchange(0, "POST", "", model_call=True, status=status, ended="whole")
    body = getattr(error, "body", None)
    if body is None:
        body = getattr(error, "details", None)
    read_error(exchange, _whole(body))
    return ProviderFailure(
        exchange.kind or FailureKind.REJECTED,
        label,
        model,
        status=status,
        retry_after_s=_retry_after_s(error),
        says=exchange.error_says,
    )


def _whole(body: object) -> object:
    """Return an error's body as the API sends it: the SDK of OpenAI takes `error` off it."""
    if isinstance(body, Mapping) and "error" not in body and "message" in body:
        return {"error": body}
    return body


def _retry_after_s(error: BaseException) -> float | None:
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    value = headers.get("retry-after") if hasattr(headers, "get") else None
    return retry_after_s(value, datetime.now(UTC)) if isinstance(value, str) else None


def _by_network(error: BaseException, label: str, model: str) -> ProviderFailure | None:
    """Return what an error of an HTTP library says, by its type."""
    for kind in type(error).__mro__:
        if kind.__module__.partition(".")[0] not in _HTTP_LIBRARIES:
            continue
        for names, failure in (
            (_NOT_SENT, FailureKind.NETWORK),
            (_LATE, FailureKind.TIMEOUT),
            (_BROKEN, FailureKind.CUT),
        ):
            if kind.__name__ in names:
                return ProviderFailure(failure, label, model)
    return None
