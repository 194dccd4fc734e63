"""Several runs into one folder of results: at once, in one second, and one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Session,
    StoredRun,
    answer,
    call,
    case,
    write,
)

OK = answer("ok")


def latest(project: EvalProject, eval_name: str = "desk") -> dict[str, str]:
    """Return what `latest.json` of an eval says."""
    path = project.root / ".mst-results" / eval_name / "latest.json"
    content: dict[str, str] = json.loads(path.read_text())
    return content


def all_folders(project: EvalProject) -> list[Path]:
    return sorted((project.root / ".mst-results").glob("*/runs/*"))


@pytest.mark.parametrize("args", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_two_runs_of_one_eval_at_once_are_both_whole(
    project: EvalProject, args: tuple[str, ...]
) -> None:
    project.eval(
        *(case(f"finds-{n}", call("find"), OK, trials=3) for n in range(4)),
        *(
            case(f"posts-{n}", call("post"), OK, expected={"writes": [write("post")]})
            for n in range(4)
        ),
    )
    with project.started("--mst", *args) as first, project.started("--mst", *args) as second:
        codes = [one.process.wait(60) for one in (first, second)]
    assert codes == [0, 0], (project.root / "out.txt").read_text()
    folders = all_folders(project)
    assert len(folders) == 2
    for folder in folders:
        run = StoredRun(folder)
        assert run.ledger == {
            "planned": 16,
            "graded": 16,
            "ungraded": 0,
            "infrastructure": 0,
            "unstarted": 0,
        }
        assert len(run.journal) == 32
        assert {one["locator"] for one in run.journal} == {
            one["locator"] for name, one in run.files.items() if name.startswith("traces/")
        }
        assert all(
            one["runId"] == folder.name for one in run.files.values() if isinstance(one, dict)
        )
        for n in range(4):
            assert len(run.writes(f"posts-{n}")) == 1
    assert latest(project)["runId"] in {folder.name for folder in folders}


def test_runs_of_two_evals_are_both_kept(project: EvalProject) -> None:
    project.eval(case("one", OK), name="first")
    project.eval(case("one", answer("wrong")), name="second")
    assert project.run("--mst", "first.eval.json", plugins=("mst",)).code == 0
    assert project.run("--mst", "second.eval.json", plugins=("mst",)).code == 1
    runs = {folder.parents[1].name: StoredRun(folder) for folder in all_folders(project)}
    assert runs["first"].verdicts == {"one": "passed"}
    assert runs["second"].verdicts == {"one": "failed"}
    assert latest(project, "first")["runId"] == runs["first"].plan["runId"]
    assert latest(project, "second")["runId"] == runs["second"].plan["runId"]


def test_a_run_of_some_cases_does_not_take_the_place_of_the_last_full_one(
    project: EvalProject,
) -> None:
    project.eval(*(case(f"case-{n}", OK) for n in range(5)))
    full = project.run("--mst", plugins=("mst",)).run
    some: Session = project.run("--mst", "-k", "case-3", plugins=("mst",))
    assert some.run.plan["partial"] is True
    assert full.plan["partial"] is False
    assert latest(project)["runId"] == full.plan["runId"]
    assert len(full.results["cases"]) == 5
    assert len(some.run.results["cases"]) == 1


def test_a_clock_that_jumps_neither_ends_an_attempt_nor_makes_it_negative(
    project: EvalProject,
) -> None:
    project.eval(case("unused", OK), clientOptions={"script": [OK]}, servers={}, timeout=30_000)
    project.write(
        "conftest.py",
        """
        import time

        import pytest

        true_time = time.time

        @pytest.fixture(scope="session")
        def mst_client():
            async def agent(request):
                request.trace.evidence = "structured"  # it asks no server, and says so itself
                shift_s = float(request.input)
                time.time = lambda: true_time() + shift_s
                return "ok"

            return agent
        """,
    )
    project.test_file(
        """
        @pytest.mark.mst(input="-7200", config="desk.eval.json", trials=2)
        def test_back(trial): assert trial.answer == "ok"

        @pytest.mark.mst(input="7200", config="desk.eval.json", trials=2)
        def test_forth(trial): assert trial.answer == "ok"
        """
    )
    run = project.run("--mst", "test_evals.py", plugins=("mst",)).run
    assert run.verdicts == {"test_back": "passed", "test_forth": "passed"}
    stored = [one for name, one in run.files.items() if name.startswith("traces/")]
    assert len(stored) == 4
    assert all(0 <= one["durationMs"] < 30_000 for one in stored)


def test_the_latest_run_is_the_one_that_ended_last_whatever_the_clock_says(
    project: EvalProject,
) -> None:
    project.eval(case("one", OK))
    first = project.run("--mst", plugins=("mst",)).run
    project.write(
        "conftest.py",
        """
        from datetime import datetime, timedelta

        from pytest_mst.plugin import session

        class AnHourAgo(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) - timedelta(hours=1)

        session.datetime = AnHourAgo
        """,
    )
    second = project.run("--mst", plugins=("mst",)).run
    assert second.plan["createdAt"] < first.plan["createdAt"]
    assert latest(project)["runId"] == second.plan["runId"]
