"""Every API and every fault of it ends as a type, whether answers are streamed or not."""

from __future__ import annotations

import anyio
import pytest

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.retry import RetryKind
from pytest_mst.providers.endpoint import Api
from pytest_mst.providers.failure import FailureKind, ProviderError
from tests.model_provider import (
    Fail,
    ModelProvider,
    Raw,
    Step,
    Tool,
    context_overflow,
    cut,
    say,
    use,
)
from tests.providers.asking import (
    EVERY_API,
    Waiting,
    asked_again,
    asker,
    endpoint,
    one_tool,
    question,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("api", EVERY_API),
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"]),
]
BOUND_S = 20


async def failure_after(step: Step, api: Api, *, stream: bool) -> ProviderError:
    """Return what a request comes to that is answered so, and is not made again."""
    with ModelProvider([step]) as provider, anyio.fail_after(BOUND_S):
        async with asker(endpoint(provider, api), stream=stream) as asking:
            with pytest.raises(ProviderError) as raised:
                await asking.ask(question(), {}, one_tool())
            assert len(provider.asked) == 1, "an SDK has retries of its own"
    return raised.value


async def test_an_answer_with_calls_comes_whole_with_its_usage(api: Api, stream: bool) -> None:
    steps = [use(Tool("read_item", {"id": "1"}), Tool("read_item", {"id": "2"})), say("done")]
    with ModelProvider(steps) as provider, anyio.fail_after(BOUND_S):
        async with asker(endpoint(provider, api), stream=stream) as asking:
            first = await asking.ask(question(), {}, one_tool())
            second = await asking.ask(question(), {}, one_tool())
        assert [one.tools for one in provider.asked] == [("read_item",)] * 2
        assert [one.stream for one in provider.asked] == [stream] * 2
    assert [one.args_as_dict() for one in first.tool_calls] == [{"id": "1"}, {"id": "2"}]
    assert second.text == "done"
    assert (asking.usage.requests, asking.usage.input_tokens, asking.usage.output_tokens) == (
        2,
        20,
        10,
    )


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (Fail(500), (FailureKind.SERVER_ERROR, Broke.PROVIDER, Scope.TRIAL)),
        (Fail(401), (FailureKind.AUTH, Broke.PROVIDER, Scope.VARIANT)),
        (Fail(404), (FailureKind.NOT_FOUND, Broke.SETUP, Scope.VARIANT)),
        (Fail(400), (FailureKind.REJECTED, Broke.PROVIDER, Scope.TRIAL)),
        (context_overflow(), (FailureKind.CONTEXT, Broke.SETUP, Scope.CASE)),
    ],
    ids=["500", "401", "404", "400", "context"],
)
async def test_a_failure_that_is_not_waited_for_is_told_by_its_kind(
    api: Api, stream: bool, step: Fail, told: tuple[FailureKind, Broke, Scope]
) -> None:
    error = await failure_after(step, api, stream=stream)
    assert error.failure.status == step.status
    assert error.failure.hint is None
    ending = error.failure.infrastructure()
    assert (error.failure.kind, ending.broke, ending.scope) == told
    assert ending.retryable is (step.status == 500)


async def test_a_self_hosted_wording_of_a_context_overflow_is_one_too(
    api: Api, stream: bool
) -> None:
    words = (
        "You sent 40210 input tokens and asked for 0 output tokens, but the model's context"
        " length is only 32768 tokens"
    )
    error = await failure_after(Fail(400, "context", message=words), api, stream=stream)
    assert error.failure.kind is FailureKind.CONTEXT
    assert not error.failure.retryable


async def test_quota_that_is_used_up_is_told_from_a_limit_of_rate(api: Api, stream: bool) -> None:
    step = Fail(402 if api == "anthropic" else 429, "billing")
    if api == "google":  # has no code of its own for it
        step = Fail(402)
    error = await failure_after(step, api, stream=stream)
    assert error.failure.kind is FailureKind.QUOTA
    assert not error.failure.retryable


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Fail(429, retry_after_s=7), RetryKind.RATE_LIMIT),
        (Fail(503), RetryKind.UNAVAILABLE),
        (Fail(529), RetryKind.OVERLOADED),
        (cut(), RetryKind.NETWORK),
    ],
    ids=["429", "503", "529", "cut"],
)
async def test_what_had_no_effect_is_asked_again(
    api: Api, stream: bool, step: Step, kind: RetryKind
) -> None:
    waiting = Waiting()
    with ModelProvider([step, step, say("at last")]) as provider, anyio.fail_after(BOUND_S):
        text = await asked_again(endpoint(provider, api), stream=stream, waiting=waiting)
        assert len(provider.asked) == 3
    assert text == "at last"
    assert [hint.kind for _, hint, _ in waiting.waits] == [kind, kind]
    assert [next_try for *_, next_try in waiting.waits] == [2, 3]
    if isinstance(step, Fail) and step.retry_after_s is not None:
        assert {hint.after_s for _, hint, _ in waiting.waits} == {7}


async def test_nobody_there_is_the_network_and_nothing_was_sent(api: Api, stream: bool) -> None:
    with ModelProvider() as provider:
        place = endpoint(provider, api)
    waiting = Waiting(tries=2)
    with anyio.fail_after(BOUND_S), pytest.raises(InfrastructureError) as raised:
        await asked_again(place, stream=stream, waiting=waiting)
    assert raised.value.failure.broke is Broke.NETWORK
    assert [hint.kind for _, hint, _ in waiting.waits] == [RetryKind.NETWORK] * 2


async def test_no_key_is_in_any_words(api: Api, stream: bool) -> None:
    with ModelProvider([Fail(401)]) as provider:
        place = endpoint(provider, api)
        async with asker(place, stream=stream) as asking:
            with pytest.raises(ProviderError) as raised:
                await asking.ask(question(), {}, one_tool())
    ending = raised.value.failure.infrastructure()
    assert "loopback-key" not in f"{place!r} {place.label} {ending!r} {raised.value}"


async def test_an_answer_that_is_none_of_the_apis_is_unreadable(api: Api, stream: bool) -> None:
    error = await failure_after(Raw(), api, stream=stream)
    assert error.failure.kind is FailureKind.UNREADABLE
    assert error.failure.infrastructure().broke is Broke.PROVIDER


async def test_no_key_follows_a_redirect_to_another_address(api: Api, stream: bool) -> None:
    with ModelProvider([say("caught")]) as other:
        step = Raw(307, headers={"location": f"{other.url}/v1/messages"})
        error = await failure_after(step, api, stream=stream)
        assert (other.asked, other.other) == ([], [])
    assert error.failure.hint is None
