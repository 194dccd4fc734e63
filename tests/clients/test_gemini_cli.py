"""Gemini CLI, really run, against a model provider on loopback: how each of its ends ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_mst.clients.gemini_cli import GeminiCliClient
from pytest_mst.domain.ending import Trial
from tests.clients.agent_ends import WRITE, EndsOfEveryAgent, said_in_a_note
from tests.clients.npm_clients import program_from_npm
from tests.clients.real_attempts import RealProgram
from tests.model_provider import (
    Asked,
    Fail,
    Hang,
    Refuse,
    Step,
    Tool,
    cut,
    say,
    use,
)

pytestmark = pytest.mark.anyio

KEY = "loopback-key-google"


@pytest.fixture(scope="session")
def gemini(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return program_from_npm("gemini-cli", request, tmp_path_factory)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)


class LateAfterTwo:
    """Plays a script on for ever; some time after the second request a minute passes at once.

    What waits for a deadline in the loop's time finds that it has come, however long the program
    took to start.
    """

    def __init__(self, script: Sequence[Step], *, after_s: float) -> None:
        self._script = script
        self._after_s = after_s
        self._loop = asyncio.get_running_loop()

    def __call__(self, asked: Asked) -> Step:
        if asked.number == 1:
            self._loop.call_soon_threadsafe(self._loop.call_later, self._after_s, self._pass)
        return self._script[min(asked.number, len(self._script) - 1)]

    def _pass(self) -> None:
        time = self._loop.time
        setattr(self._loop, "time", lambda: time() + 60)  # noqa: B010 - mypy: it is a method


class Setting(RealProgram):
    """Makes attempts by Gemini CLI."""

    client = GeminiCliClient()
    model = "gemini-2.5-flash"
    key_variables = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    models_begin = "gemini-"
    joins = False
    retries = 0


@pytest.fixture
def setting(gemini: str, tmp_path: Path) -> Setting:
    return Setting(gemini, tmp_path)


class TestEnds(EndsOfEveryAgent):
    """How its attempts end, as those of every agent do."""

    agent = Setting


async def test_a_refusal_without_a_word_is_a_trial_that_says_so(setting: Setting) -> None:
    await said_in_a_note(setting, Refuse(""))


@pytest.mark.parametrize("connect", ["url", "relay"])
async def test_what_it_did_is_in_the_trace_and_agrees_with_the_record(
    setting: Setting, connect: str
) -> None:
    script = [use(Tool("read_note"), Tool("write_note", {"text": "hi"})), say("all done")]
    made = await setting.make(script, options={"connect": connect}, label="our_notes")
    assert made.collected.ending == Trial()
    assert made.collected.events == [("read_note", False), ("write_note", False)]
    assert {one["server"] for one in made.trace["events"]} == {"our_notes"}
    assert made.collected.stored_writes == ["write_note"]
    assert made.collected.unreported == []
    assert made.collected.stored["agreement"]["unrecordedWrites"] == []
    assert made.trace["answer"] == "all done"
    usage = made.trace["usage"]
    assert (usage["requests"], usage["inputTokens"], usage["outputTokens"]) == (2, 20, 10)
    assert usage["costUsd"] > 0
    assert "builtinTools" not in made.trace
    assert "notes" not in made.trace
    assert all(name.startswith("mcp_our-notes_") for name in made.provider.asked[0].tools)


async def test_its_own_tools_stay_off_unless_asked_for_and_are_then_named(setting: Setting) -> None:
    call = Tool("run_shell_command", {"command": "echo here", "description": "say so"})
    options = {"builtinTools": ["run_shell_command"], "system": "Speak as a desk clerk would."}
    made = await setting.make([use(call), say("ok")], options=options)
    assert made.collected.ending == Trial()
    (event,) = made.trace["events"]
    assert (event["kind"], event["source"]) == ("command", "builtin")
    assert made.trace["builtinTools"] == ["run_shell_command"]
    assert "Speak as a desk clerk would." in made.provider.asked[0].text


@pytest.mark.parametrize("given", ["/help me @you, or write to me@example.com", "/quit"])
async def test_an_input_is_no_command_of_its_own(setting: Setting, given: str) -> None:
    made = await setting.make([say("ok")], case={"input": given})
    assert made.collected.ending == Trial()
    assert given in made.provider.asked[0].text


async def test_what_it_gets_over_by_itself_is_a_trial_and_kept(setting: Setting) -> None:
    script: list[Step] = [WRITE, Fail(429, "rate"), say("done")]
    made = await setting.make(script, options={"maxRetries": 1})
    assert made.collected.ending == Trial()
    assert made.trace["recoveredErrors"] == [{"error_status": 429, "error": "rate limit"}]
    assert made.collected.stored_writes == ["write_note"]
    assert made.asked == 3


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "rate_limit"), (503, "unavailable"), (529, "overloaded")]
)
async def test_an_api_that_has_no_time_is_tried_again_from_the_start_and_is_no_trial(
    setting: Setting, status: int, kind: str
) -> None:
    made = await setting.make([Fail(status, "rate" if status == 429 else "plain")], forever=True)
    assert made.ending == ("provider", True)
    assert made.collected.failure.accepted is False
    assert made.collected.failure.reason.startswith(f"retries exhausted (2 attempts, {kind})")
    assert len(made.waits_s) == 1
    assert made.asked == 2
    assert made.collected.stored_writes == []


@pytest.mark.parametrize("recorded", [True, False])
async def test_an_api_that_fails_after_a_write_is_no_trial_and_not_tried_again(
    setting: Setting, *, recorded: bool
) -> None:
    made = await setting.make(
        [WRITE, Fail(429)], forever=True, options={"recordProvider": recorded}
    )
    assert made.ending == ("provider", True)
    assert made.waits_s == []
    assert made.asked == 2
    assert made.collected.stored_writes == ["write_note"]


async def test_an_api_that_is_not_there_is_a_failure_of_the_network(setting: Setting) -> None:
    made = await setting.make([], options={"baseUrl": "http://127.0.0.1:9"})
    assert made.ending == ("network", True)
    assert len(made.waits_s) == 1


async def test_an_answer_that_is_always_cut_is_no_trial(setting: Setting) -> None:
    made = await setting.make([WRITE, cut(1)], forever=True)
    assert made.ending == ("network", True)
    assert made.collected.stored_writes == ["write_note"]


async def test_a_rejected_request_is_not_taken_for_a_full_context(setting: Setting) -> None:
    made = await setting.make([WRITE, Fail(400)], forever=True)
    assert made.ending == ("provider", False)
    assert made.collected.stored_writes == ["write_note"]


async def test_its_own_limit_of_turns_is_a_trial(setting: Setting) -> None:
    again = use(Tool("write_note", {"text": "hi again"}))
    made = await setting.make([WRITE, again, say("never")], options={"maxTurns": 2})
    assert made.collected.ending == Trial(stopped_by="turns")
    assert made.asked == 2
    assert made.collected.stored_writes == ["write_note", "write_note"]


@pytest.mark.parametrize("turns", [None, 5])
async def test_a_model_that_goes_round_in_circles_is_ended_by_it_and_is_a_trial(
    setting: Setting, turns: int | None
) -> None:
    options = {} if turns is None else {"maxTurns": turns}
    made = await setting.make([WRITE], forever=True, options=options)
    assert made.collected.ending == Trial(stopped_by=None if turns is None else "turns")
    assert len(made.trace.get("notes", [])) == (1 if turns is None else 0)
    assert made.collected.events == [("write_note", False)] * 4  # the fifth call is not made
    assert made.collected.stored_writes == ["write_note"] * 4


async def test_a_client_that_never_comes_to_its_server_is_no_trial_whatever_it_says(
    setting: Setting,
) -> None:
    without = {"args": ["--allowed-mcp-server-names", "another"]}
    made = await setting.make([say("Done, record created.")], options=without)
    assert made.ending == ("setup", True)
    assert "'notes'" in made.collected.failure.reason


async def test_our_deadline_ends_it_with_its_trace_kept(setting: Setting) -> None:
    made = await setting.make(LateAfterTwo([WRITE, Hang()], after_s=0.2))
    assert made.ending == ("deadline", True)
    assert made.collected.events == [("write_note", False)]
    assert made.collected.stored_writes == ["write_note"]


async def test_its_own_limit_of_time_is_a_trial_with_its_trace_kept(setting: Setting) -> None:
    late = LateAfterTwo([WRITE, Hang()], after_s=0.2)
    made = await setting.make(late, options={"maxDurationMs": 40_000}, timeout_s=300)
    assert made.collected.ending == Trial(stopped_by="time")
    assert made.collected.events == [("write_note", False)]


async def test_a_kill_while_the_api_has_no_time_is_a_failure_of_the_provider(
    setting: Setting,
) -> None:
    late = LateAfterTwo([WRITE, Fail(503)], after_s=1.5)  # it asks again after 3.5 s or more
    made = await setting.make(late, options={"maxRetries": 9})
    assert made.ending == ("provider", True)
    assert made.collected.stored_writes == ["write_note"]
