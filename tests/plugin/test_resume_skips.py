"""Cases that are skipped when their run is taken up again: what is stored of them stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.eval_project import EvalProject, Json, Session, StoredRun, answer, case
from tests.plugin.resumed import Files, changed_files, client_inputs, python_project, set_state

OK = answer("ok")
FAIL: Json = {"fail": {"broke": "provider", "reason": "a bad hour", "retryable": True}}
SOURCE = """
from pathlib import Path
def skips(who):
    return who == "SKIPPER" and (Path(__file__).parent / "skips").exists()

@pytest.fixture(scope="SCOPE")
def later():
    if skips("fixture") or skips("module fixture"):
        pytest.skip("later")

@pytest.mark.skipif(skips("mark"), reason="later")
@pytest.mark.mst(input="busy", config="desk.json", trials=3)
def test_busy(later, GIVEN):
    if skips("body"):
        dry_run_proxy.call("desk", "post", {"text": "before the skip"})
        pytest.skip("later")
    assert GRADE
"""
GRADES = {
    "trial": "trial.answer == 'ok'",
    "mst, dry_run_proxy": "mst.run_sync().answer == 'ok'",
}


def source(by: str, collected_by: str = "mst, dry_run_proxy") -> str:
    """Return a test file whose case is skipped, where a file says so, by one of several."""
    scope = "module" if by == "module fixture" else "function"
    text = SOURCE.replace("SCOPE", scope).replace("SKIPPER", by)
    return text.replace("GIVEN", collected_by).replace("GRADE", GRADES[collected_by])


def resume(project: EvalProject, run: StoredRun) -> Session:
    return project.run("--mst", "--mst-resume", run.folder.name)


def ledger(run: StoredRun) -> tuple[int, ...]:
    """Return planned, graded, ungraded, infrastructure, unstarted, as they are now."""
    return tuple(StoredRun(run.folder).ledger.values())


def named(session: Session) -> list[str]:
    """Return what is said of cases that changed, before anything is done."""
    said = [line.strip() for line in session.out.splitlines() if line.startswith("  ")]
    return [line for line in said if not line.startswith("warning: ")]  # those are of the servers


def without_trials(run: StoredRun, case_id: str, *trials: int) -> None:
    """Take trials of a run away, as if they had never begun."""
    for trial in trials:
        for path in run.folder.glob(f"*/**/{case_id}/{trial}.json*"):
            path.unlink()


def kept(run: StoredRun) -> Files:
    """Return the attempts, scores and write records of a run; not what was put aside."""
    return {
        str(path.relative_to(run.folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for folder in ("traces", "scores", "writes")
        for path in run.folder.glob(f"{folder}/**/*.json*")
    }


@pytest.mark.parametrize(
    ("by", "collected_by"),
    [
        ("mark", "trial"),
        ("mark", "mst, dry_run_proxy"),
        ("fixture", "trial"),
        ("module fixture", "trial"),
        ("module fixture", "mst, dry_run_proxy"),
        ("body", "mst, dry_run_proxy"),
    ],
)
def test_a_python_case_that_is_skipped_now_keeps_what_is_stored_and_counts(
    tmp_path: Path, by: str, collected_by: str
) -> None:
    project = python_project(tmp_path, source(by, collected_by))
    set_state(project, "mended")
    run = project.run("--mst").run
    assert ledger(run) == (3, 3, 0, 0, 0)
    without_trials(run, "test_busy", 1, 2)
    before = kept(run)
    client_inputs(project)
    project.write("skips", "")
    again = project.run("--mst", "--mst-resume", run.folder.name, "--junitxml=junit.xml")
    assert again.code == 10, again.text
    assert changed_files(before, kept(run)) == set()
    assert client_inputs(project) == []
    assert ledger(run) == (3, 1, 0, 0, 2)
    assert StoredRun(run.folder).verdicts == {"test_busy": "incomplete"}
    said = (project.root / "junit.xml").read_text()
    assert "skipped now (Skipped: later): what there is of it stands" in said
    (project.root / "skips").unlink()
    last = resume(project, run)
    assert (last.code, ledger(run)) == (0, (3, 3, 0, 0, 0)), last.text


def test_a_failure_that_a_skipping_body_began_to_replace_is_put_back(tmp_path: Path) -> None:
    project = python_project(tmp_path, source("body"))
    set_state(project)
    run = project.run("--mst").run
    assert ledger(run) == (3, 0, 0, 3, 0)
    before = kept(run)
    project.write("skips", "")
    again = resume(project, run)
    assert changed_files(before, kept(run)) == set()
    assert ledger(run) == (3, 0, 0, 3, 0)
    assert again.count("replaced") == 0
    [written] = run.folder.glob("superseded/*/writes/default/test_busy/0.jsonl")
    assert "before the skip" in written.read_text()


def test_a_body_that_skips_in_a_new_run_leaves_no_attempt_and_none_that_was_lost(
    tmp_path: Path,
) -> None:
    project = python_project(tmp_path, source("body"))
    project.write("skips", "")
    first = project.run("--mst")
    run = first.run
    for session in (first, resume(project, run)):
        assert (session.code, ledger(run)) == (0, (0, 0, 0, 0, 0)), session.text
        assert StoredRun(run.folder).summary["cases"]["skipped"] == 1
        assert kept(run) == {}


@pytest.mark.parametrize("distributed", [(), ("-n1",)], ids=["one process", "worker"])
def test_an_eval_files_case_whose_fixture_skips_it_keeps_what_is_stored(
    tmp_path: Path, distributed: tuple[str, ...]
) -> None:
    project = EvalProject(tmp_path)
    project.eval(case("a", OK, trials=3))
    run = project.run("--mst").run
    without_trials(run, "a", 0)
    before = kept(run)
    project.write(
        "conftest.py",
        """
        import pytest
        @pytest.fixture(scope="module", autouse=True)
        def needs():
            pytest.skip("no network today")
        """,
    )
    again = project.run("--mst", "--mst-resume", run.folder.name, *distributed)
    assert again.code == 10, again.text
    assert changed_files(before, kept(run)) == set()
    assert ledger(run) == (3, 2, 0, 0, 1)


def test_a_skip_in_the_eval_file_is_named_and_leaves_what_is_stored_as_it_is(
    tmp_path: Path,
) -> None:
    project = EvalProject(tmp_path)
    project.eval(case("done", OK, trials=2), case("broken", FAIL), case("late", OK, skip="not yet"))
    run = project.run("--mst").run
    before = kept(run)
    skips = [case("done", OK, trials=2, skip="for now"), case("broken", OK, skip="for now")]
    project.eval(*skips, case("late", OK, skip="not yet"))
    again = resume(project, run)
    assert (again.code, ledger(run)) == (10, (3, 2, 0, 1, 0)), again.text
    assert again.taken_up == [(3, 0, 0, 1)]
    assert named(again) == [
        "done [default]: is skipped now (for now): what is stored of it is kept",
        "broken [default]: is skipped now (for now): what is stored of it is kept",
    ]
    assert "its case is skipped (for now): take its `skip` away" in again.out
    assert changed_files(before, kept(run)) == set()
    project.eval(case("done", OK, trials=2), case("broken", OK), case("late", OK))
    last = resume(project, run)
    assert (last.code, ledger(run)) == (0, (4, 4, 0, 0, 0)), last.text
    assert named(last)[0] == (
        "late [default]: was skipped (not yet), and its file does not skip it now: it is collected"
    )


def test_a_case_that_is_skipped_before_anything_is_stored_of_it_is_outside_the_ledger(
    tmp_path: Path,
) -> None:
    project = EvalProject(tmp_path)
    project.eval(case("a", OK, trials=2), case("b", OK))
    run = project.run("--mst").run
    without_trials(run, "a", 0, 1)
    project.eval(case("a", OK, trials=2, skip="for now"), case("b", OK))
    again = resume(project, run)
    assert (again.code, ledger(run)) == (0, (1, 1, 0, 0, 0)), again.text
    assert named(again) == ["a [default]: is skipped now (for now): it is left out"]


def test_a_case_that_is_skipped_after_its_first_trial_counts(tmp_path: Path) -> None:
    project = python_project(
        tmp_path,
        """
        made = []
        @pytest.fixture
        def once():
            if made:
                pytest.skip("once is enough")
        @pytest.mark.mst(input="busy", config="desk.json", trials=3)
        def test_busy(once, mst):
            made.append(mst.run_sync())
        """,
    )
    set_state(project, "mended")
    session = project.run("--mst")
    assert session.code == 10, session.text
    assert client_inputs(project) == ["busy"]
    assert session.run.ledger["unstarted"] == 2
    assert session.run.summary["cases"]["skipped"] == 0
