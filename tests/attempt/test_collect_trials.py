"""Attempts that count: what the client did is stored and graded, however it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client as McpClient

from pytest_mst.attempt.judge_asking import ModelAsking
from pytest_mst.attempt.judges import judges_of
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.score import TrialVerdict
from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import AT, DONE, HIDDEN, READ, WRITE, make, scripted, small, target

pytestmark = pytest.mark.anyio

EXPECTS_WRITE = {
    "expected": {"writes": [{"tool": "write_note", "arguments": {"text": "hi"}}]},
    "assertions": {"containsText": "done"},
}


async def test_a_trial_is_stored_with_its_trace_record_scores_and_journal(tmp_path: Path) -> None:
    made = await make(scripted(READ, WRITE, DONE), tmp_path, EXPECTS_WRITE)
    assert made.ending == Trial()
    assert made.finished.graded.verdict is TrialVerdict.PASSED
    assert made.events == [("read_note", False), ("write_note", False)]
    assert made.stored_writes == ["write_note"]
    assert made.scores == {"containsText": True, "writes": True}
    assert made.journal == ["begun", "ended"]
    stored = made.stored
    assert stored["ending"] == {"kind": "trial"}
    assert stored["graders"] == ["containsText", "writes"]
    assert stored["trace"]["answer"] == "done"
    assert stored["trace"]["servers"] == ["notes"]
    assert stored["key"] == made.finished.job.identity.key
    assert stored["agreement"]["checked"]
    assert not stored["infrastructureError"]


async def test_a_trial_whose_client_errored_is_graded_and_cannot_pass(tmp_path: Path) -> None:
    made = await make(scripted(WRITE, DONE, {"error": "confused"}), tmp_path, EXPECTS_WRITE)
    assert made.ending == Trial(client_error="confused")
    assert made.scores == {"containsText": True, "writes": True}
    assert made.finished.graded.verdict is TrialVerdict.FAILED
    assert made.stored["error"] == "confused"


@pytest.mark.parametrize(
    ("options", "stopped_by"),
    [
        ({"maxTurns": 2}, "turns"),
        ({"maxToolCalls": 1}, "calls"),
        ({"maxDurationMs": 50}, "time"),
    ],
)
async def test_running_out_of_its_own_limits_is_a_trial_graded_as_usual(
    tmp_path: Path, options: dict[str, int], stopped_by: Any
) -> None:
    script: list[dict[str, Any]] = [WRITE, {"sleep": 0.2}, DONE, READ, DONE]
    case = {"expected": EXPECTS_WRITE["expected"], "clientOptions": options}
    made = await make(scripted(*script), tmp_path, case)
    assert made.ending == Trial(stopped_by=stopped_by)
    assert made.finished.graded.verdict is TrialVerdict.PASSED
    assert made.events == [("write_note", False)]
    assert made.stored["ending"]["stoppedBy"] == stopped_by


async def test_a_server_that_dies_in_the_call_is_what_is_tested(tmp_path: Path) -> None:
    die = {"call": {"server": "notes", "tool": "die"}}
    made = await make(scripted(die, {"answer": "{{last.text}}"}, READ), tmp_path)
    assert made.ending == Trial()
    assert made.events == [("die", True), ("read_note", False)]
    assert "status 3" in made.stored["trace"]["answer"]


@pytest.mark.parametrize(
    ("tool", "text"), [("fail", "it is down"), ("refuse", "not today"), ("unheard_of", "Unknown")]
)
async def test_a_call_that_gets_an_error_is_in_the_trace_as_one(
    tmp_path: Path, tool: str, text: str
) -> None:
    call = {"call": {"server": "notes", "tool": tool}}
    made = await make(scripted(call, {"answer": "{{last.text}}"}), tmp_path)
    assert made.ending == Trial()
    assert made.events == [(tool, True)]
    assert text in made.stored["trace"]["answer"]


async def test_a_hidden_write_is_unreported_and_a_claimed_one_unrecorded(tmp_path: Path) -> None:
    claim = {"claim": {"server": "notes", "tool": "purge", "arguments": {}}}
    made = await make(scripted(HIDDEN, claim, DONE), tmp_path, EXPECTS_WRITE)
    assert made.unreported == ["write_note"]
    assert [one["tool"] for one in made.stored["agreement"]["unrecordedWrites"]] == ["purge"]
    assert made.scores == {"containsText": True, "writes": False}


async def test_without_an_account_of_the_clients_own_the_trace_is_what_was_observed(
    tmp_path: Path,
) -> None:
    async def agent(request: ClientRequest) -> str:
        await request.tools.call_tool("notes", "write_note", {"text": "hi"}, join_id="mine")
        with pytest.raises(ToolCallError):
            await request.tools.call_tool("notes", "refuse", None)
        return f"{request.input} as {request.model} in {request.trial_id}"

    one = target(client=FunctionClient(agent), model="m-1", input_template="Please {{input}}.")
    made = await make(one, tmp_path, {"input": "go on with {{trial.id}}", **EXPECTS_WRITE})
    trial_id = made.finished.job.trial_id
    assert made.ending == Trial()
    assert made.events == [("write_note", False), ("refuse", True)]
    trace = made.stored["trace"]
    assert trace["answer"] == f"Please go on with {trial_id}. as m-1 in {trial_id}"
    assert trace["evidence"] == "observed"
    assert trace["events"][0]["id"] == "mine"
    assert made.stored["agreement"]["checked"] is False
    assert made.scores["writes"] is True


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_calls_through_a_session_of_the_agents_own_count_for_the_limit(
    tmp_path: Path, mode: Any
) -> None:
    answered: list[str] = []

    async def agent(request: ClientRequest) -> str:
        async with McpClient(request.session.transport("notes"), mode=mode) as client:
            for _ in range(5):
                await client.call_tool("read_note", {})
                answered.append("read_note")
        return "never"

    case = {"clientOptions": {"maxToolCalls": 2}}
    with anyio.fail_after(20):
        made = await make(target(client=FunctionClient(agent)), tmp_path, case)
    assert made.ending == Trial(stopped_by="calls")
    assert len(answered) == 2
    assert made.events == [("read_note", False)] * 2
    assert made.stored["trace"]["answer"] is None


async def test_the_limit_is_of_calls_with_dicts_and_through_sessions_together(
    tmp_path: Path,
) -> None:
    async def agent(request: ClientRequest) -> None:
        await request.tools.call_tool("notes", "read_note", None)
        async with McpClient(request.session.transport("notes"), mode="legacy") as client:
            await client.call_tool("read_note", {})
            await client.call_tool("read_note", {})

    case = {"clientOptions": {"maxToolCalls": 2}}
    with anyio.fail_after(20):
        made = await make(target(client=FunctionClient(agent)), tmp_path, case)
    assert made.ending == Trial(stopped_by="calls")
    assert made.events == [("read_note", False)] * 2


async def test_each_attempt_has_its_own_server_where_it_is_asked_for(tmp_path: Path) -> None:
    """The server that one attempt ends is not the other's."""

    async def kills(request: ClientRequest) -> None:
        with pytest.raises(ServerGoneError):
            await request.tools.call_tool("notes", "die", None)

    async def reads(request: ClientRequest) -> None:
        await request.tools.call_tool("notes", "slow", {"seconds": 0.3})

    endings: dict[str, Any] = {}

    async def one(name: str, agent: Any) -> None:
        made = await make(
            target(client=FunctionClient(agent), isolation="attempt"), tmp_path / name, hub=hub
        )
        endings[name] = made.ending

    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(one, "reads", reads)
            tasks.start_soon(one, "kills", kills)
    assert endings == {"reads": Trial(), "kills": Trial()}


