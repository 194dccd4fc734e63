"""Under xdist: a worker that is lost, text that no transport likes, and what is written once."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Session,
    answer,
    call,
    case,
    junit_cases,
    write,
)

OK = answer("ok")
COLLECTION = "collection"


def assert_added_up(session: Session, name: str) -> None:
    """Check that every planned attempt is accounted for."""
    ledger = session.run_of(name).ledger
    assert ledger["unstarted"] == 0
    assert f"planned {ledger['planned']} = graded {ledger['graded']} + " in session.out


@pytest.mark.parametrize("dist", ["load", "loadscope", "loadfile", "worksteal"])
def test_a_body_that_ends_its_worker_costs_only_its_case(project: EvalProject, dist: str) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [call("find"), OK]})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json", trials=2)
        @pytest.mark.parametrize("n", range(8))
        def test_it(trial, n):
            if n == 2:
                os._exit(9)
            assert trial.answer == "ok"

        def test_ordinary(): pass
        """
    )
    session = project.run(
        "--mst", "-n", "2", "--dist", dist, "--junitxml=junit.xml", "test_evals.py"
    )
    assert session.code == 10, session.text
    run = session.run
    ended_it = run.case("test_it[2]")
    assert ended_it["verdict"] == "incomplete"
    assert len(ended_it["trials"]) == 2
    incomplete = {name for name, word in run.verdicts.items() if word != "passed"}
    for name in incomplete - {"test_it[2]"}:  # what the worker was at besides
        endings = [trial["ending"] for trial in run.case(name)["trials"]]
        assert any(ending.get("broke") == COLLECTION for ending in endings)
    assert run.ledger["planned"] == 16
    assert run.ledger["unstarted"] <= 1  # the second attempt at the case
    outcomes = junit_cases(project.root / "junit.xml")
    assert len(outcomes) == 9
    assert outcomes["test_evals::test_it[2]"] == "error"
    assert {name for name, how in outcomes.items() if how != "passed"} == {
        f"test_evals::{name}" for name in incomplete
    }
    passed = 9 - len(incomplete)
    assert f"{passed} passed, {len(incomplete)} incomplete" in session.out


def test_a_client_that_ends_its_worker_costs_only_its_case(project: EvalProject) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]}, servers={})
    project.write(
        "conftest.py",
        """
        import os
        import pytest

        @pytest.fixture(scope="session")
        def mst_client():
            async def agent(request):
                if request.input == "die":
                    os._exit(9)
                return "ok"
            return agent
        """,
    )
    project.test_file(
        """
        def mst_case(text):
            return pytest.mark.mst(input=text, config="desk.eval.json")

        @mst_case("die")
        def test_dies(trial): assert trial.answer

        @mst_case("live")
        @pytest.mark.parametrize("n", range(6))
        def test_lives(trial, n): assert trial.answer == "ok"
        """
    )
    session = project.run("--mst", "-n", "2", "--mst-concurrency", "2", "test_evals.py")
    assert session.code == 10, session.text
    run = session.run
    ending = run.ending("test_dies")
    assert (ending["broke"], ending["retryable"]) == (COLLECTION, True)
    assert "ended before the attempt did" in ending["reason"]
    assert run.verdicts["test_lives[5]"] == "passed"
    assert_added_up(session, "test_evals")


def test_every_worker_lost_ends_in_bounded_time(project: EvalProject) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]}, servers={})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        @pytest.mark.parametrize("n", range(4))
        def test_it(trial, n): os._exit(9)
        """
    )
    session = project.run("--mst", "-n", "2", "--max-worker-restart", "1", "test_evals.py")
    assert session.code == 10, session.text
    run = session.run
    assert set(run.verdicts.values()) == {"incomplete"}
    assert run.ledger["planned"] == 4
    assert run.ledger["graded"] == 0


@pytest.mark.parametrize("args", [(), ("-n", "2")])
def test_odd_text_survives(project: EvalProject, args: tuple[str, ...]) -> None:
    odd = "half \ud83d bell \x07 red \x1b[31m null \x00 end"
    project.eval(
        case("answers", answer(f"ok {odd}")),
        case("answers-wrong", answer(odd)),
        case("from-a-tool", call("odd_text"), answer("ok {{last.text}}")),
        case("breaks", {"fail": {"broke": "network", "reason": odd}}),
        case("errors", {"error": odd}),
        case("posts", call("post", text=odd), OK, expected={"writes": [write("post")]}),
        case("hides", {"hidden": {"server": "desk", "tool": "post", "arguments": {"x": odd}}}),
    )
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_shows(mst):
            assert mst.run_sync().answer == "half \\ud83d bell \\x07"
        """
    )
    session = project.run("--mst", "--junitxml=junit.xml", *args)
    assert session.code == 1, session.text
    run = session.run_of("desk")
    assert run.trace_file("answers")["trace"]["answer"] == f"ok {odd}"
    assert run.ending("breaks")["reason"] == odd
    assert run.ending("errors")["clientError"] == odd
    (entry,) = run.writes("posts")
    assert entry["arguments"] == {"text": odd}
    assert run.trace_file("from-a-tool")["trace"]["answer"] == (
        "ok half \ud83d, bell \x07, red \x1b[31m, end"
    )
    assert run.verdicts == {
        "answers": "passed",
        "answers-wrong": "failed",
        "from-a-tool": "passed",
        "breaks": "incomplete",
        "errors": "failed",
        "posts": "passed",
        "hides": "failed",
    }
    assert len(junit_cases(project.root / "junit.xml")) == 8
    for raw in ("\x1b", "\x07", "\x00"):
        assert raw not in session.text
    assert "INTERNALERROR" not in session.text
