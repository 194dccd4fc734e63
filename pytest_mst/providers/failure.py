"""What a model API did instead of answering, as types, and what that means for an attempt."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope
from pytest_mst.domain.retry import RetryHint, RetryKind

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError


class FailureKind(StrEnum):
    """What went wrong. The set is closed."""

    RATE_LIMIT = "rate limit"
    OVERLOADED = "overloaded"
    UNAVAILABLE = "unavailable"
    SERVER_ERROR = "server error"
    QUOTA = "quota used up"
    AUTH = "key refused"
    NOT_FOUND = "no such model"
    CONTEXT = "context overflow"
    REJECTED = "request rejected"
    NETWORK = "not connected"
    """No connection was made, so that nothing was sent."""
    CUT = "answer cut"
    """The connection broke after the request was sent, or the answer broke off."""
    TIMEOUT = "no answer in time"
    UNREADABLE = "answer unreadable"
    """What came is not what the API answers with."""
    REFUSED = "refused"
    """The model, or a filter before it, would not answer."""


_BROKE = {
    FailureKind.CONTEXT: Broke.SETUP,
    FailureKind.NOT_FOUND: Broke.SETUP,
    FailureKind.NETWORK: Broke.NETWORK,
    FailureKind.CUT: Broke.NETWORK,
    FailureKind.TIMEOUT: Broke.NETWORK,
}
"""What broke; everything else is the provider."""

_RETRYABLE = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.UNAVAILABLE,
        FailureKind.SERVER_ERROR,
        FailureKind.NETWORK,
        FailureKind.CUT,
        FailureKind.TIMEOUT,
        FailureKind.UNREADABLE,
    }
)
_AGAIN = {
    FailureKind.RATE_LIMIT: RetryKind.RATE_LIMIT,
    FailureKind.OVERLOADED: RetryKind.OVERLOADED,
    FailureKind.UNAVAILABLE: RetryKind.UNAVAILABLE,
    FailureKind.NETWORK: RetryKind.NETWORK,
    FailureKind.CUT: RetryKind.NETWORK,
}
"""What a request is made again for, within its turn: 429, 529, 503, never connected, or cut
before anything was acted on. Of a 500 or a silence nobody knows what it did."""

_OF_EVERYBODY = frozenset({FailureKind.QUOTA, FailureKind.AUTH, FailureKind.NOT_FOUND})
"""What every attempt that asks the same will meet."""


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """A request to a model that got no answer to use."""

    kind: FailureKind
    label: str
    """What stands for the API; no secret."""
    model: str
    status: int | None = None
    """The HTTP status; `None` where there was none."""
    retry_after_s: float | None = None
    """How long the API asks to be left alone."""
    says: str | None = None
    """The API's own words, for people; no logic reads them."""

    @property
    def reason(self) -> str:
        """One line for people."""
        status = "" if self.status is None else f" (HTTP {self.status})"
        return (
            f"{self.kind}{status}: model {self.model!r}, {self.label}{_WAY_OUT.get(self.kind, '')}"
        )

    @property
    def retryable(self) -> bool:
        """Whether a later go at it can help."""
        return self.kind in _RETRYABLE

    @property
    def hint(self) -> RetryHint | None:
        """Why and when the request may be made again within its turn; `None`: it may not."""
        again = _AGAIN.get(self.kind)
        return None if again is None else RetryHint(again, self.retry_after_s)

    def infrastructure(self, *, accepted: bool | None = None) -> InfrastructureFailure:
        """Say it as the ending of an attempt.

        Args:
            accepted: whether the client is known to have taken the input.

        """
        scope = Scope.TRIAL
        if self.kind in _OF_EVERYBODY:
            scope = Scope.VARIANT
        elif self.kind is FailureKind.CONTEXT:
            scope = Scope.CASE
        return InfrastructureFailure(
            _BROKE.get(self.kind, Broke.PROVIDER),
            self.reason,
            retryable=self.retryable,
            scope=scope,
            accepted=accepted,
            detail=self.says,
        )


_WAY_OUT: dict[FailureKind, str] = {
    FailureKind.QUOTA: "; add credit or raise the limit there",
    FailureKind.AUTH: "; check the key and what it may be used for",
    FailureKind.NOT_FOUND: "; check the model's id and what the key may use",
    FailureKind.CONTEXT: "; give it a shorter input or fewer tools, or another model",
    FailureKind.REJECTED: "; what it says is in the detail",
}
"""What to do about it, where something can be done; begins with a semicolon."""


class ProviderError(Exception):
    """A model could not be asked."""

    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


