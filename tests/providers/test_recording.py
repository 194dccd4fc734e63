"""What a recording sees of a program's requests to its model, and that they pass as they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from pytest_mst.providers.answer_reader import AnswerReader
from pytest_mst.providers.exchange import Exchange
from pytest_mst.providers.failure import FailureKind
from pytest_mst.providers.recording import Recording
from tests.model_provider import (
    Answer,
    Fail,
    Hang,
    ModelProvider,
    Step,
    Tool,
    context_overflow,
    cut,
    say,
    use,
)

pytestmark = pytest.mark.anyio
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages?beta=true", {"model": "test-model", "messages": []}),
    "chat": ("/v1/chat/completions", {"model": "test-model", "messages": []}),
    "responses": ("/v1/responses", {"model": "test-model", "input": []}),
    "gemini": ("/v1beta/models/test-model:generateContent?key=secret-in-query", {"contents": []}),
}
EVERY = pytest.mark.parametrize("api", list(REQUESTS))


def streamed(api: str) -> tuple[str, dict[str, Any]]:
    path, body = REQUESTS[api]
    if api == "gemini":
        return path.replace("generateContent?", "streamGenerateContent?alt=sse&"), body
    return path, {**body, "stream": True}


@asynccontextmanager
async def recorded(
    *script: Step, **options: Any
) -> AsyncIterator[tuple[Recording, httpx2.AsyncClient, ModelProvider]]:
    with ModelProvider(script, **options) as provider, anyio.fail_after(30):
        async with Recording(provider.url) as recording, httpx2.AsyncClient() as http:
            yield recording, http, provider


@EVERY
@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "streamed"])
async def test_an_answer_passes_byte_for_byte_and_its_counts_are_known(
    api: str, is_stream: bool
) -> None:
    path, body = streamed(api) if is_stream else REQUESTS[api]
    step = use(Tool("read", {"id": "ü"}), text="hello ✓", usage=(120, 7))
    async with recorded(step, forever=True) as (recording, http, provider):
        direct = await http.post(provider.url + path, json=body)
        through = await http.post(recording.url + path, json=body)
        assert through.status_code == 200
        assert _shape(through.text) == _shape(direct.text)
        assert through.headers["content-type"] == direct.headers["content-type"]
        assert provider.asked[0].body == provider.asked[1].body
    (exchange,) = recording.log
    assert (exchange.model_call, exchange.model, exchange.status) == (True, "test-model", 200)
    assert (exchange.ended, exchange.kind) == ("whole", None)
    assert (recording.usage.input_tokens, recording.usage.output_tokens) == (120, 7)
    assert recording.failure() is None
    assert "secret-in-query" not in repr(recording.log)


def _shape(text: str) -> str:
    """Take out the numbers that the provider gives each answer."""
    return "".join(one for one in text if not one.isdigit())


@EVERY
@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (Fail(429, retry_after_s=3), FailureKind.RATE_LIMIT),
        (Fail(503), FailureKind.UNAVAILABLE),
        (Fail(529), FailureKind.OVERLOADED),
        (Fail(500), FailureKind.SERVER_ERROR),
        (Fail(401), FailureKind.AUTH),
        (Fail(404), FailureKind.NOT_FOUND),
        (Fail(400), FailureKind.REJECTED),
        (context_overflow(), FailureKind.CONTEXT),
        (cut(), FailureKind.CUT),
    ],
    ids=["429", "503", "529", "500", "401", "404", "400", "context", "cut"],
)
async def test_a_failure_is_known_by_what_the_api_sent(
    api: str, step: Step, kind: FailureKind
) -> None:
    path, body = streamed(api)
    async with recorded(say("fine"), step) as (recording, http, _):
        assert (await http.post(recording.url + path, json=body)).status_code == 200
        try:
            answer = await http.post(recording.url + path, json=body)
            assert isinstance(step, Fail)
            assert answer.status_code == step.status
        except httpx2.HTTPError:
            assert kind is FailureKind.CUT
        failure = recording.failure()
    assert failure is not None
    assert failure.kind is kind
    assert failure.model == "test-model"
    if isinstance(step, Fail):
        assert failure.retry_after_s == step.retry_after_s


@pytest.mark.parametrize(
    ("api", "name", "kind"),
    [
        ("anthropic", "overloaded_error", FailureKind.OVERLOADED),
        ("chat", "rate_limit_exceeded", FailureKind.RATE_LIMIT),
        ("responses", "rate_limit_exceeded", FailureKind.RATE_LIMIT),
        ("gemini", "RESOURCE_EXHAUSTED", FailureKind.RATE_LIMIT),
    ],
)
async def test_an_error_inside_a_stream_is_seen(api: str, name: str, kind: FailureKind) -> None:
    path, body = streamed(api)
    async with recorded(Answer(stream_error=name)) as (recording, http, _):
        await http.post(recording.url + path, json=body)
        failure = recording.failure()
    assert failure is not None
    assert failure.kind is kind


async def test_quota_that_is_used_up_is_told_from_a_limit_of_rate() -> None:
    async with recorded(Fail(429, "billing"), Fail(402, "billing")) as (recording, http, _):
        for api in ("chat", "anthropic"):
            path, body = REQUESTS[api]
            await http.post(recording.url + path, json=body)
        kinds = [one.kind for one in recording.log]
    assert kinds == [FailureKind.QUOTA, FailureKind.QUOTA]


async def test_nobody_there_is_the_network_and_the_program_is_told_as_by_a_gateway() -> None:
    with ModelProvider() as provider:
        url = provider.url
    path, body = REQUESTS["anthropic"]
    with anyio.fail_after(30):
        async with Recording(url) as recording, httpx2.AsyncClient() as http:
            answer = await http.post(recording.url + path, json=body)
    assert answer.status_code == 502
    failure = recording.failure()
    assert failure is not None
    assert failure.kind is FailureKind.NETWORK


async def test_what_comes_after_a_failure_decides() -> None:
    path, body = REQUESTS["chat"]
    async with recorded(Fail(429), say("fine")) as (recording, http, _):
        for _ in range(2):
            await http.post(recording.url + path, json=body)
        assert recording.failure() is None
        assert [one.status for one in recording.log] == [429, 200]
        assert recording.usage.requests == 1


async def test_a_request_on_the_side_is_no_request_to_a_model() -> None:
    async with recorded(say("fine")) as (recording, http, _):
        await http.head(recording.url + "/")
        await http.get(recording.url + "/v1/models")
        await http.post(recording.url + "/v1/messages/count_tokens", json={})
        assert [one.model_call for one in recording.log] == [False] * 3
        assert recording.failure() is None


async def test_a_program_that_goes_away_leaves_its_request_abandoned() -> None:
    path, body = REQUESTS["anthropic"]
    async with recorded(Hang()) as (recording, http, _):
        with anyio.move_on_after(0.3):
            await http.post(recording.url + path, json=body)
        while recording.log[0].ended is None:
            await anyio.lowlevel.checkpoint()
        assert (recording.log[0].status, recording.log[0].ended) == (None, "abandoned")
    assert recording.failure() is None


async def test_who_does_not_know_the_address_is_not_let_in() -> None:
    path, body = REQUESTS["anthropic"]
    async with recorded(say("fine")) as (recording, http, provider):
        root = recording.url.rpartition("/")[0]
        assert (await http.post(root + path, json=body)).status_code == 404
        assert provider.asked == []
    assert recording.log == []


async def test_a_watcher_hears_of_each_request_as_it_comes() -> None:
    path, body = REQUESTS["chat"]
    async with recorded(say("fine"), say("fine")) as (recording, http, _):
        heard = 0
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                nonlocal heard
                while heard < 2:
                    await recording.next_exchange()
                    heard += 1

            tasks.start_soon(watch)
            await anyio.wait_all_tasks_blocked()
            for _ in range(2):
                await http.post(recording.url + path, json=body)
    assert heard == 2


async def test_answers_are_asked_for_uncompressed_so_that_they_can_be_read() -> None:
    path, body = REQUESTS["chat"]
    async with recorded(say("fine")) as (recording, http, provider):
        await http.post(recording.url + path, json=body, headers={"accept-encoding": "gzip"})
        assert provider.asked[0].headers["accept-encoding"] == "identity"


async def test_a_request_that_is_under_way_when_a_recording_ends_was_abandoned() -> None:
    path, body = REQUESTS["anthropic"]
    async with recorded(Hang()) as (recording, http, _), anyio.create_task_group() as tasks:

        async def ask() -> None:
            with pytest.raises(httpx2.HTTPError):
                await http.post(recording.url + path, json=body)

        tasks.start_soon(ask)
        while not recording.log:
            await anyio.lowlevel.checkpoint()
        with anyio.fail_after(1.5):
            await recording.__aexit__(None, None, None)
        assert recording.log[0].ended in ("abandoned", "cut")


@pytest.mark.parametrize(
    "body",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow down"},
        {"error": {"type": "requests", "code": "rate_limit_exceeded", "message": "slow down"}},
        {"error": {"type": "rate_limit_error", "message": "slow down"}},
        [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down"}}],
    ],
    ids=["responses event", "openai", "anthropic", "gemini list"],
)
def test_each_form_of_an_error_is_read(body: object) -> None:
    exchange = Exchange(0, "POST", "/v1/responses", model_call=True, status=200)
    reader = AnswerReader(exchange, is_stream=False)
    reader.feed(json.dumps(body).encode())
    reader.end()
    assert exchange.kind is FailureKind.RATE_LIMIT
    assert exchange.error_says == "slow down"
