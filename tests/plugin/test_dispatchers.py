"""Dispatchers and servers that plan writes themselves, from the eval file to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.plugin.eval_project import EvalProject, Json, answer, call, case, claim, hidden
from tests.proxy.servers import desk
from tests.proxy.servers.desk import DISPATCHERS, done

OK = answer("ok")
A: Json = {"name": "A"}
T: Json = {"title": "T"}
PERSON: Json = {"toolName": "create_person", "arguments": A}
PEOPLE: Json = {"toolName": "list_people", "arguments": {}}
ISSUE: Json = {"name": "github:create_issue", "args_json": '{"title":"T"}'}


def dispatching(project: EvalProject, *words: str, **config: Any) -> Json:
    """Return the definition of the server with dispatchers."""
    log = str(project.root / "did.jsonl")
    args = [desk.__file__, "--log", log, *words]
    given = {"protocol": "legacy", "dispatchers": DISPATCHERS, **config}
    return {"transport": "stdio", "command": "python", "args": args, **given}


def did(project: EvalProject) -> list[tuple[str, str]]:
    return [(one["did"], one["tool"]) for one in done(Path(project.root / "did.jsonl"))]


def expects(*calls: Json, **more: Any) -> Json:
    return {"writes": {"calls": list(calls), **more}}


@pytest.mark.parametrize("mode", ["planned", "simulated"])
def test_dispatched_writes_are_stopped_and_graded_by_their_targets(
    project: EvalProject, mode: str
) -> None:
    person = {"server": "desk", "tool": "create_person", "arguments": A}
    batch: Json = {"operations": [PEOPLE, PERSON, {"toolName": "touch"}]}
    broken: Json = {"toolName": "create_person", "arguments": "{title:"}
    issue = {"server": "github", "tool": "create_issue", "arguments": T}
    project.eval(
        case("person", call("execute_tool", **PERSON), OK, expected=expects(person)),
        case("reads", call("execute_tool", **PEOPLE), OK, expected=expects(exclusive=True)),
        case("issue", call("call_tool_write", **ISSUE), OK, expected=expects(issue)),
        case(
            "batch",
            call("run_batch", **batch),
            OK,
            expected=expects(person, {"tool": "touch"}, exclusive=True),
        ),
        case("action", call("executions", action="list"), OK, expected=expects(exclusive=True)),
        case("unread", call("execute_tool", **broken), OK, expected=expects(exclusive=True)),
        case(
            "itself", call("execute_tool", **PERSON), OK, expected=expects({"tool": "execute_tool"})
        ),
        case("hides", hidden("execute_tool", **PERSON), OK, expected=expects(person)),
        case("claims", claim("execute_tool", **PERSON), OK, expected=expects(exclusive=True)),
        case("claims-read", claim("execute_tool", **PEOPLE), OK, expected=expects(exclusive=True)),
        servers={"desk": dispatching(project)},
        writes=mode,
    )
    session = project.run("--mst")
    run = session.run
    assert run.verdicts == {
        "person": "passed",
        "reads": "passed",
        "issue": "passed",
        "batch": "passed",
        "action": "passed",
        "unread": "failed",
        "itself": "failed",
        "hides": "failed",
        "claims": "failed",
        "claims-read": "passed",
    }, session.text
    assert sorted(did(project)) == [("read", "list"), ("read", "list_people")]
    (entry,) = run.writes("issue")
    assert entry["target"] == {"server": "github", "tool": "create_issue", "arguments": T}
    assert [(one["callSeq"], one["target"]["tool"]) for one in run.writes("batch")] == [
        (0, "create_person"),
        (0, "touch"),
    ]
    (unread,) = run.writes("unread")
    assert unread["unparsed"] is True
    assert unread["arguments"] == broken
    assert "target" not in unread
    assert run.trial("unread")["unparsedCalls"] == 1
    assert run.summary["variants"][0]["unparsedCalls"] == 1
    assert run.trial("hides")["unreportedWrites"][0]["tool"] == "create_person"
    assert run.trial("claims")["unrecordedWrites"][0]["tool"] == "execute_tool"
    assert run.case("person")["evidence"] == "requested"
    assert "unparsed call: desk.execute_tool" in session.out


@pytest.mark.lets_writes_through("touch")
@pytest.mark.parametrize("mark", ["structured", "text"])
def test_a_server_that_plans_writes_itself_is_told_by_its_mark(
    project: EvalProject, mark: str
) -> None:
    person = {"tool": "create_person", "arguments": A}
    project.eval(
        case("person", call("create_person", **A), OK, expected=expects(person)),
        case("dispatched", call("execute_tool", **PERSON), OK, expected=expects(person)),
        case("reads", call("execute_tool", **PEOPLE), OK, expected=expects(exclusive=True)),
        case("unmarked", call("touch"), OK, expected=expects({"tool": "touch"})),
        case("hides", hidden("create_person", **A), OK, expected=expects(person)),
        case("claims", claim("touch"), OK, expected=expects(exclusive=True)),
        servers={"desk": dispatching(project, "--mark", mark, plannedWriteKey="_planned")},
        writes={"desk": "server-planned"},
    )
    session = project.run("--mst")
    run = session.run
    assert run.verdicts == {
        "person": "passed",
        "dispatched": "passed",
        "reads": "incomplete",  # only a mark says what a dispatched call was
        "unmarked": "passed",
        "hides": "failed",
        "claims": "failed",
    }, session.text
    assert ("wrote", "create_person") not in did(project)
    assert run.plan["variants"][0]["servers"][0]["writeMode"] == "server-planned"
    (entry,) = run.writes("person")
    assert entry["mode"] == "server-planned"
    assert "_planned" in str(entry["reply"])
    assert [run.case(name)["evidence"] for name in ("person", "dispatched", "unmarked")] == [
        "requested",
        "requested",
        "called",
    ]
    assert run.trial("unmarked")["unclassifiedCalls"] == 1
    assert run.trial("person")["unclassifiedCalls"] == 0
    assert run.trial("reads")["unclassifiedCalls"] == 1
    assert run.summary["variants"][0]["unclassifiedCalls"] == 2
    assert run.summary["evidence"] == "called"


def test_a_server_that_plans_writes_itself_needs_a_key(project: EvalProject) -> None:
    project.eval(
        case("person", OK),
        servers={"desk": dispatching(project)},
        writes={"desk": "server-planned"},
    )
    session = project.run("--mst")
    assert session.code == 4
    assert 'the server "desk" has no plannedWriteKey' in session.text
    assert "Traceback" not in session.text
    assert did(project) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            {"execute_tol": {"tool": "toolName"}},
            "servers.desk.dispatchers names 'execute_tol', which the server does not list",
        ),
        (
            {"execute_tool": {"tool": "toolname"}},
            "servers.desk.dispatchers.execute_tool.tool names 'toolname', an argument that "
            "'execute_tool' does not have",
        ),
    ],
)
def test_a_misspelt_dispatcher_is_refused_before_anything_runs(
    project: EvalProject, wrong: dict[str, Any], words: str
) -> None:
    project.eval(case("person", OK), servers={"desk": dispatching(project, dispatchers=wrong)})
    session = project.run("--mst")
    assert session.code == 4
    assert words in session.text
    assert "Traceback" not in session.text


def test_a_test_function_finds_writes_by_their_targets(project: EvalProject) -> None:
    project.eval(name="desk", servers={"desk": dispatching(project)})
    project.test_file(
        f"""
        STEPS = [
            {{"call": {{"server": "desk", "tool": "call_tool_write", "arguments": {ISSUE!r}}}}},
            {{"answer": "ok"}},
        ]

        @pytest.fixture(scope="module")
        def mst_client():
            from pytest_mst import ScriptedClient
            return ScriptedClient(STEPS)

        @pytest.mark.mst(input="Open an issue", config="desk.eval.json")
        @pytest.mark.writes(tool="create_issue", arguments={T!r}, exclusive=True)
        def test_issue(trial):
            write = trial.writes.one("create_issue", server="github")
            assert write.target.arguments == {T!r}
            trial.writes.none("call_tool_write")
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 0, session.text
    assert did(project) == []


LOOKS_AT_CALLS = """
import pytest

CASE = pytest.mark.mst(input="Do it", config="desk.eval.json")

@CASE
def test_unclear(dry_run_proxy):
    dry_run_proxy.call("desk", "touch")
    assert [one.tool for one in dry_run_proxy.calls] == ["touch"]

@CASE
def test_clear(dry_run_proxy):
    dry_run_proxy.call("desk", "create_person", {"name": "A"})
    assert [one.tool for one in dry_run_proxy.calls] == ["create_person"]
"""


@pytest.mark.lets_writes_through("touch")
def test_a_body_rests_on_no_more_than_the_trace_where_a_call_cannot_be_classified(
    project: EvalProject,
) -> None:
    project.eval(
        case("unused", OK),
        servers={"desk": dispatching(project, "--mark", "text", plannedWriteKey="_planned")},
        writes={"desk": "server-planned"},
    )
    project.test_file(LOOKS_AT_CALLS)
    run = project.run("--mst", "test_evals.py").run
    levels = [
        run.trial(name)["scores"]["body"]["evidence"] for name in ("test_unclear", "test_clear")
    ]
    assert levels == ["called", "requested"]
