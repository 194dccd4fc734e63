"""What a session's evals come to, and the exit code that says so."""

from __future__ import annotations

from tests.plugin.eval_project import EvalProject, answer, call, case, says

GOOD = case("good", answer("ok"))
BAD = case("bad", answer("no"))
BROKEN = case("broken", {"fail": {"broke": "network", "reason": "no route"}})

PASSING_TEST = "def test_ordinary(): pass\n"
FAILING_TEST = "def test_ordinary(): assert 0\n"


def test_all_cases_pass_is_0(project: EvalProject) -> None:
    project.eval(GOOD, case("finds", call("find", name="x"), answer("ok: {{last.text}}")))
    session = project.run("--mst")
    assert session.code == 0
    run = session.run
    assert run.verdicts == {"good": "passed", "finds": "passed"}
    assert run.ledger == {
        "planned": 2,
        "graded": 2,
        "ungraded": 0,
        "infrastructure": 0,
        "unstarted": 0,
    }
    assert run.summary["cases"] == {"passed": 2, "failed": 0, "incomplete": 0, "skipped": 0}
    assert run.trace_file("finds")["trace"]["answer"] == 'ok: find {"name": "x"}'
    assert project.desk_calls == ["find"]
    assert run.plan["partial"] is False
    latest = project.root / ".mst-results" / "desk" / "latest.json"
    assert run.plan["runId"] in latest.read_text()


def test_a_failed_case_is_1(project: EvalProject) -> None:
    project.eval(GOOD, BAD)
    session = project.run("--mst")
    assert session.code == 1
    assert session.run.verdicts == {"good": "passed", "bad": "failed"}
    assert "1 failed, 1 passed" in session.out


def test_nothing_failed_and_something_incomplete_is_10(project: EvalProject) -> None:
    project.eval(GOOD, BROKEN)
    session = project.run("--mst")
    assert session.code == 10
    run = session.run
    assert run.verdicts == {"good": "passed", "broken": "incomplete"}
    assert run.summary["passRate"] == 1.0
    assert run.ledger["infrastructure"] == 1
    assert "1 passed, 1 incomplete" in session.out


def test_a_failure_beside_an_incomplete_case_is_1(project: EvalProject) -> None:
    project.eval(BAD, BROKEN)
    session = project.run("--mst")
    assert session.code == 1
    assert session.run.verdicts == {"bad": "failed", "broken": "incomplete"}


def test_a_case_passes_when_enough_of_its_trials_do(project: EvalProject) -> None:
    mixed = {"clientOptions": {"scripts": [[answer("yes")], [answer("no")]]}}
    project.eval(
        case("tolerant", assertions=says("yes"), passThreshold=0.5) | mixed,
        case("strict", assertions=says("yes")) | mixed,
        trials=4,
    )
    session = project.run("--mst")
    assert session.code == 1
    run = session.run
    assert run.verdicts == {"tolerant": "passed", "strict": "failed"}
    verdicts = [one["verdict"] for one in run.case("tolerant")["trials"]]
    assert verdicts == ["passed", "failed", "passed", "failed"]
    assert run.case("strict")["passRate"] == 0.5
    assert run.summary["passRate"] == 0.5


def test_ordinary_tests_count_beside_evals(project: EvalProject) -> None:
    project.eval(GOOD)
    project.test_file(FAILING_TEST)
    failed = project.run("--mst")
    assert failed.code == 1
    assert failed.run.verdicts == {"good": "passed"}
    project.test_file(PASSING_TEST)
    project.eval(BROKEN)
    assert project.run("--mst").code == 10
    project.test_file(
        "@pytest.fixture\ndef broken(): raise OSError\ndef test_ordinary(broken): pass\n"
    )
    assert project.run("--mst").code == 1


def test_mst_without_an_eval_case_is_5_and_says_where_it_looked(project: EvalProject) -> None:
    project.write("evals/readme.txt", "no eval here")
    nothing = project.run("--mst", "evals")
    assert nothing.code == 5
    assert "no eval case selected" in nothing.out
    assert "looked in evals for *.eval.yaml, *.eval.yml, *.eval.json, and tests marked" in (
        nothing.out
    )
    project.test_file(PASSING_TEST)
    ordinary = project.run("--mst")
    assert ordinary.code == 5
    assert "1 passed" in ordinary.out
    assert "no eval case selected" in ordinary.out
    project.test_file(FAILING_TEST)
    assert project.run("--mst").code == 1


def test_no_case_chosen_by_tag_is_5_and_names_the_option(project: EvalProject) -> None:
    project.eval(GOOD)
    session = project.run("--mst", "--mst-tag", "nightly")
    assert session.code == 5
    assert "chosen by --mst-tag" in session.out
    assert session.folders == ()


def test_without_mst_evals_are_not_there(project: EvalProject) -> None:
    project.eval(GOOD)
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        @pytest.mark.writes(server="desk", tool="post")
        def test_case(trial, mst_run, write_record, dry_run_proxy): assert 0
        def test_ordinary(): pass
        """
    )
    session = project.run("-v")
    assert session.code == 0
    assert "1 passed, 1 deselected" in session.out
    assert "desk.eval.json" not in session.out
    assert session.folders == ()
    assert project.desk_starts == 0
    known = project.run("--markers")
    assert "@pytest.mark.mst(input=, config=" in known.out
    assert "@pytest.mark.writes(server=" in known.out


def test_an_eval_file_named_without_mst_is_not_run(project: EvalProject) -> None:
    path = project.eval(GOOD)
    session = project.run(path.name)
    assert session.code in (4, 5)
    assert "Traceback" not in session.text
    assert project.desk_starts == 0


def test_the_ini_setting_turns_evals_on(project: EvalProject) -> None:
    project.eval(GOOD)
    project.write("pytest.ini", "[pytest]\nmst = true\nmst_trials = 2\nmst_results = kept\n")
    session = project.run()
    assert session.code == 0
    assert "planned 2 = graded 2" in session.out
    assert (project.root / "kept" / "desk" / "runs").is_dir()
    over = project.run("--mst-trials", "3")
    assert "planned 3 = graded 3" in over.out


def test_settings_have_their_own_types_in_toml(project: EvalProject) -> None:
    project.eval(GOOD | {"tags": ["smoke"]})
    (project.root / "pytest.ini").unlink()
    settings = "mst = true\nmst_trials = 2\nmst_tag = ['smoke']\n"
    project.write("pyproject.toml", f"[tool.pytest]\n{settings}")
    session = project.run()
    assert session.code == 0, session.text
    assert "planned 2 = graded 2" in session.out