CONTEXT_WORDS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"prompt is too long",  # Anthropic Messages, invalid_request_error
        r"maximum context length",  # OpenAI and vLLM, 400
        r"context length is only",  # vLLM, 400
        r"exceeds? the (model's |available )?(maximum )?context",  # llama.cpp, LM Studio
        r"input token count .* exceeds the maximum",  # Gemini, INVALID_ARGUMENT
        r"exceeds? the context window",  # OpenAI Responses
    )
)
"""How APIs that have no code for it say that a request is longer than the model's context. The
one place where words from a provider are matched; each is what the API named beside it sends."""


def says_context(words: str) -> bool:
    """Tell whether the words of a rejected request are an API's way to say that it is too long."""
    return any(pattern.search(words) for pattern in CONTEXT_WORDS)


def failure_of(error: BaseException, *, label: str, model: str) -> ProviderFailure | None:
    """Return what an error of pydantic-ai's says, by its type; `None` where it is none of them.

    Args:
        error: what was raised.
        label: what stands for the API.
        model: who was asked.

    """
    from pydantic_ai import exceptions

    if isinstance(error, exceptions.ContentFilterError):
        return ProviderFailure(FailureKind.REFUSED, label, model, says=error.message)
    if isinstance(error, exceptions.UnexpectedModelBehavior):
        return ProviderFailure(FailureKind.UNREADABLE, label, model, says=str(error))
    if not isinstance(error, exceptions.ModelAPIError):
        return None
    kind = _kind(error)
    status = getattr(error, "status_code", None)
    words = _words(error)
    if kind in (FailureKind.SERVER_ERROR, FailureKind.REJECTED) and isinstance(status, int):
        kind = kind_of_status(status)  # which says more where pydantic-ai has no type for it
    if kind is FailureKind.REJECTED and says_context(words):
        kind = FailureKind.CONTEXT
    return ProviderFailure(
        kind,
        label,
        model,
        status=status if isinstance(status, int) else None,
        retry_after_s=error.retry_after,
        says=words or None,
    )


def _kind(error: ModelAPIError) -> FailureKind:
    from pydantic_ai import exceptions as known

    if isinstance(error, known.ModelConnectionError):
        unsent = error.phase in ("pool", "connect")
        late = isinstance(error, known.ModelTimeoutError)
        return FailureKind.NETWORK if unsent else FailureKind.TIMEOUT if late else FailureKind.CUT
    kinds: tuple[tuple[type[ModelAPIError], FailureKind], ...] = (  # the narrower type first
        (known.ModelQuotaExceededError, FailureKind.QUOTA),
        (known.ModelRateLimitError, FailureKind.RATE_LIMIT),
        (known.ModelOverloadedError, FailureKind.OVERLOADED),
        (known.ModelUnavailableError, FailureKind.UNAVAILABLE),
        (known.ModelServerError, FailureKind.SERVER_ERROR),
        (known.ModelAuthenticationError, FailureKind.AUTH),
        (known.ModelNotFoundError, FailureKind.NOT_FOUND),
        (known.ModelContextWindowExceededError, FailureKind.CONTEXT),
        (known.ModelRequestRejectedError, FailureKind.REJECTED),
        (known.ModelRequestTimeout, FailureKind.TIMEOUT),
    )
    for kind_of_error, kind in kinds:
        if isinstance(error, kind_of_error):
            return kind
    status = getattr(error, "status_code", None)
    return kind_of_status(status) if isinstance(status, int) else FailureKind.SERVER_ERROR


def kind_of_status(status: int) -> FailureKind:
    """Return what an HTTP status means where nothing else is known."""
    match status:
        case 401 | 403:
            return FailureKind.AUTH
        case 402:
            return FailureKind.QUOTA
        case 404:
            return FailureKind.NOT_FOUND
        case 408:
            return FailureKind.TIMEOUT
        case 429:
            return FailureKind.RATE_LIMIT
        case 503:
            return FailureKind.UNAVAILABLE
        case 529:
            return FailureKind.OVERLOADED
        case _ if status >= _SERVER_ERRORS:
            return FailureKind.SERVER_ERROR
        case _:
            return FailureKind.REJECTED


_SERVER_ERRORS = 500
_WORDS_LIMIT_CHARS = 2_000


def _words(error: ModelAPIError) -> str:
    """Return what the API itself said."""
    body = error.body
    told = body.get("error", body) if isinstance(body, Mapping) else body
    words = told.get("message") if isinstance(told, Mapping) else None
    if not isinstance(words, str):
        words = str(error if body is None else body)
    return words[:_WORDS_LIMIT_CHARS]
