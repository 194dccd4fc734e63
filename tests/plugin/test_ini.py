"""Ini settings: they hold where no option, no marker and no file says anything."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import INI, EvalProject, Json, StoredRun, answer, case

OK = answer("ok")


def trials_of(run: StoredRun) -> dict[str, int]:
    """Count the attempts of each case."""
    return {one["id"]: len(one["trials"]) for one in run.results["cases"]}


def test_trials_of_the_ini_file_stand_behind_files_markers_and_options(
    project: EvalProject,
) -> None:
    project.write("pytest.ini", INI + "mst_trials = 3\n")
    project.eval(case("one", OK), name="said", trials=2, servers={})
    project.eval(case("one", OK), case("own", OK, trials=1), name="unsaid", servers={})
    project.eval(case("x", OK), name="base", servers={}, clientOptions={"script": [OK]})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="base.eval.json", trials=2)
        def test_marked(trial): assert trial.answer
        @pytest.mark.mst(input="x", config="base.eval.json")
        def test_unmarked(trial): assert trial.answer
        """
    )
    session = project.run("--mst")
    assert session.code == 0, session.text
    assert trials_of(session.run_of("said")) == {"one": 2}
    assert trials_of(session.run_of("unsaid")) == {"one": 3, "own": 1}
    assert trials_of(session.run_of("test_evals")) == {"test_marked": 2, "test_unmarked": 3}
    told = project.run("--mst", "--mst-trials", "1", "said.eval.json", "test_evals.py")
    assert trials_of(told.run_of("said")) == {"one": 1}
    assert trials_of(told.run_of("test_evals")) == {"test_marked": 1, "test_unmarked": 1}


def test_the_client_of_the_ini_file_stands_behind_files(project: EvalProject) -> None:
    project.write("pytest.ini", INI + "mst_client = nobody\n")
    project.eval(case("one", OK), servers={})
    assert project.run("--mst").code == 0
    project.eval(case("one", OK), servers={}, client=None)
    refused = project.run("--mst")
    assert refused.code == 4
    assert "'nobody'" in refused.text
    assert project.run("--mst", "--mst-client", "scripted").code == 0


@pytest.mark.parametrize(
    ("stated", "option", "where"),
    [("from-file", None, "from-file"), (None, None, "from-ini"), ("from-file", "mine", "mine")],
)
def test_the_results_of_the_ini_file_stand_behind_files(
    project: EvalProject, stated: str | None, option: str | None, where: str
) -> None:
    project.write("pytest.ini", INI + "mst_results = from-ini\n")
    results: Json = {"results": {"store": {"type": "file", "dir": stated}}} if stated else {}
    project.eval(case("one", OK), servers={}, **results)
    args = ("--mst-results", option) if option else ()
    assert project.run("--mst", *args).code == 0
    kept = {path.parents[3].name for path in project.root.glob("*/*/runs/*/run.json")}
    assert kept == {where}
