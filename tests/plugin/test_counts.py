"""What was not measured is in no figure: it is said what was graded, and what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    StoredRun,
    answer,
    call,
    case,
    junit_cases,
)

OK, WRONG = answer("ok"), answer("something else")


def fails(broke: str, **more: Any) -> Json:
    """Return the step that ends an attempt as an infrastructure failure."""
    return {"fail": {"broke": broke, "reason": f"the {broke} broke", **more}}


def scripted(case_id: str, *steps: Json, **more: Any) -> Json:
    """Return a case with an attempt for each step."""
    one = case(case_id, trials=len(steps), **more)
    one["clientOptions"] = {"scripts": [[step] for step in steps]}
    return one


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> EvalProject:
    project = EvalProject(tmp_path_factory.mktemp("counts"))
    project.eval(
        scripted("set-up", *[fails("setup")] * 6, WRONG),
        scripted("short", OK, OK, *[WRONG] * 4, *[fails("provider")] * 2),
        scripted("hung", OK, {"sleep": 30}),
        scripted("no-workspace", fails("workspace")),
        case("all-its-turns", call("find"), {"stop": "turns"}),
        case("errs", {"error": "it fell over"}, assertions={"toolCallCount": {"max": 0}}),
        *(case(f"fine-{n}", OK) for n in range(3)),
        timeout=1500,
    )
    return project


@pytest.fixture(scope="module")
def session(project: EvalProject) -> Session:
    return project.run("--mst", "--junitxml=junit.xml", plugins=("mst",))


@pytest.fixture(scope="module")
def run(session: Session) -> StoredRun:
    assert session.code == 1, session.text
    return session.run


def line_of(session: Session, case_id: str) -> str:
    (line,) = (one for one in session.out.splitlines() if f" {case_id}: " in one)
    return line


def endings(run: StoredRun, case_id: str) -> list[str]:
    """Return for each attempt what broke, or `trial`."""
    trials = run.case(case_id)["trials"]
    return [one["ending"].get("broke", one["ending"]["kind"]) for one in trials]


def test_attempts_that_never_got_started_are_no_losses(session: Session, run: StoredRun) -> None:
    assert endings(run, "set-up") == ["setup"] * 6 + ["trial"]
    assert run.case("set-up")["verdict"] == "incomplete"
    assert run.case("set-up")["passRate"] is None
    line = line_of(session, "set-up")
    assert line.startswith("incomplete")
    assert "graded 1 of 7" in line
    assert "infrastructure 6: setup" in line
    assert "0/7" not in session.text


def test_a_case_that_is_short_has_no_rate_of_its_own_and_is_in_no_other(
    session: Session, run: StoredRun
) -> None:
    short = run.case("short")
    assert short["verdict"] == "incomplete"
    assert short["pass"] is False
    assert short["passRate"] is None
    line = line_of(session, "short")
    assert "graded 6 of 8" in line
    assert "%" not in line
    complete = [one for one in run.results["cases"] if not one["incomplete"]]
    rate = sum(one["pass"] for one in complete) / len(complete)
    assert run.summary["passRate"] == pytest.approx(rate)
    left_out = len(run.results["cases"]) - len(complete)
    assert f"of {len(complete)} complete cases; {left_out} incomplete left out" in session.out


def test_a_deadline_is_named_and_is_no_failure(session: Session, run: StoredRun) -> None:
    assert endings(run, "hung") == ["trial", "deadline"]
    line = line_of(session, "hung")
    assert line.startswith("incomplete")
    assert "infrastructure 1: deadline" in line
    assert "0/2" not in session.text


def test_a_broken_workspace_leaves_no_score(run: StoredRun) -> None:
    assert endings(run, "no-workspace") == ["workspace"]
    assert not [name for name in run.files if name.startswith("scores/") and "workspace" in name]
    assert run.trial("no-workspace")["scores"] == {}
    assert run.trial("no-workspace")["verdict"] is None


def test_a_client_that_ran_out_of_turns_is_graded_and_not_tried_again(run: StoredRun) -> None:
    assert run.ending("all-its-turns") == {"kind": "trial", "stoppedBy": "turns"}
    assert run.verdicts["all-its-turns"] == "failed"
    begun = [one for one in run.journal if one["caseId"] == "all-its-turns"]
    assert [one["kind"] for one in begun] == ["begun", "ended"]


def test_a_client_that_errored_cannot_pass_whatever_its_graders_say(run: StoredRun) -> None:
    assert run.ending("errs") == {"kind": "trial", "clientError": "it fell over"}
    assert all(score["pass"] for score in run.trial("errs")["scores"].values())
    assert run.verdicts["errs"] == "failed"


def test_every_case_that_was_planned_is_counted(
    project: EvalProject, session: Session, run: StoredRun
) -> None:
    assert run.ledger["planned"] == 7 + 8 + 2 + 1 + 1 + 1 + 3
    counts = run.summary["cases"]
    assert counts == {"passed": 3, "failed": 2, "incomplete": 4, "skipped": 0}
    rows = list(junit_cases(project.root / "junit.xml").values())
    assert {how: rows.count(how) for how in rows} == {"passed": 3, "failure": 2, "error": 4}


def test_a_run_with_nothing_graded_is_reported_and_has_no_rate(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    project = EvalProject(tmp_path_factory.mktemp("nothing"))
    project.eval(*(scripted(f"case-{n}", fails("provider")) for n in range(3)))
    session = project.run("--mst", plugins=("mst",))
    assert session.code == 10, session.text
    assert session.run.summary["passRate"] is None
    assert all(one["passRate"] is None for one in session.run.results["cases"])
    assert session.has("pass rate n/a (0 of 0 complete cases; 3 incomplete left out)")


def test_many_workers_make_one_run_with_each_attempt_once(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    project = EvalProject(tmp_path_factory.mktemp("many"))
    project.environ["PYTHONHASHSEED"] = "random"
    for file in ("first", "second"):
        tagged = [case(f"{file}-{n}", call("find"), OK, tags=["a", "b", "c"]) for n in range(4)]
        project.eval(*tagged, name=file, filterTags=["c", "a"])
    session = project.run("--mst", "-n", "4")
    assert session.code == 0, session.text
    assert len(session.folders) == 2
    for name in ("first", "second"):
        run = session.run_of(name)
        assert run.ledger["graded"] == run.ledger["planned"] == 4
        assert len([one for one in run.files if one.startswith("traces/")]) == 4
        assert len(run.journal) == 8
    assert session.count("planned 4 = graded 4") == 2
    assert len(project.desk_calls) == 8
