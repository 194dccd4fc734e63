"""Runs that are taken up where something around them is not as it was, or was never simple."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    StoredRun,
    answer,
    call,
    case,
    desk,
    write,
)
from tests.plugin.resumed import client_inputs, python_project, set_state

OK = answer("ok")
FAIL: Json = {"fail": {"broke": "provider", "reason": "a bad hour", "retryable": True}}
ONE_BUSY = """
    @pytest.mark.mst(input="busy", config="desk.json")
    def test_busy(trial): assert trial.answer == "ok"
    """


def the_run(project: EvalProject) -> StoredRun:
    """Return the only run there is, as it is stored now."""
    (folder,) = (project.root / ".mst-results").glob("*/runs/*")
    return StoredRun(folder)


def resumed(project: EvalProject, *options: str) -> Session:
    """Take up the only run there is."""
    return project.run("--mst", "--mst-resume", the_run(project).folder.name, *options)


@pytest.mark.parametrize("processes", ["0", "1"])
@pytest.mark.parametrize("broken", ["def broken(:\n", "def test_plain(): pass\n"])
def test_a_file_that_is_broken_for_a_while_does_not_end_its_runs(
    tmp_path: Path, processes: str, broken: str
) -> None:
    project = python_project(tmp_path, ONE_BUSY)
    project.run("--mst")
    source = (project.root / "test_evals.py").read_text(encoding="utf-8")
    (project.root / "test_evals.py").write_text(broken, encoding="utf-8")
    resumed(project, "-n", processes)
    (project.root / "test_evals.py").write_text(source, encoding="utf-8")
    set_state(project, "mended")
    session = resumed(project)
    assert session.code == 0, session.text
    assert the_run(project).verdicts == {"test_busy": "passed"}


@pytest.mark.lets_writes_through("post")
def test_what_was_collected_unguarded_stays_known_as_that(project: EvalProject) -> None:
    steps = (call("post", text="x"), OK)
    expected = {"writes": [write("post")]}
    project.eval(case("posts", *steps, expected=expected), writes={"desk": "unguarded"})
    project.run("--mst")
    run = the_run(project)
    project.eval(case("posts", *steps, expected=expected), writes="planned")
    for _ in range(2):
        session = project.run("--mst", "--mst-grade", run.folder.name)
        assert "variant default is unguarded: its writes were not stopped" in session.text
        after = the_run(project)
        assert after.plan["variants"][0]["servers"][0]["writeMode"] == "unguarded"
        assert after.case("posts")["unguarded"] is True
        assert after.case("posts")["evidence"] == "called"


def test_a_secret_in_the_name_of_an_eval_does_not_keep_its_runs_from_being_found(
    project: EvalProject,
) -> None:
    project.environ["PLACE"] = "production"
    server = desk()
    server["env"]["PLACE"] = "${PLACE}"
    project.eval(case("a", FAIL), name="production-chat", servers={"desk": server})
    first = project.run("--mst")
    project.eval(case("a", OK), name="production-chat", servers={"desk": server})
    session = project.run(*first.finish_with)
    assert session.code == 0, session.text


def test_the_printed_command_leads_to_a_root_folder_that_is_elsewhere(project: EvalProject) -> None:
    (project.root / "pytest.ini").unlink()
    project.write("inner/pytest.ini", "[pytest]\n")
    project.eval(case("a", FAIL), file="inner/desk.eval.json")
    first = project.run("--mst", "inner/desk.eval.json")
    project.eval(case("a", OK), file="inner/desk.eval.json")
    session = project.run(*first.finish_with)
    assert session.code == 0, session.text


def test_two_sessions_in_one_process_do_not_lock_each_other_out(project: EvalProject) -> None:
    project.eval(case("a", FAIL))
    project.write(
        "twice.py",
        """
        import pytest

        first = pytest.main(["-p", "mst", "--mst"])
        print("codes:", int(first), int(pytest.main(["-p", "mst", "--mst", "--mst-resume"])))
        """,
    )
    done = subprocess.run(
        [sys.executable, "twice.py"],
        cwd=project.root,
        env=project.environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "codes: 10 10" in done.stdout, done.stdout + done.stderr
    assert "in use" not in done.stdout + done.stderr


def test_looking_at_the_set_up_leaves_a_stopped_run_as_it_is(project: EvalProject) -> None:
    stops = {"fail": {"broke": "setup", "scope": "run", "reason": "no licence"}}
    project.eval(case("a", stops), case("b", OK), concurrency=1)
    project.run("--mst")
    run = the_run(project)
    before = project.stored()
    resumed(project, "--setup-plan")
    assert project.stored() == before
    assert [one["reason"] for one in run.plan["stops"]] == ["no licence"]


def test_other_marks_on_a_body_that_runs_the_client_only_grade_again(tmp_path: Path) -> None:
    project = python_project(
        tmp_path,
        """
        @pytest.mark.mst(input="busy", config="desk.json")
        @pytest.mark.writes()
        def test_runs(mst):
            assert mst.run_sync().answer == "ok"
        """,
    )
    set_state(project, "mended")
    assert project.run("--mst").code == 0
    client_inputs(project)
    source = (project.root / "test_evals.py").read_text(encoding="utf-8")
    stricter = source.replace("mark.writes()", "mark.writes(tool='post')")
    (project.root / "test_evals.py").write_text(stricter, encoding="utf-8")
    session = resumed(project)
    assert session.taken_up == [(0, 0, 1, 0)]
    assert client_inputs(project) == []
    assert session.code == 1, session.text
    scores = the_run(project).trial("test_runs")["scores"]
    assert {name: score["pass"] for name, score in scores.items()} == {
        "body": True,
        "writes": False,
    }


def test_what_a_removed_case_is_short_of_is_said_to_need_the_case(project: EvalProject) -> None:
    breaks = {"fail": {"broke": "setup", "scope": "case", "reason": "no licence"}}
    project.eval(case("gone", breaks, trials=3), case("stays", OK), concurrency=1)
    project.run("--mst")
    project.eval(case("stays", OK))
    session = resumed(project)
    assert session.code == 10
    assert session.taken_up == [(4, 0, 0, 3)]
    assert "the case is there no more: put it back (gone @" in session.text
    assert "--mst-resume can help" not in session.text
    assert the_run(project).ledger["unstarted"] == 2


def test_cases_that_another_option_leaves_out_are_counted_and_named(project: EvalProject) -> None:
    project.eval(case("a", FAIL), case("b", FAIL))
    project.run("--mst")
    project.eval(case("a", OK), case("b", OK))
    session = resumed(project, "--deselect", "desk.eval.json::a")
    assert session.taken_up == [(1, 1, 0, 1)]
    assert "left out of this session by another option" in session.text
    assert the_run(project).verdicts == {"a": "incomplete", "b": "passed"}


def test_a_chosen_variant_that_is_gone_is_named_and_kept(project: EvalProject) -> None:
    project.eval(case("a", FAIL), variants=[{"name": "x"}, {"name": "y"}])
    project.run("--mst", "--mst-variant", "x")
    project.eval(case("a", FAIL), variants=[{"name": "y"}, {"name": "z"}])
    session = resumed(project)
    assert session.code == 10, session.text
    assert "a [x]: is there no more: what is stored of it is kept" in session.text


def test_half_written_files_are_removed_and_told(project: EvalProject) -> None:
    project.eval(case("a", FAIL))
    project.run("--mst")
    run = the_run(project)
    left = run.folder / "traces" / "default" / "a" / ".0.json.123-ab-0.tmp"
    left.write_text('{"format":', encoding="utf-8")
    session = resumed(project)
    assert "1 line or file that cannot be read, as a killed process leaves them" in session.text
    assert not left.exists()


def test_keys_of_another_scheme_are_compared_with_nothing(project: EvalProject) -> None:
    project.eval(case("a", call("find"), FAIL))
    project.run("--mst")
    run = the_run(project)
    calls = len(project.desk_calls)
    path = run.folder / "run.json"
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["keyScheme"] += 1
    path.write_text(json.dumps(stored), encoding="utf-8")
    before = project.stored()
    session = resumed(project)
    assert session.code == 4
    assert "stored by another version or tool" in session.text
    assert project.stored() == before
    assert len(project.desk_calls) == calls


def test_what_was_implied_may_be_said_when_a_run_is_taken_up(project: EvalProject) -> None:
    project.eval(case("a", call("find"), OK, trials=2), case("b", call("find"), OK, trials=2))
    assert project.run("--mst").code == 0
    calls = len(project.desk_calls)
    said = ["--mst-trials", "2", "--mst-variant", "default", "--mst-client", "scripted"]
    session = resumed(project, *said)
    assert session.code == 0, session.text
    assert session.taken_up == [(4, 0, 0, 0)]
    assert len(project.desk_calls) == calls


def test_each_trial_is_a_go_of_its_own(project: EvalProject) -> None:
    project.eval(file="desk.json")
    project.test_file(
        """
        import itertools

        NUMBERS = itertools.count()

        @pytest.fixture(scope="module")
        def mst_client():
            async def counts(request):
                request.trace.evidence = "structured"  # it asks no server, and says so itself
                return str(next(NUMBERS))
            return counts

        @pytest.mark.mst(input="how many?", config="desk.json", trials=5)
        def test_counts(trial): assert trial.answer.isdigit()
        """
    )
    assert project.run("--mst").code == 0
    run = the_run(project)
    answers = [run.trace_file("test_counts", number)["trace"]["answer"] for number in range(5)]
    assert sorted(answers) == ["0", "1", "2", "3", "4"]


def test_with_x_an_old_failure_does_not_keep_a_run_from_being_finished(
    project: EvalProject,
) -> None:
    project.eval(case("fails", answer("no")), case("b", FAIL), case("c", OK), concurrency=1)
    project.run("--mst", "-x")
    project.eval(case("fails", answer("no")), case("b", OK), case("c", OK), concurrency=1)
    session = resumed(project, "-x")
    assert session.code == 1
    assert the_run(project).verdicts == {"fails": "failed", "b": "passed", "c": "passed"}


def test_grading_again_needs_the_name_of_a_run(project: EvalProject) -> None:
    project.eval(case("a", FAIL))
    project.run("--mst")
    session = project.run("--mst", "--mst-grade", "")
    assert session.code == 4
    assert "--mst-grade names no run" in session.text
