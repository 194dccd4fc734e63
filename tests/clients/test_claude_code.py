"""Claude Code, really run, against a model provider on loopback: how each of its ends ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_mst.clients.claude_code import ClaudeCodeClient
from pytest_mst.domain.ending import Trial
from tests.clients.agent_ends import WRITE, EndsOfEveryAgent, not_helped_by_waiting
from tests.clients.npm_clients import program_from_npm
from tests.clients.real_attempts import RealProgram
from tests.model_provider import (
    Fail,
    Hang,
    Tool,
    cut,
    say,
    use,
)

pytestmark = pytest.mark.anyio

READ = use(Tool("read_note"))
WITHOUT_SERVERS = """#!{python}
import os, sys
at = sys.argv.index("--mcp-config")
os.execv({claude!r}, ["claude", *sys.argv[1:at], *sys.argv[at + 2 :]])
"""
KEY = "loopback-key-anthropic"


@pytest.fixture(scope="session")
def claude(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return program_from_npm("claude-code", request, tmp_path_factory)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


class Setting(RealProgram):
    """Makes attempts by Claude Code."""

    client = ClaudeCodeClient()
    model = "claude-sonnet-4-5"
    key_variables = ("ANTHROPIC_API_KEY",)
    models_begin = "claude-"


@pytest.fixture
def setting(claude: str, tmp_path: Path) -> Setting:
    return Setting(claude, tmp_path)


class TestEnds(EndsOfEveryAgent):
    """How its attempts end, as those of every agent do."""

    agent = Setting


async def test_an_account_that_is_used_up_is_not_waited_for(setting: Setting) -> None:
    await not_helped_by_waiting(setting, Fail(400, "billing"), "provider")


@pytest.mark.parametrize("connect", ["url", "relay"])
async def test_what_it_did_is_in_the_trace_and_joined_with_the_record(
    setting: Setting, connect: str
) -> None:
    script = [use(Tool("read_note"), Tool("write_note", {"text": "hi"})), say("all done")]
    made = await setting.make(script, options={"connect": connect})
    assert made.collected.ending == Trial()
    assert made.collected.events == [("read_note", False), ("write_note", False)]
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined
    assert made.collected.unreported == []
    assert made.trace["answer"] == "all done"
    usage = made.trace["usage"]
    assert (usage["requests"], usage["inputTokens"], usage["outputTokens"]) == (2, 20, 10)
    assert usage["costUsd"] > 0
    assert usage["costSource"] == "reported"
    assert "builtinTools" not in made.trace
    assert set(made.provider.asked[0].tools) >= {"mcp__notes__read_note", "mcp__notes__write_note"}
    assert all(name.startswith("mcp__notes__") for name in made.provider.asked[0].tools)


async def test_its_own_tools_stay_off_unless_asked_for_and_are_then_named(setting: Setting) -> None:
    script = [use(Tool("Bash", {"command": "echo here", "description": "say so"})), say("ok")]
    made = await setting.make(script, options={"builtinTools": ["Bash"]})
    assert made.collected.ending == Trial()
    (event,) = made.trace["events"]
    assert (event["kind"], event["source"], event["name"]) == ("command", "builtin", "Bash")
    assert made.trace["builtinTools"] == ["Bash"]


async def test_a_system_prompt_is_added_to_its_own(setting: Setting) -> None:
    made = await setting.make([say("ok")], options={"system": "Speak as a desk clerk would."})
    assert made.collected.ending == Trial()
    assert "Speak as a desk clerk would." in made.provider.asked[0].text


async def test_what_it_gets_over_by_itself_is_a_trial_and_kept(setting: Setting) -> None:
    made = await setting.make([Fail(429, "rate", retry_after_s=0), WRITE, say("done")])
    assert made.collected.ending == Trial()
    (error,) = made.trace["recoveredErrors"]
    assert (error["error_status"], error["error"]) == (429, "rate_limit")
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
    assert made.asked == 4
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
    made = await setting.make([], options={"baseUrl": "http://127.0.0.1:9"}, retries=0)
    assert made.ending == ("network", True)
    assert len(made.waits_s) == 1


@pytest.mark.parametrize("written", [False, True])
async def test_an_answer_that_is_always_cut_is_no_trial(setting: Setting, *, written: bool) -> None:
    made = await setting.make([*([WRITE] if written else []), cut(2)], forever=True, retries=0)
    assert made.ending == ("network", True)
    assert made.collected.stored_writes == (["write_note"] if written else [])


async def test_its_own_limit_of_turns_is_a_trial(setting: Setting) -> None:
    made = await setting.make([WRITE, READ, READ], forever=True, options={"maxTurns": 2})
    assert made.collected.ending == Trial(stopped_by="turns")
    assert made.asked == 2
    assert made.collected.stored_writes == ["write_note"]


async def test_a_tool_that_fails_is_told_to_the_model_and_the_trial_goes_on(
    setting: Setting,
) -> None:
    made = await setting.make([use(Tool("fail")), say("it is down")])
    assert made.collected.ending == Trial()
    assert made.collected.events == [("fail", True)]


async def test_a_client_that_never_comes_to_its_server_is_no_trial_whatever_it_says(
    setting: Setting, tmp_path: Path
) -> None:
    around = tmp_path / "claude"  # starts it without what it was told of servers
    around.write_text(WITHOUT_SERVERS.format(python=sys.executable, claude=setting.program))
    around.chmod(0o755)
    provider_says = [say("Done, record created.")]
    made = await setting.make(provider_says, options={"command": str(around)})
    assert made.ending == ("setup", True)
    assert "'notes'" in made.collected.failure.reason


async def test_a_tool_that_it_does_not_permit_is_named(setting: Setting) -> None:
    made = await setting.make(
        [WRITE, say("done")],
        options={"args": ["--settings", '{"permissions": {"ask": ["mcp__notes__write_note"]}}']},
    )
    assert made.ending == ("setup", False)
    assert "mcp__notes__write_note" in made.collected.failure.reason


async def test_our_deadline_ends_it_with_its_trace_kept(setting: Setting) -> None:
    made = await setting.make([WRITE, Hang()], timeout_s=8)
    assert made.ending == ("deadline", True)
    assert made.collected.events == [("write_note", False)]
    assert made.collected.stored_writes == ["write_note"]
    assert made.joined


async def test_its_own_limit_of_time_is_a_trial_with_its_trace_kept(setting: Setting) -> None:
    made = await setting.make([WRITE, Hang()], options={"maxDurationMs": 8000})
    assert made.collected.ending == Trial(stopped_by="time")
    assert made.collected.events == [("write_note", False)]


async def test_a_kill_while_the_api_has_no_time_is_a_failure_of_the_provider(
    setting: Setting,
) -> None:
    made = await setting.make(
        [WRITE, Fail(529, retry_after_s=30)], forever=True, timeout_s=8, retries=5
    )
    assert made.ending == ("provider", True)
    assert made.collected.stored_writes == ["write_note"]
