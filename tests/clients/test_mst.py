"""The client `mst`: how an attempt of a model with the servers' tools goes, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import pytest

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.limits import run_within_limits
from pytest_mst.clients.mst import MstClient
from pytest_mst.domain.ending import (
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Trial,
)
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.retry import RetryHint, RetryKind
from tests.clients.boundaries import Boundary, request
from tests.model_provider.server import ModelProvider, Script
from tests.model_provider.steps import (
    Fail,
    OutputLimit,
    Refuse,
    Tool,
    context_overflow,
    cut,
    say,
    use,
)

pytestmark = pytest.mark.anyio

MODELS = ("claude-loopback", "gpt-4o", "openai-responses:gpt-4o", "gemini-2.5-flash")
READ_AND_POST = use(Tool("read", {"id": "1"}), Tool("post", {"id": "2"}))


class Turns:
    """Waits for nothing, as often as it may, and keeps why."""

    def __init__(self, tries: int = 4) -> None:
        self.tries = tries
        self.waited: list[tuple[RetryKind, int]] = []
        self.asked_for_s: list[float | None] = []

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        if next_try > self.tries:
            raise InfrastructureError.of(failure)
        self.waited.append((hint.kind, next_try))
        self.asked_for_s.append(hint.after_s)
        await anyio.lowlevel.checkpoint()

    def answered(self) -> None:
        pass


class Ran:
    """One attempt through the loopback provider."""

    def __init__(self, provider: ModelProvider, boundary: Boundary, turns: Turns) -> None:
        self.provider = provider
        self.boundary = boundary
        self.turns = turns
        self.log = TraceLog(("chat",))

    async def run(self, model: str = MODELS[0], turn: int = 0, **options: Any) -> Trial:
        asked = request(
            self.boundary, options, log=self.log, model=model, turns=self.turns, turn=turn
        )
        MstClient().check(asked.options)
        with anyio.fail_after(20):
            return await run_within_limits(MstClient(), asked)

    async def failure(self, **options: Any) -> InfrastructureFailure:
        with pytest.raises(InfrastructureError) as caught:
            await self.run(**options)
        return caught.value.failure


@pytest.fixture
def playing(monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def play(script: Script, *, tries: int = 4, **how: Any) -> Iterator[Ran]:
        with ModelProvider(script, **how) as provider:
            for name, value in provider.environment.items():
                monkeypatch.setenv(name, value)
            yield Ran(provider, Boundary(), Turns(tries))

    return play


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
async def test_a_model_calls_tools_side_by_side_and_answers(
    playing: Any, model: str, *, stream: bool
) -> None:
    with playing([READ_AND_POST, say("it is done")]) as ran:
        assert await ran.run(model, stream=stream) == Trial()
    assert ran.log.answer == "it is done"
    assert sorted(ran.boundary.tools) == ["post", "read"]
    joined = {join for *_, join in ran.boundary.calls}
    read, post = ran.log.events
    assert {read.id, post.id} == joined
    assert (read.server, read.name, read.arguments) == ("chat", "read", {"id": "1"})
    assert (post.server, post.name, post.is_error) == ("chat", "post", False)
    assert "read said" in str(ran.provider.asked[1].body)
    assert "post said" in str(ran.provider.asked[1].body)
    assert ran.log.usage["requests"] == 2
    assert ran.log.usage["inputTokens"] == 20
    assert {"modelMs", "toolsMs"} <= set(ran.log.usage)


@pytest.mark.parametrize("tool", ["refuse", "fail"])
async def test_a_call_that_failed_is_shown_to_the_model_and_it_goes_on(
    playing: Any, tool: str
) -> None:
    with playing([use(Tool(tool)), say("that did not work")]) as ran:
        assert await ran.run() == Trial()
    assert ran.log.events[0].is_error
    assert ran.log.answer == "that did not work"
    words = {"refuse": "not today", "fail": "fail said"}[tool]
    assert words in str(ran.provider.asked[1].body)


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        (Tool("read", '{"id": '), "no JSON object"),
        (Tool("read", '["a"]'), "no JSON object"),
        (Tool("vanish", {}), "There is no tool"),
    ],
)
async def test_a_call_that_is_none_is_said_back_and_not_sent(
    playing: Any, tool: Tool, told: str
) -> None:
    with playing([use(tool), say("sorry")]) as ran:
        assert await ran.run("gpt-4o") == Trial()
    assert ran.boundary.calls == []
    assert ran.log.events[0].is_error
    assert told in str(ran.provider.asked[1].body)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, RetryKind.RATE_LIMIT),
        (503, RetryKind.UNAVAILABLE),
        (529, RetryKind.OVERLOADED),
    ],
)
async def test_a_request_that_was_refused_for_now_is_made_again(
    playing: Any, status: int, kind: RetryKind
) -> None:
    with playing([use(Tool("read")), Fail(status, retry_after_s=3), say("ok")]) as ran:
        assert await ran.run() == Trial()
    assert ran.turns.waited == [(kind, 2)]
    assert ran.turns.asked_for_s == [3]
    assert ran.boundary.tools == ["read"]
    assert ran.log.answer == "ok"


@pytest.mark.parametrize("model", MODELS)
async def test_a_limit_for_ever_ends_as_a_provider_failure_after_all_tries(
    playing: Any, model: str
) -> None:
    with playing([Fail(429, "rate")], forever=True, tries=3) as ran:
        failure = await ran.failure(model=model)
    assert (failure.broke, failure.retryable) == (Broke.PROVIDER, True)
    assert len(ran.provider.asked) == 3


@pytest.mark.parametrize(
    "step", [Fail(401, "auth"), Fail(429, "billing"), Fail(404, "not_found"), Fail(400)]
)
async def test_what_a_retry_cannot_help_is_asked_once(playing: Any, step: Fail) -> None:
    with playing([step], forever=True) as ran:
        failure = await ran.failure(model="gpt-4o")
    assert not failure.retryable
    assert len(ran.provider.asked) == 1
    assert ran.turns.waited == []


async def test_a_key_that_no_one_set_is_a_setup_failure_naming_the_variable(
    playing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with playing([say("never")]) as ran:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        failure = await ran.failure()
    assert (failure.broke, failure.retryable) == (Broke.SETUP, False)
    assert "ANTHROPIC_API_KEY" in failure.reason
    assert MODELS[0] in failure.reason
    assert ran.provider.asked == []


@pytest.mark.parametrize("model", MODELS)
async def test_an_input_longer_than_the_context_is_a_setup_failure(
    playing: Any, model: str
) -> None:
    with playing([context_overflow()]) as ran:
        failure = await ran.failure(model=model)
    assert (failure.broke, failure.retryable) == (Broke.SETUP, False)


@pytest.mark.parametrize("model", MODELS)
async def test_a_context_that_its_own_turns_filled_is_a_trial(playing: Any, model: str) -> None:
    with playing([use(Tool("read")), context_overflow()]) as ran:
        assert await ran.run(model) == Trial(stopped_by="context")
    assert len(ran.log.events) == 1


@pytest.mark.parametrize("model", MODELS)
async def test_a_refusal_is_a_trial_that_says_so(playing: Any, model: str) -> None:
    with playing([Refuse()]) as ran:
        assert await ran.run(model) == Trial()
    assert ran.log.notes


@pytest.mark.parametrize("model", MODELS)
async def test_an_answer_cut_at_its_limit_is_a_trial_that_says_so(playing: Any, model: str) -> None:
    with playing([OutputLimit("half of")]) as ran:
        assert await ran.run(model, maxTokens=5) == Trial()
    assert ran.log.answer == "half of"
    assert any("maxTokens" in note for note in ran.log.notes)


@pytest.mark.parametrize("model", ["claude-loopback", "gpt-4o"])
async def test_a_stream_cut_before_anything_was_acted_on_is_asked_again(
    playing: Any, model: str
) -> None:
    with playing([cut(1), say("whole")]) as ran:
        assert await ran.run(model, stream=True) == Trial()
    assert ran.log.answer == "whole"
    assert [kind for kind, _ in ran.turns.waited] == [RetryKind.NETWORK]


@pytest.mark.parametrize(
    ("limit", "ending"),
    [
        ({"maxTurns": 2}, Trial(stopped_by="turns")),
        ({"maxToolCalls": 2}, Trial(stopped_by="calls")),
    ],
)
async def test_running_out_of_a_limit_of_its_own_is_a_trial(
    playing: Any, limit: Mapping[str, int], ending: Trial
) -> None:
    with playing([use(Tool("read"))], forever=True) as ran:
        assert await ran.run(**limit) == ending
    assert ran.boundary.tools == ["read", "read"]


async def test_a_conversation_goes_on_with_what_was_said_before(playing: Any) -> None:
    with playing([use(Tool("read")), say("first"), say("second")]) as ran:
        await ran.run()
        assert await ran.run(turn=1) == Trial()
    assert ran.log.answer == "second"
    assert "first" in str(ran.provider.asked[2].body)
    assert "read said" in str(ran.provider.asked[2].body)


async def test_what_is_set_reaches_the_model(playing: Any) -> None:
    with playing([say("ok")]) as ran:
        await ran.run(system="be brief", temperature=0.25, maxTokens=77)
    body = ran.provider.asked[0].body
    assert "be brief" in str(body["system"])
    assert (body["temperature"], body["max_tokens"]) == (0.25, 77)


@pytest.mark.parametrize(
    ("options", "key"),
    [({"temprature": 1}, "temprature"), ({"maxTokens": 0}, "maxTokens"), ({"system": 3}, "system")],
)
def test_an_option_that_is_none_is_refused(options: Mapping[str, Any], key: str) -> None:
    with pytest.raises(OptionsError) as caught:
        MstClient().check(options)
    assert key in str(caught.value)


@pytest.mark.parametrize("model", MODELS)
async def test_a_lone_surrogate_in_an_input_is_no_failure_of_the_provider(
    playing: Any, model: str
) -> None:
    with playing([READ_AND_POST, say("done")]) as ran:
        assert await ran.run(model, system="be \udfff brief") == Trial()
