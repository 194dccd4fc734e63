"""Choosing what runs: by name, node id, tag, variant and last result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.eval_project import Bell, EvalProject, Session, answer, call, case, desk

OK = answer("ok")
NO = answer("no")
NETWORK = {"fail": {"broke": "network"}}
ODD_ID = "Ümläute & [klammern] :: später"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> EvalProject:
    """Three cases by two variants, and Python cases; safe to run parts of again and again."""
    project = EvalProject(tmp_path_factory.mktemp("several"))
    project.eval(
        case("greets", OK, tags=["smoke", "short"]),
        case("waves", OK, tags=["short"], trials=2),
        case(ODD_ID, OK),
        variants=[{"name": "plain"}, {"name": "terse"}],
        servers={},
    )
    project.test_file(
        """
        @pytest.mark.mst(input="Hi", config="desk.eval.json", tags="smoke")
        def test_in_python(trial):
            assert trial.answer == "ok"
        """
    )
    path = project.root / "desk.eval.json"
    config = json.loads(path.read_text())
    config["clientOptions"] = {"script": [OK]}
    path.write_text(json.dumps(config))
    return project


def ran(session: Session, name: str = "desk") -> set[str]:
    """Return the cases that were run, with their variants."""
    assert session.code == 0, session.text
    return {f"{one['id']}::{one['variant']}" for one in session.run_of(name).results["cases"]}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-k", "greets"], {"greets::plain", "greets::terse"}),
        (["-k", "terse and not waves"], {"greets::terse", f"{ODD_ID}::terse"}),
        (["desk.eval.json::waves"], {"waves::plain", "waves::terse"}),
        (["desk.eval.json::waves::terse"], {"waves::terse"}),
        (["--mst-tag", "smoke"], {"greets::plain", "greets::terse"}),
        (
            ["--mst-tag", "short", "--mst-variant", "plain"],
            {"greets::plain", "waves::plain"},
        ),
        (
            ["desk.eval.json", "--mst-variant=terse", "-k", "waves or greets"],
            {"waves::terse", "greets::terse"},
        ),
    ],
)
def test_a_part_is_chosen_and_the_run_says_it_is_partial(
    several: EvalProject, args: list[str], expected: set[str]
) -> None:
    session = several.run("--mst", *args)
    assert ran(session) == expected
    run = session.run_of("desk")
    assert run.plan["partial"] is True
    assert run.summary["partial"] is True


def test_fewer_trials_are_partial_and_leave_latest_alone(several: EvalProject) -> None:
    whole = several.run("--mst")
    latest = several.root / ".mst-results" / "desk" / "latest.json"
    assert whole.run_of("desk").plan["partial"] is False
    said = latest.read_text()
    assert whole.run_of("desk").plan["runId"] in said
    more = several.run("--mst", "--mst-trials", "3")
    assert more.run_of("desk").ledger["planned"] == 18
    assert more.run_of("desk").plan["partial"] is True
    assert more.run_of("desk").plan["selection"] == {"trials": 3}
    assert latest.read_text() == said
    one = several.run("--mst", "desk.eval.json::greets")
    assert one.code == 0
    assert latest.read_text() == said


def test_tags_and_variants_choose_python_cases_too(several: EvalProject) -> None:
    session = several.run("--mst", "--mst-tag", "smoke", "--mst-variant", "terse", "test_evals.py")
    assert ran(session, "test_evals") == {"test_in_python::terse"}
    none = several.run("--mst", "--mst-tag", "short", "test_evals.py")
    assert none.code == 5
    assert "2 deselected" in none.out


def test_collect_only_writes_nothing_and_its_ids_can_be_selected(several: EvalProject) -> None:
    before = _files(several.root)
    listed = several.run("--mst", "--collect-only", "-q")
    assert listed.code == 0
    assert _files(several.root) == before
    ids = [line for line in listed.out.splitlines() if "::" in line]
    assert len(ids) == 8
    assert "desk.eval.json::greets::plain" in ids
    assert "test_evals.py::test_in_python[plain]" in ids
    odd = [one for one in ids if "klammern" in one]
    assert all(one.isascii() for one in odd)
    again = several.run("--mst", odd[1], ids[0], ids[-1])
    assert ran(again) == {f"{ODD_ID}::terse", "greets::plain"}
    assert ran(again, "test_evals") == {"test_in_python::terse"}


def test_filter_tags_of_the_eval_hold_unless_the_option_says_otherwise(
    project: EvalProject,
) -> None:
    cases = case("a", OK, tags=["smoke"]), case("b", OK, tags=["slow"])
    project.eval(*cases, servers={}, filterTags=["smoke"])
    assert set(project.run("--mst").run.verdicts) == {"a"}
    assert set(project.run("--mst", "--mst-tag", "slow").run.verdicts) == {"b"}


def test_last_failed_runs_the_failed_and_the_incomplete_again(project: EvalProject) -> None:
    project.eval(case("good", OK), case("bad", NO), case("broken", NETWORK), servers={})
    assert project.run("--mst").code == 1
    again = project.run("--mst", "--lf")
    assert again.run.verdicts == {"bad": "failed", "broken": "incomplete"}
    project.eval(case("good", OK), case("bad", OK), case("broken", OK), servers={})
    fixed = project.run("--mst", "--lf")
    assert (fixed.code, set(fixed.run.verdicts)) == (0, {"bad", "broken"})


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize("first", ["failed", "incomplete"])
def test_x_ends_what_is_under_way_and_begins_nothing_more(
    project: EvalProject, processes: str, first: str
) -> None:
    steps = [NO] if first == "failed" else [NETWORK]
    project.eval(
        case("first", *steps),
        *(case(f"later-{number}", OK, trials=4) for number in range(30)),
        servers={},
    )
    session = project.run("--mst", "-x", "-n", processes, "--mst-concurrency", "2")
    run = session.run
    assert session.code == (1 if first == "failed" else 10)
    assert run.case("first")["verdict"] == first
    assert run.ledger["unstarted"] > (60 if processes == "0" else 0)
    assert len(run.results["cases"]) == 31
    ended = {line["locator"] for line in run.journal if line["kind"] == "ended"}
    assert {line["locator"] for line in run.journal if line["kind"] == "begun"} <= ended
    trials = [trial for one in run.results["cases"] for trial in one["trials"]]
    assert {one["locator"] for one in trials if one["ending"]} == ended
    assert not (project.root / ".mst-results" / "desk" / "latest.json").exists()


def test_x_lets_attempts_under_way_end(project: EvalProject, bell: Bell) -> None:
    project.eval(
        case("first", NO),
        case("under-way", call("stall"), OK),
        case("later", OK, trials=50),
        servers={"desk": desk()},
        timeout=1500,
    )
    session = project.run("--mst", "-x", "--mst-concurrency", "2")
    run = session.run
    assert run.ending("under-way")["broke"] == "deadline"
    assert run.ledger["unstarted"] > 0
    assert session.code == 1


def test_a_skipped_case_is_shown_and_is_outside_the_ledger(project: EvalProject) -> None:
    project.eval(case("runs", OK), case("waits", NO, skip="for the new search"), servers={})
    session = project.run("--mst", "-rs")
    assert session.code == 0
    run = session.run
    assert run.ledger["planned"] == 1
    assert run.summary["cases"] == {"passed": 1, "failed": 0, "incomplete": 0, "skipped": 1}
    assert set(run.verdicts) == {"runs"}
    assert "1 passed, 1 skipped" in session.out
    assert "skipped     waits: for the new search" in session.out
    assert (project.root / ".mst-results" / "desk" / "latest.json").exists()


def test_skip_marks_leave_python_cases_out_of_the_ledger(project: EvalProject) -> None:
    project.eval(case("unused", OK), servers={}, clientOptions={"script": [OK]})
    project.test_file(
        """
        CASE = pytest.mark.mst(input="x", config="desk.eval.json", trials=2)

        @CASE
        def test_runs(trial): assert trial.answer
        @CASE
        @pytest.mark.skip(reason="not yet")
        def test_marked(trial): assert 0
        @CASE
        @pytest.mark.skipif(True, reason="never here")
        def test_conditionally(trial): assert 0
        @pytest.fixture
        def elsewhere(): pytest.skip("no such place")
        @CASE
        def test_from_a_fixture(elsewhere, trial): assert 0
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert "1 passed, 3 skipped" in session.out
    assert session.code == 0, session.text
    run = session.run
    assert run.verdicts == {"test_runs": "passed"}
    assert run.ledger["planned"] == 2
    assert run.summary["cases"]["skipped"] == 3


def _files(root: Path) -> list[str]:
    """List what is in a project, less what pytest and the harness keep there."""
    passing = {".pytest_cache", "__pycache__", "out.txt", "err.txt"}
    return sorted(str(path) for path in root.rglob("*") if not passing & set(path.parts))
