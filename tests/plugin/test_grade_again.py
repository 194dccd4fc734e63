"""Stored trials graded again: nothing is collected, no ending changes, old scores stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.eval_project import EvalProject, Json, StoredRun, answer, call, case, write
from tests.plugin.resumed import (
    begun,
    changed_files,
    client_inputs,
    python_project,
    set_state,
)


def mixed(*, asserts: str) -> list[Json]:
    """Return cases of every kind, graded in one way or another."""
    graded = {"assertions": {"containsText": asserts}}
    return [
        case("plain", call("find"), answer("first"), **graded),
        case("errors", {"error": "gave up"}, **graded),
        case("limits", answer("first"), {"stop": "turns"}, **graded),
        case(
            "writes",
            call("post", text="a"),
            answer("first"),
            **graded,
            expected={"writes": [write("post")]},
        ),
        case("broken", {"fail": {"broke": "network", "reason": "cut"}}, **graded),
        case("never", {"fail": {"broke": "setup", "scope": "case"}}, trials=3, **graded),
        case("hard", call("find"), answer("first"), assertions={"containsText": "no such text"}),
    ]


@pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["serial", "two workers"])
def test_grading_again_changes_scores_and_nothing_else(
    project: EvalProject, workers: tuple[str, ...]
) -> None:
    project.eval(*mixed(asserts="second"), concurrency=1)
    first = project.run("--mst", *workers)
    assert first.code == 1, first.text
    run = first.run
    before, calls = project.attempts(run), list(project.desk_calls)
    journal = (run.folder / "journal.jsonl").read_bytes()
    project.eval(*mixed(asserts="first"), concurrency=1)
    project.environ["DESK_WORDS"] = "exit"  # no server is needed
    session = project.run("--mst", "--mst-grade", run.folder.name, *workers)
    assert session.code == 1, session.text
    assert "grading again desk, run" in session.out
    after = StoredRun(run.folder)
    assert after.verdicts == {
        "plain": "passed",
        "errors": "failed",
        "limits": "passed",
        "writes": "passed",
        "broken": "incomplete",
        "never": "incomplete",
        "hard": "failed",
    }
    assert project.desk_calls == calls
    assert (run.folder / "journal.jsonl").read_bytes() == journal
    assert after.ledger == run.ledger
    assert after.ledger["unstarted"] == 2
    assert [one["case"] for one in after.plan["stops"]] == ["never"]  # why they are unstarted
    changed = changed_files(before, project.attempts(run))
    trials = ("plain", "errors", "limits", "writes", "hard")
    assert {name.split("/")[-2] for name in changed} <= set(trials)
    assert not [name for name in changed if name.startswith("writes/")]
    for name in trials:
        trace = f"traces/default/{name}/0.json"
        old, new = json.loads(before[trace][0]), after.files[trace]
        for one in (old, new):
            one.pop("gradingKey")
        assert old == new  # ending, trace, agreement, times, locator
        [score] = (one for one in before if one.startswith("scores/con") and f"/{name}/" in one)
        [aside] = run.folder.glob(f"superseded/*/{score}")
        assert (aside.read_bytes(), aside.stat().st_mtime_ns) == before[score]
    assert after.plan["resumptions"][0]["kind"] == "grade"
    assert "resumedAt" not in after.plan or after.plan["resumedAt"] == []
    assert not [line for line in session.out.splitlines() if line.startswith("replaced")]


GRADES = """
    def mst_case(text, **more):
        return pytest.mark.mst(input=text, config="desk.json", **more)

    @mst_case("a", trials=2)
    def test_a(trial):
        assert trial.answer == "{expected}"

    @mst_case("busy")
    def test_busy(trial):
        assert trial.answer == "{expected}"

    @mst_case("by the body")
    def test_runs(mst):
        assert mst.run_sync().answer == "ok"
"""


def test_test_bodies_grade_again_and_those_that_run_the_client_do_not(tmp_path: Path) -> None:
    project = python_project(tmp_path, GRADES.format(expected="something else"))
    run = project.run("--mst").run
    assert run.verdicts == {"test_a": "failed", "test_busy": "incomplete", "test_runs": "passed"}
    client_inputs(project)
    project.test_file(GRADES.format(expected="ok"))
    set_state(project, "mended")
    before = project.attempts(run)
    session = project.run("--mst", "--mst-grade", run.folder.name)
    assert session.code == 10, session.text
    assert session.taken_up[0][1] == 0
    assert client_inputs(project) == []
    after = StoredRun(run.folder)
    assert after.verdicts == {"test_a": "passed", "test_busy": "incomplete", "test_runs": "passed"}
    assert set(begun(after).values()) == {1, 2}
    changed = {name.split("/")[-2] for name in changed_files(before, project.attempts(run))}
    assert changed == {"test_a"}  # a body that runs the client says nothing without running it
    finish = project.run(*session.finish_with)
    assert (finish.code, finish.taken_up) == (0, [(3, 1, 0, 0)]), finish.text
    assert client_inputs(project) == ["busy"]


def test_a_grader_that_breaks_while_grading_again_leaves_the_trial_ungraded(
    tmp_path: Path,
) -> None:
    source = """
        @pytest.mark.mst(input="a", config="desk.json")
        def test_a(trial, judged_by):
            assert trial.answer == "ok"
            if "broken" in judged_by:
                raise KeyError("judge")
    """
    project = python_project(tmp_path, source)
    run = project.run("--mst").run
    set_state(project, "broken")
    session = project.run("--mst", "--mst-grade", run.folder.name)
    assert session.code == 10, session.text
    assert StoredRun(run.folder).ledger["ungraded"] == 1
    set_state(project, "whole")
    session = project.run(*session.finish_with)
    assert (session.code, session.taken_up) == (0, [(0, 0, 1, 0)]), session.text
    assert client_inputs(project) == ["a"]
    assert len(list(run.folder.glob("superseded/*/scores/body/default/test_a/0.json"))) == 1