@pytest.mark.lets_writes_through
async def test_an_unguarded_write_goes_through_and_is_recorded_as_unclassified(
    tmp_path: Path,
) -> None:
    made = await make(
        scripted(WRITE, {"answer": "{{last.text}}"}, mode=WriteMode.UNGUARDED), tmp_path
    )
    assert made.stored["trace"]["answer"] == "write_note executed"
    assert made.stored["agreement"]["unclassifiedCalls"] == 1
    assert [entry.unclassified for entry in made.finished.writes] == [True]


async def test_servers_are_told_apart_by_their_labels(tmp_path: Path) -> None:
    other = {"call": {"server": "other", "tool": "write_note", "arguments": {"text": "there"}}}
    missing = {"call": {"server": "nobody", "tool": "read_note"}}
    made = await make(
        target(
            small(),
            small(label="other"),
            options={"script": [other, WRITE, missing, {"answer": "{{last.text}}"}]},
        ),
        tmp_path,
    )
    assert [entry.server for entry in made.finished.writes] == ["other", "notes"]
    assert "there are: notes, other" in made.stored["trace"]["answer"]
    assert made.layout.trace(AT).exists()


async def test_a_grader_that_cannot_run_leaves_the_trial_ungraded_and_says_why(
    tmp_path: Path,
) -> None:
    case = {"judges": [{"type": "rubric", "rubric": "tone"}], "assertions": {"containsText": "d"}}
    read = Case.model_validate({"id": "c", "input": "do it", **case})
    judges = judges_of(read, [], folder=tmp_path)
    rules = RunRules(ask_judge=ModelAsking(environ={}))
    made = await make(scripted(DONE), tmp_path, case, judges=judges, rules=rules)
    assert made.ending == Trial()
    assert made.finished.graded.verdict is TrialVerdict.UNGRADED
    assert list(made.scores) == ["containsText"]
    assert made.stored["graders"] == ["containsText", "rubric"]
    assert made.stored["gradingError"] == made.finished.record.grading_error
    assert made.journal == ["begun", "ended"]


async def test_what_the_body_of_a_python_case_is_to_grade_is_noted_before_it_runs(
    tmp_path: Path,
) -> None:
    made = await make(scripted(DONE), tmp_path, has_body=True)
    assert made.stored["graders"] == ["body"]
    assert made.scores == {}
