"""Servers that the client connects to itself, in a run."""

from __future__ import annotations

import json

import pytest

from tests.plugin.eval_project import EvalProject, answer, call, case, listed, tool, write

OK = answer("ok")
FIND, PUT = tool("find"), tool("put", hint=False)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_server_that_lists_a_write_when_a_case_begins_is_a_setup_failure(
    project: EvalProject, processes: str
) -> None:
    server = listed(FIND, later=[FIND, PUT], direct=True)
    project.eval(case("finds", call("find"), OK), servers={"desk": server}, trials=2)
    session = project.run("--mst", "-n", processes)
    assert session.code == 10, session.text
    ending = session.run.ending("finds")
    assert (ending["broke"], ending["retryable"], ending["scope"]) == ("setup", False, "case")
    assert "now lists put" in ending["reason"]
    assert session.run.ledger["graded"] == 0
    assert project.desk_calls == []


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.lets_writes_through("shred")
def test_a_call_of_what_was_not_listed_is_a_setup_failure_of_its_attempt(
    project: EvalProject, processes: str
) -> None:
    server = listed(FIND, direct=True)
    project.eval(
        case("finds", call("find"), OK),
        case("guesses", call("shred"), OK),
        servers={"desk": server},
    )
    session = project.run("--mst", "-n", processes)
    assert session.code == 10, session.text
    assert session.run.verdicts == {"finds": "passed", "guesses": "incomplete"}
    ending = session.run.ending("guesses")
    assert (ending["broke"], ending["retryable"], ending["scope"]) == ("setup", False, "trial")
    assert "shred of server desk" in ending["reason"]
    assert "cannot be helped 1" in project.run("--mst", "--mst-resume").out


@pytest.mark.lets_writes_through("put")
def test_what_is_written_past_every_boundary_is_unknown_and_stays_so(
    project: EvalProject,
) -> None:
    wanted = case("puts", call("put"), OK, expected={"writes": [write("put")]})
    servers = {"desk": listed(FIND, PUT, direct=True)}
    path = project.eval(wanted, servers=servers, writes={"desk": "unguarded"})
    session = project.run("--mst")
    assert session.code == 10, session.text
    assert project.desk_calls == ["put"]
    assert session.run.writes("puts") == []
    puts = session.run.case("puts")
    assert (puts["verdict"], puts["unguarded"]) == ("incomplete", True)
    assert "without `direct: true` it is known" in json.dumps(puts)
    config = json.loads(path.read_text())
    del config["servers"]["desk"]["direct"]
    path.write_text(json.dumps(config))
    again = project.run("--mst", "--mst-grade", session.run.plan["runId"])
    assert again.code == 10, again.text
    assert project.desk_calls == ["put"]


def test_the_body_of_a_python_case_runs_a_direct_server_alike(project: EvalProject) -> None:
    project.eval(servers={"desk": listed(FIND, direct=True)}, cases=[case("unused", OK)])
    project.test_file(
        """
        async def guess(request):
            request.trace.evidence = "structured"
            await request.tools.call_tool("desk", "find", {})
            return "ok"

        @pytest.fixture(scope="module")
        def mst_client():
            return guess

        @pytest.mark.mst(input="find", config="desk.eval.json")
        def test_it(trial):
            assert trial.answer == "ok"
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 0, session.text
    assert project.desk_calls == ["find"]
