"""The scripted client: it does what its script says, through the boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.scripted import ScriptedClient, ScriptedError
from pytest_mst.domain.ending import Broke, InfrastructureError, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.retry import RetryHint, RetryKind
from tests.clients.boundaries import Boundary, call, request

pytestmark = pytest.mark.anyio


async def play(
    *steps: Mapping[str, Any], boundary: Boundary | None = None, **fields: Any
) -> tuple[Trial, TraceLog]:
    """Play a script, and give the ending and the trace."""
    asked = request(boundary, {"script": steps}, **fields)
    with anyio.fail_after(5):
        ending = await ScriptedClient().run(asked)
    return ending, asked.trace


async def test_a_call_is_made_and_is_in_the_trace_with_its_result() -> None:
    boundary = Boundary()
    ending, trace = await play(call("post", {"a": 1}), call("list"), boundary=boundary)
    assert ending == Trial()
    assert boundary.calls == [
        ("chat", "post", {"a": 1}, "call-0"),
        ("chat", "list", None, "call-1"),
    ]
    post, listed = trace.events
    assert (post.server, post.name, post.arguments, post.id) == ("chat", "post", {"a": 1}, "call-0")
    assert post.is_error is False
    assert isinstance(post.output, dict)
    assert post.output["content"][0]["text"] == "post said"
    assert listed.arguments == {}
    assert trace.evidence == "structured"


@pytest.mark.parametrize(("tool", "is_error"), [("refuse", True), ("fail", True), ("odd", False)])
async def test_an_error_is_in_the_trace_as_one_and_the_script_goes_on(
    tool: str, *, is_error: bool
) -> None:
    _, trace = await play(call(tool), {"answer": "went on"})
    assert trace.events[0].is_error is is_error
    assert trace.answer == "went on"


async def test_a_protocol_error_is_kept_as_it_came() -> None:
    _, trace = await play(call("refuse"), {"answer": "{{last.text}}"})
    assert trace.events[0].output == {"error": {"code": -32050, "message": "not today"}}
    assert trace.answer == "not today"


async def test_a_hidden_call_is_made_and_left_out_of_the_trace() -> None:
    boundary = Boundary()
    hidden = {"hidden": {"server": "chat", "tool": "post"}}
    _, trace = await play(hidden, {"answer": "{{last.text}}"}, boundary=boundary)
    assert boundary.tools == ["post"]
    assert trace.events == []
    assert trace.answer == "post said"


async def test_a_claimed_call_is_in_the_trace_and_never_made() -> None:
    boundary = Boundary()
    claim = {"claim": {"server": "chat", "tool": "post", "arguments": {"a": 1}}}
    _, trace = await play(claim, boundary=boundary)
    assert boundary.calls == []
    (event,) = trace.events
    assert (event.server, event.name, event.arguments) == ("chat", "post", {"a": 1})
    assert event.id is None


async def test_an_answer_may_quote_the_last_tools_text_and_the_last_answer_counts() -> None:
    _, trace = await play({"answer": "a"}, call("list"), {"answer": "[{{last.text}}]"})
    assert trace.answer == "[list said]"
    _, trace = await play({"answer": "[{{last.text}}]"})
    assert trace.answer == "[]"
    _, trace = await play(call("list"))
    assert trace.answer is None


async def test_an_error_and_a_limit_end_the_script_as_a_trial() -> None:
    ending, trace = await play({"answer": "a"}, {"error": "confused"}, {"answer": "b"})
    assert ending == Trial(client_error="confused")
    assert trace.answer == "a"
    ending, trace = await play({"stop": "context"}, {"answer": "b"})
    assert ending == Trial(stopped_by="context")
    assert trace.answer is None


async def test_a_failure_and_an_exception_are_raised_and_leave_the_trace_so_far() -> None:
    log = TraceLog(("chat",))
    with pytest.raises(InfrastructureError) as caught:
        await play(call("list"), {"fail": {"broke": "workspace"}}, log=log)
    assert caught.value.failure.broke is Broke.WORKSPACE
    assert len(log.events) == 1
    with pytest.raises(ScriptedError, match="boom"):
        await play({"raise": "boom"})


async def test_a_failure_says_when_to_try_again_and_may_end_with_a_later_try() -> None:
    fail = {"broke": "provider", "retry": "rate_limit", "retryAfter": 8, "tries": 2}
    steps = ({"fail": fail}, {"answer": "done"})
    for number in range(2):
        with pytest.raises(InfrastructureError) as caught:
            await play(*steps, attempt_try=number)
        assert caught.value.retry == RetryHint(RetryKind.RATE_LIMIT, 8)
    ending, trace = await play(*steps, attempt_try=2)
    assert (ending, trace.answer) == (Trial(), "done")


async def test_it_sleeps_as_long_as_it_is_told() -> None:
    with anyio.move_on_after(0.05) as scope:
        await ScriptedClient([{"sleep": 60}]).run(request())
    assert scope.cancelled_caught


@pytest.mark.parametrize(("turns", "made"), [(1, ["a"]), (2, ["a", "b"]), (3, ["a", "b"])])
async def test_every_step_but_a_pause_is_a_turn(turns: int, made: list[str]) -> None:
    boundary = Boundary()
    options = {"script": [call("a"), {"sleep": 0}, call("b"), {"answer": "x"}], "maxTurns": turns}
    ending = await ScriptedClient().run(request(boundary, options))
    assert boundary.tools == made
    assert ending == Trial(stopped_by="turns" if turns < 3 else None)


async def test_each_input_of_a_conversation_goes_on_until_it_is_answered() -> None:
    boundary, log = Boundary(), TraceLog(("chat",))
    steps = [call("a"), {"answer": "1: {{last.text}}"}, call("b"), call("a"), {"answer": "2"}]
    steps += [call("c")]
    made: list[tuple[list[str], str | None]] = []
    for turn in range(4):
        before = len(boundary.calls)
        await play(*steps, boundary=boundary, log=log, turn=turn)
        made.append((boundary.tools[before:], log.answer))
    assert made == [(["a"], "1: a said"), (["b", "a"], "2"), (["c"], "2"), ([], "2")]
    ids = [event.id for event in log.events]
    assert len(set(ids)) == len(ids) == 4


async def test_scripts_are_one_for_each_trial_and_repeat() -> None:
    options = {"scripts": [[{"answer": "even"}], [{"answer": "odd"}]]}
    answers = []
    for trial in range(3):
        asked = request(options=options, trial=trial)
        await ScriptedClient().run(asked)
        answers.append(asked.trace.answer)
    assert answers == ["even", "odd", "even"]


async def test_a_script_of_its_own_stands_in_for_the_options() -> None:
    client = ScriptedClient(({"answer": "mine"},))
    asked = request(options={"script": [{"answer": "theirs"}]})
    client.check(asked.options)
    await client.run(asked)
    assert asked.trace.answer == "mine"
    client.check({})
    empty = request()
    assert await ScriptedClient([]).run(empty) == Trial()
    assert empty.trace.answer is None


async def test_one_client_plays_several_attempts_at_once() -> None:
    client = ScriptedClient([call("a"), {"sleep": 0.01}, {"answer": "{{last.text}}"}])
    asked = [request() for _ in range(5)]
    async with anyio.create_task_group() as tasks:
        for one in asked:
            tasks.start_soon(client.run, one)
    assert [one.trace.answer for one in asked] == ["a said"] * 5


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        ({"scrip": []}, "scrip", "nothing; did you mean 'script'?"),
        ({"script": [], "temperature": 1}, "temperature", "nothing; valid: script, scripts, maxT"),
        ({"script": [], "maxTurn": 1}, "maxTurn", "did you mean 'maxTurns'?"),
        ({"script": [], "maxTurns": 0}, "maxTurns", "a positive whole number, not number 0"),
        ({"script": [{"anser": "x"}]}, "script[0]", "did you mean 'answer'?"),
        ({}, "script", "neither"),
    ],
    ids=str,
)
def test_options_are_checked_before_anything_starts(options: Any, key: str, expected: str) -> None:
    with pytest.raises(OptionsError) as caught:
        ScriptedClient().check(options)
    assert caught.value.key == key
    assert expected in caught.value.expected


def test_a_script_in_python_is_checked_like_one_in_a_file() -> None:
    with pytest.raises(OptionsError, match="did you mean 'call'"):
        ScriptedClient([{"cal": {}}]).check({})
