"""One request to a model's API as we saw it pass, and what its answer says of itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pytest_mst.domain.usage import Usage
from pytest_mst.providers.failure import FailureKind, kind_of_status, says_context

ExchangeEnd: TypeAlias = Literal["whole", "cut", "refused", "abandoned"]
"""`whole`: the answer came to its end. `cut`: it broke off. `refused`: no connection was made.
`abandoned`: who asked went away before the answer had come."""

_SUCCESS = range(200, 300)
_CALLS = ("/messages", "/chat/completions", "/responses", "generatecontent")
"""What the paths of requests to a model end with, in lower case; Gemini's begin anew after `:`."""


@dataclass(slots=True)
class Exchange:
    """A request and its answer; nothing of what they say is kept, but for types and counts."""

    at_ms: int
    """When it came, since the recording began."""
    method: str
    path: str
    """Without its query, which may hold a key."""
    model_call: bool
    """Whether a model was asked; not so where only its tokens were counted, or models listed."""
    model: str | None = None
    status: int | None = None
    """Of the answer; `None` as long as there is none."""
    error_type: str | None = None
    error_code: str | None = None
    error_says: str | None = None
    """The API's own words, for people."""
    context: bool = False
    """Whether the request was longer than the model's context, as far as the API says so."""
    retry_after_s: float | None = None
    duration_ms: int | None = None
    """Until the answer ended; `None` while it is under way."""
    ended: ExchangeEnd | None = None
    usage: Usage | None = None
    finish: str | None = None
    """Why the model stopped, by the API's own name for it: `end_turn`, `STOP`, `MAX_TOKENS`."""

    @property
    def kind(self) -> FailureKind | None:
        """What went wrong; `None` where nothing did, or the answer is under way."""
        if self.ended == "refused":
            return FailureKind.NETWORK
        if self.status is not None and self.status not in _SUCCESS:
            return self._kind_of_error(kind_of_status(self.status))
        if self.error_type is not None or self.error_code is not None:  # inside a stream
            return self._kind_of_error(FailureKind.SERVER_ERROR)
        return FailureKind.CUT if self.ended == "cut" else None

    def _kind_of_error(self, by_status: FailureKind) -> FailureKind:
        if self.context:
            return FailureKind.CONTEXT
        for name in (self.error_code, self.error_type):
            kind = _BY_NAME.get(name or "")
            if kind is not None:
                return kind
        return by_status


_BY_NAME: Mapping[str, FailureKind] = {
    "insufficient_quota": FailureKind.QUOTA,  # OpenAI, code
    "billing_error": FailureKind.QUOTA,  # Anthropic, type
    "rate_limit_error": FailureKind.RATE_LIMIT,  # Anthropic
    "rate_limit_exceeded": FailureKind.RATE_LIMIT,  # OpenAI
    "overloaded_error": FailureKind.OVERLOADED,  # Anthropic
    "server_is_overloaded": FailureKind.OVERLOADED,  # OpenAI Responses
    "authentication_error": FailureKind.AUTH,  # Anthropic
    "permission_error": FailureKind.AUTH,  # Anthropic
    "invalid_api_key": FailureKind.AUTH,  # OpenAI
    "model_not_found": FailureKind.NOT_FOUND,  # OpenAI
    "context_length_exceeded": FailureKind.CONTEXT,  # OpenAI
    "API_KEY_INVALID": FailureKind.AUTH,  # Gemini, reason: its status is INVALID_ARGUMENT
    "UNAUTHENTICATED": FailureKind.AUTH,  # Gemini, status
    "PERMISSION_DENIED": FailureKind.AUTH,  # Gemini
    "UNAVAILABLE": FailureKind.UNAVAILABLE,  # Gemini
    "RESOURCE_EXHAUSTED": FailureKind.RATE_LIMIT,  # Gemini
}
"""What the APIs call their errors by, where that says more than the HTTP status."""


def asks_model(method: str, path: str) -> bool:
    """Tell whether a request asks a model for an answer."""
    return method == "POST" and path.lower().rstrip("/").endswith(_CALLS)


def model_of(path: str, body: Mapping[str, Any]) -> str | None:
    """Return the model that is asked: in the body, or in the path as Gemini has it."""
    named = body.get("model")
    if isinstance(named, str):
        return named
    name = path.rpartition("/models/")[2].partition(":")[0]
    return name or None


def read_error(exchange: Exchange, body: object) -> None:
    """Take from an error's body what it says of itself.

    The form is Anthropic's `{error: {type, message}}`, OpenAI's `{error: {type, code, message}}`
    or Gemini's `{error: {status, message}}`, which also comes as a list of one.
    """
    error = error_in(body)
    if error is None:
        return
    named = error.get("type") or error.get("status")
    code = error.get("code")
    details = _objects(error.get("details"))  # Gemini, whose code is a number
    if not isinstance(code, str):
        code = next((one["reason"] for one in details if "reason" in one), None)
    wait = next((_seconds(one["retryDelay"]) for one in details if "retryDelay" in one), None)
    exchange.retry_after_s = wait if exchange.retry_after_s is None else exchange.retry_after_s
    exchange.error_type = named if isinstance(named, str) else None
    exchange.error_code = code if isinstance(code, str) else None
    words = error.get("message")
    if isinstance(words, str):
        exchange.error_says = words[:_WORDS_LIMIT_CHARS]
        in_stream = exchange.status is None or exchange.status in _SUCCESS
        rejected = in_stream or kind_of_status(exchange.status or 0) is FailureKind.REJECTED
        exchange.context = rejected and says_context(words)


def error_in(body: object) -> Mapping[str, Any] | None:
    """Return the error that a body is, or holds; `None` where it is none.

    OpenAI Responses has the fields of an error event beside its type.
    """
    first = body[0] if isinstance(body, list) and body else body
    if not isinstance(first, Mapping):
        return None
    if isinstance(first.get("error"), Mapping):
        return first["error"]  # type: ignore[no-any-return]  # a mapping: the line above
    is_event = first.get("type") == "error" and "code" in first
    return {**first, "type": None} if is_event else None


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _seconds(duration: object) -> float | None:
    """Read a duration as Gemini writes it: `17s`, `0.5s`."""
    number = str(duration).removesuffix("s")
    try:
        wait_s = float(number)
    except ValueError:
        return None
    return wait_s if 0 <= wait_s < math.inf else None


_WORDS_LIMIT_CHARS = 2_000


def parsed(text: bytes) -> Any:
    """Read JSON; what is none is `None`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
