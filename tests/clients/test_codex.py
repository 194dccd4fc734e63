"""Codex, really run, against a model provider on loopback: how each of its ends ends."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_mst.clients.codex import CodexClient
from pytest_mst.clients.codex_transcript import OF_RESOURCES
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.errors import OptionsError
from tests.clients.agent_ends import WRITE, EndsOfEveryAgent, not_helped_by_waiting
from tests.clients.npm_clients import program_from_npm
from tests.clients.real_attempts import RealProgram
from tests.model_provider import (
    Asked,
    Fail,
    Hang,
    Step,
    Tool,
    cut,
    say,
    use,
)

pytestmark = pytest.mark.anyio

READ = use(Tool("read_note"))
KILLED = """#!/bin/sh
(
  {codex} "$@" | while read -r line; do
    echo "$line"
    case "$line" in *mcp_tool_call*completed*) kill -KILL 0 ;; esac
  done
)
"""
KEY = "loopback-key-openai"


@pytest.fixture(scope="session")
def codex(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return program_from_npm("codex", request, tmp_path_factory)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


class Setting(RealProgram):
    """Makes attempts by Codex."""

    client = CodexClient()
    model = "gpt-5"
    key_variables = ("OPENAI_API_KEY",)
    models_begin = "gpt-"
    api_path = "/v1"


@pytest.fixture
def setting(codex: str, tmp_path: Path) -> Setting:
    return Setting(codex, tmp_path)


class TestEnds(EndsOfEveryAgent):
    """How its attempts end, as those of every agent do."""

    agent = Setting


async def test_an_account_that_is_used_up_is_not_waited_for(setting: Setting) -> None:
    await not_helped_by_waiting(setting, Fail(429, "billing"), "provider")


def running_with(mark: str) -> list[str]:
    """Name the processes that have a variable in their environment."""
    found = []
    for one in Path("/proc").iterdir():
        with suppress(OSError):
            if one.name.isdigit() and mark.encode() in (one / "environ").read_bytes().split(b"\0"):
                found.append(one.name)
    return found


@pytest.mark.parametrize("connect", ["url", "relay"])
async def test_what_it_did_is_in_the_trace_and_joined_with_the_record(
    setting: Setting, connect: str
) -> None:
    script = [use(Tool("read_note"), Tool("write_note", {"text": "hi"})), say("all done")]
    made = await setting.make(script, options={"connect": connect})
    assert made.collected.ending == Trial()
    assert made.collected.events == [("read_note", False), ("write_note", False)]
    assert [one["server"] for one in made.trace["events"]] == ["notes", "notes"]
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined
    assert made.collected.unreported == []
    assert made.trace["answer"] == "all done"
    usage = made.trace["usage"]
    assert (usage["requests"], usage["inputTokens"], usage["outputTokens"]) == (2, 20, 10)
    assert usage["costUsd"] > 0
    assert usage["costSource"] == "genai-prices"
    assert "builtinTools" not in made.trace
    offered = made.provider.asked[0].tools
    assert set(offered) >= {"mcp__notes::read_note", "mcp__notes::write_note"}
    own = {name for name in offered if not name.startswith("mcp__notes::")}
    assert own <= {"request_user_input", *OF_RESOURCES}


async def test_calls_that_are_the_same_are_joined_one_by_one(setting: Setting) -> None:
    same = Tool("write_note", {"text": "hi"})
    made = await setting.make([use(same, same), WRITE, say("done")])
    assert made.collected.ending == Trial()
    assert made.collected.stored_writes == ["write_note"] * 3
    assert made.joined
    assert len({one["id"] for one in made.trace["events"]}) == 3


async def test_its_own_tools_stay_off_unless_asked_for_and_are_then_named(setting: Setting) -> None:
    script = [use(Tool("exec_command", {"cmd": "echo here"})), say("ok")]
    made = await setting.make(script, options={"builtinTools": ["shell"]})
    assert made.collected.ending == Trial()
    (event,) = made.trace["events"]
    assert (event["kind"], event["source"], event["name"]) == ("command", "builtin", "shell")
    assert made.trace["builtinTools"] == ["shell"]


async def test_a_system_prompt_is_added_to_its_own(setting: Setting) -> None:
    words = 'Speak as a "desk clerk" would \u2014 \U0001f600.'
    made = await setting.make([say("ok")], options={"system": words})
    assert made.collected.ending == Trial()
    assert words in str(made.provider.asked[0].body["input"])


async def test_an_input_that_looks_like_an_option_is_one_input(setting: Setting) -> None:
    made = await setting.make([say("ok")], case={"input": "--help"})
    assert made.collected.ending == Trial()
    assert made.asked == 1


@pytest.mark.parametrize("status", [503, 529])
async def test_what_it_gets_over_by_itself_is_a_trial_and_kept(
    setting: Setting, status: int
) -> None:
    made = await setting.make([WRITE, Fail(status), say("done")])
    assert made.collected.ending == Trial()
    (error,) = made.trace["recoveredErrors"]
    assert error["error_status"] == status
    assert made.collected.stored_writes == ["write_note"]
    assert made.asked == 3


async def test_a_429_after_a_write_is_got_over_where_the_api_says_when(setting: Setting) -> None:
    made = await setting.make([WRITE, Fail(429, "rate", retry_after_s=0), say("done")])
    assert made.collected.ending == Trial()
    (error,) = made.trace["recoveredErrors"]
    assert error["error_status"] == 429
    assert made.waits_s == []
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined


async def test_a_429_before_anything_was_done_is_waited_for_where_it_does_not(
    setting: Setting,
) -> None:
    made = await setting.make([Fail(429, "rate"), WRITE, say("done")])
    assert made.collected.ending == Trial()
    assert len(made.waits_s) == 1
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
    assert made.asked == (2 if status == 429 else 4)
    assert made.collected.stored_writes == []


@pytest.mark.parametrize("status", [429, 503, 529, 500])
async def test_an_api_that_fails_after_a_write_is_no_trial_and_not_tried_again(
    setting: Setting, status: int
) -> None:
    made = await setting.make([WRITE, Fail(status)], forever=True, retries=0)
    assert made.ending == ("provider", True)
    assert made.waits_s == []
    assert made.asked == 2
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined


async def test_an_api_that_is_not_there_is_a_failure_of_the_network(setting: Setting) -> None:
    made = await setting.make([], options={"baseUrl": "http://127.0.0.1:9/v1"})
    assert made.ending == ("network", True)
    assert len(made.waits_s) == 1
    assert made.collected.failure.accepted is False


@pytest.mark.parametrize("written", [False, True])
async def test_an_answer_that_is_always_cut_is_no_trial(setting: Setting, *, written: bool) -> None:
    made = await setting.make([*([WRITE] if written else []), cut(2)], forever=True, retries=0)
    assert made.ending == ("network", True)
    assert made.collected.stored_writes == (["write_note"] if written else [])


async def test_its_limit_of_turns_is_a_trial(setting: Setting) -> None:
    made = await setting.make([WRITE, READ], forever=True, options={"maxTurns": 2})
    assert made.collected.ending == Trial(stopped_by="turns")
    assert made.asked <= 3
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined


async def test_a_tool_that_fails_is_told_to_the_model_and_the_trial_goes_on(
    setting: Setting,
) -> None:
    made = await setting.make([use(Tool("fail")), say("it is down")])
    assert made.collected.ending == Trial()
    assert made.collected.events == [("fail", True)]


async def test_a_client_that_never_comes_to_its_server_is_no_trial_whatever_it_says(
    setting: Setting,
) -> None:
    made = await setting.make(
        [say("Done, record created.")],
        options={"args": ["-c", "mcp_servers.notes.enabled=false"]},
    )
    assert made.ending == ("setup", True)
    assert "'notes'" in made.collected.failure.reason
    assert made.asked == 1


async def test_our_deadline_ends_it_with_its_trace_kept_and_all_that_it_started(
    setting: Setting, tmp_path: Path
) -> None:
    ran: list[str] = []

    def step(asked: Asked) -> Step:
        ran.extend(running_with(f"MARK={tmp_path}"))
        return Hang() if asked.turn else WRITE

    made = await setting.make(step, timeout_s=8, options={"env": {"MARK": str(tmp_path)}})
    assert made.ending == ("deadline", True)
    assert made.collected.events == [("write_note", False)]
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined
    assert ran
    assert running_with(f"MARK={tmp_path}") == []


async def test_a_call_that_is_cut_off_has_its_id_too(setting: Setting) -> None:
    made = await setting.make([WRITE, use(Tool("slow", {"seconds": 30}))], timeout_s=8)
    assert made.ending == ("deadline", True)
    assert made.collected.events == [("write_note", False), ("slow", None)]
    assert made.joined
    assert all(one["id"] for one in made.trace["events"])


async def test_its_own_limit_of_time_is_a_trial_with_its_trace_kept(setting: Setting) -> None:
    made = await setting.make([WRITE, Hang()], options={"maxDurationMs": 8000})
    assert made.collected.ending == Trial(stopped_by="time")
    assert made.collected.events == [("write_note", False)]
    assert made.collected.stored_writes == ["write_note"]


async def test_a_kill_while_the_api_has_no_time_is_a_failure_of_the_provider(
    setting: Setting,
) -> None:
    made = await setting.make([WRITE, Fail(503)], forever=True, timeout_s=8, retries=50)
    assert made.ending == ("provider", True)
    assert made.collected.stored_writes == ["write_note"]


async def test_a_program_that_is_killed_says_nothing_of_its_ending(
    setting: Setting, tmp_path: Path
) -> None:
    around = tmp_path / "codex"  # kills itself and its group as soon as a call was made
    around.write_text(KILLED.format(codex=setting.program))
    around.chmod(0o755)
    made = await setting.make([WRITE, Hang()], options={"command": str(around)})
    assert made.ending == ("client-app", True)
    assert made.collected.events == [("write_note", False)]
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined


async def test_calls_that_it_fails_by_itself_are_no_trial(setting: Setting) -> None:
    ask = 'mcp_servers.notes.default_tools_approval_mode="prompt"'
    made = await setting.make([WRITE, say("done")], options={"args": ["-c", ask]})
    assert made.ending == ("setup", True)
    assert "write_note" in made.collected.failure.reason
    assert made.collected.stored_writes == []


async def test_the_addresses_that_let_in_are_in_no_file(setting: Setting) -> None:
    made = await setting.make([WRITE, Fail(401)], forever=True, retries=0)
    assert made.ending == ("provider", False)
    detail = made.collected.failure.detail or ""
    assert "http_connection_failed" in detail
    assert re.search(r"127\.0\.0\.1:\d+/\.\.\./responses", detail)
    files = [one.read_text() for one in setting.folder.rglob("*") if one.is_file()]
    assert files
    assert not any(re.search(r"127\.0\.0\.1:\d+/[\w-]{20,}", text) for text in files)
    assert not any(KEY in text for text in files)


async def test_a_limit_of_turns_needs_the_recording() -> None:
    with pytest.raises(OptionsError, match="maxTurns"):
        CodexClient().check({"maxTurns": 2, "recordProvider": False})
    with pytest.raises(OptionsError, match="web_search"):
        CodexClient().check({"builtinTools": ["Bash"]})
