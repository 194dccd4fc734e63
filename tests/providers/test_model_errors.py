"""Errors of model SDKs, told by their typed fields, however an agent framework wraps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx2
import pytest

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.retry import RetryKind
from pytest_mst.providers.model_errors import model_errors
from tests.model_provider import Fail, ModelProvider, cut

pytestmark = pytest.mark.anyio


@dataclass
class Asking:
    model: str | None = "gpt-x"


def told(error: BaseException) -> InfrastructureError:
    with pytest.raises(InfrastructureError) as caught, model_errors(Asking(), api="OpenAI"):
        raise error
    return caught.value


class StatusError(Exception):
    """As openai and anthropic have it."""

    def __init__(self, status: int, body: object = None, retry_after: str | None = None) -> None:
        super().__init__("words that nobody reads")
        self.status_code = status
        self.body = body
        headers = {} if retry_after is None else {"retry-after": retry_after}
        self.response = httpx2.Response(status, headers=headers)


class CodeError(Exception):
    """As google-genai has it."""

    def __init__(self, code: int, details: object = None) -> None:
        super().__init__("words")
        self.code = code
        self.details = details


@pytest.mark.parametrize(
    ("error", "broke", "retryable"),
    [
        (StatusError(429), Broke.PROVIDER, True),
        (StatusError(529), Broke.PROVIDER, True),
        (StatusError(503), Broke.PROVIDER, True),
        (StatusError(500), Broke.PROVIDER, True),
        (StatusError(401), Broke.PROVIDER, False),
        (StatusError(400), Broke.PROVIDER, False),
        (StatusError(404), Broke.SETUP, False),
        (StatusError(429, {"code": "insufficient_quota", "message": "m"}), Broke.PROVIDER, False),
        (
            StatusError(429, {"error": {"code": "insufficient_quota", "message": "m"}}),
            Broke.PROVIDER,
            False,
        ),
        (StatusError(400, {"code": "context_length_exceeded", "message": "m"}), Broke.SETUP, False),
        (CodeError(429), Broke.PROVIDER, True),
        (CodeError(403, {"error": {"status": "PERMISSION_DENIED"}}), Broke.PROVIDER, False),
        (httpx2.ConnectError("x"), Broke.NETWORK, True),
        (httpx2.ReadTimeout("x"), Broke.NETWORK, True),
        (httpx2.RemoteProtocolError("x"), Broke.NETWORK, True),
    ],
    ids=lambda value: value.value if isinstance(value, Broke) else None,
)
def test_an_error_is_told_by_its_status_and_code(
    error: BaseException, broke: Broke, retryable: bool
) -> None:
    failure = told(error).failure
    assert (failure.broke, failure.retryable) == (broke, retryable)
    assert "'gpt-x', OpenAI" in failure.reason


def test_how_long_to_wait_comes_along() -> None:
    raised = told(StatusError(429, retry_after="7"))
    assert raised.retry is not None
    assert (raised.retry.kind, raised.retry.after_s) == (RetryKind.RATE_LIMIT, 7.0)
    assert told(StatusError(401)).failure.scope is Scope.VARIANT


def test_a_framework_that_wraps_an_error_does_not_hide_it() -> None:
    inner = StatusError(429)
    wrapped = RuntimeError("the agent failed")
    wrapped.__cause__ = ExceptionGroup("tasks", [ValueError("beside"), inner])
    assert told(wrapped).failure.broke is Broke.PROVIDER
    circle = RuntimeError("a circle")
    circle.__cause__ = wrapped
    inner.__cause__ = circle
    assert told(circle).failure.broke is Broke.PROVIDER


def test_what_was_only_being_handled_meanwhile_says_nothing() -> None:
    for raised in (AssertionError("wrong"), KeyError("fallback")):
        raised.__context__ = StatusError(429)
        with pytest.raises(type(raised)), model_errors(Asking()):
            raise raised


def test_a_status_that_is_of_no_answer_says_nothing_of_the_model() -> None:
    error = OSError("a tool's page is not there")
    error.code = 404  # type: ignore[attr-defined]  # as `urllib.error.HTTPError` has it
    with pytest.raises(OSError, match="not there"), model_errors(Asking()):
        raise error


class OddError(Exception):
    """An error of something else that has a code."""

    code = 3


@pytest.mark.parametrize(
    "error", [ValueError("429"), OddError(), AssertionError("rate limit"), KeyError("status_code")]
)
def test_what_is_no_error_of_a_models_api_passes_through(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, model_errors(Asking()):
        raise error
    assert caught.value is error


def openai(url: str) -> None:
    sdk = pytest.importorskip("openai")
    with sdk.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        client.chat.completions.create(
            model="gpt-x", messages=[{"role": "user", "content": "hi"}], timeout=10
        )


def anthropic(url: str) -> None:
    sdk = pytest.importorskip("anthropic")
    with sdk.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        client.messages.create(
            model="gpt-x", max_tokens=5, messages=[{"role": "user", "content": "hi"}], timeout=10
        )


def google(url: str) -> None:
    sdk = pytest.importorskip("google.genai")
    client = sdk.Client(api_key="k", http_options={"base_url": url})
    try:
        client.models.generate_content(model="gpt-x", contents="hi")
    finally:
        client.close()


@pytest.mark.parametrize("ask", [openai, anthropic, google])
@pytest.mark.parametrize(
    ("step", "broke", "retryable"),
    [
        (Fail(429, "rate"), Broke.PROVIDER, True),
        (Fail(503), Broke.PROVIDER, True),
        (Fail(401, "auth"), Broke.PROVIDER, False),
        (Fail(400, "context"), Broke.SETUP, False),
        (None, Broke.NETWORK, True),
    ],
    ids=["429", "503", "401", "context", "nobody-there"],
)
def test_what_real_sdks_raise_is_told(
    ask: Callable[[str], None], step: Fail | None, broke: Broke, retryable: bool
) -> None:
    with ModelProvider([step or cut()], forever=True) as provider:
        raised = None if step is None else raised_by(ask, provider.url)
    raised = raised or raised_by(ask, provider.url)  # where nobody is any more
    assert (raised.failure.broke, raised.failure.retryable) == (broke, retryable)


def raised_by(ask: Callable[[str], None], url: str) -> InfrastructureError:
    with pytest.raises(InfrastructureError) as caught, model_errors(Asking()):
        ask(url)
    return caught.value
