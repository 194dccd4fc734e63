"""Judges that are Python functions, as a user has them: what they say, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.eval_project import EvalProject, answer, call, case

POST = call("post", channel="#team", text="hello")

JUDGES = """
    from pathlib import Path

    HERE = Path(__file__).parent

    def state():
        file = HERE / "state"
        return file.read_text() if file.exists() else ""

    def numbers(trial):
        said = trial.answer.removeprefix("ok ")
        return eval(said, {"nan": float("nan"), "inf": float("inf")})

    def moody(trial):
        if trial.answer.endswith("bad") and "mended" not in state():
            raise ConnectionRefusedError("the judge is not at home")
        return True

    async def recorded(trial):
        trial.writes.one("post", arguments={"channel": "#team"})
        return {"pass": True, "value": 0.75, "reason": "it is in the record"}

    def told(trial, word="ok"):
        return {"pass": word in trial.answer, "reason": f"looked for {word}", "details": {"n": 1}}

    def unsure(trial):
        return {"unknown": "ask somebody who was there"}

    def wrong_name():
        return True
"""


def judged_by(name: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "object": f"house_judges:{name}", **more}]


@pytest.fixture
def project(project: EvalProject) -> EvalProject:
    project.write("house_judges.py", JUDGES)
    return project


def test_zero_is_a_grade_and_what_is_no_number_from_0_to_1_is_none(project: EvalProject) -> None:
    """Field report GR-08."""
    said = ["0", "0.0", "nan", "inf", "1.7", "None", "'abc'"]
    cases = [case(f"c{number}", answer(f"ok {one}")) for number, one in enumerate(said)]
    project.eval(*cases, judges=judged_by("numbers"))
    session = project.run("--mst")
    verdicts = [session.run.trial(f"c{number}")["verdict"] for number in range(len(said))]
    assert verdicts == ["failed", "failed", *["ungraded"] * 5]
    scores = [session.run.trial(f"c{number}")["scores"].get("numbers") for number in range(7)]
    assert [one["value"] for one in scores[:2] if one] == [0.0, 0.0]
    assert scores[2:] == [None] * 5
    assert "returned null" in session.run.trial("c5")["graderFailures"]["numbers"]


def test_an_error_on_one_case_is_of_that_case_alone(project: EvalProject) -> None:
    """Field report GR-02."""
    cases = [case(f"c{number}", answer("ok bad" if number == 1 else "ok")) for number in range(5)]
    project.eval(*cases, judges=judged_by("moody"))
    session = project.run("--mst")
    verdicts = session.run.verdicts
    assert verdicts == {f"c{n}": "incomplete" if n == 1 else "passed" for n in range(5)}
    assert session.code == 10
    said = session.run.trial("c1")["graderFailures"]["moody"]
    assert said == "raised ConnectionRefusedError: the judge is not at home"
    assert "Traceback" not in session.text


def test_a_judge_that_was_out_grades_on_resume_and_nothing_is_collected_again(
    project: EvalProject,
) -> None:
    """Field report GR-04."""
    script = {"scripts": [[answer("ok")], [answer("ok bad")], [answer("ok")]]}
    project.eval(
        case("c", options=script, trials=3) | {"clientOptions": script}, judges=judged_by("moody")
    )
    first = project.run("--mst")
    verdicts = [trial["verdict"] for trial in first.run.case("c")["trials"]]
    assert verdicts == ["passed", "ungraded", "passed"]
    assert first.finish_with == ["--mst", "--mst-resume", first.run.folder.name[-6:]]
    project.write("state", "mended")
    again = project.run(*first.finish_with)
    assert again.taken_up == [(2, 0, 1, 0)]
    assert again.code == 0
    [run] = [type(first.run)(folder) for folder in first.folders]
    assert sum(line["kind"] == "begun" for line in run.journal) == 3
    assert "gradingError" not in run.trace_file("c", 1)


def test_every_rate_says_over_how_many_when_judges_fail(project: EvalProject) -> None:
    """Field report GR-09."""
    cases = [case(f"c{number}", answer("ok" if number == 0 else "ok bad")) for number in range(4)]
    project.eval(*cases, judges=judged_by("moody"))
    session = project.run("--mst")
    assert session.run.summary["cases"] == {"passed": 1, "failed": 0, "incomplete": 3, "skipped": 0}
    assert "pass rate 100% (1 of 1 complete cases; 3 incomplete left out)" in session.out


def test_a_judge_that_says_nothing_takes_its_trial_out_of_the_rate(project: EvalProject) -> None:
    """Field report GR-11."""
    scripts = [[answer(f"ok {'None' if number == 7 else 'True'}")] for number in range(8)]
    one = case("c", trials=8) | {"clientOptions": {"scripts": scripts}}
    project.eval(one, judges=judged_by("numbers"))
    session = project.run("--mst")
    assert session.run.ledger["graded"] == 7
    assert session.run.ledger["ungraded"] == 1
    assert session.run.summary["variants"][0]["trialPassRate"] == 1.0
    values = [trial["scores"]["numbers"] for trial in session.run.case("c")["trials"][:7]]
    assert all(one.get("value", 0) >= 0 for one in values)


def test_a_judge_sees_the_record_and_fails_by_an_assertion(project: EvalProject) -> None:
    made = case("made", POST, answer("ok"), expected={"writes": [{"tool": "post"}]})
    claimed = case("claimed", answer("ok, posted"), expected={"writes": []})
    project.eval(made, claimed, judges=judged_by("recorded"))
    session = project.run("--mst")
    assert session.run.verdicts == {"made": "passed", "claimed": "failed"}
    score = session.run.trial("made")["scores"]["recorded"]
    assert score == {
        "pass": True,
        "value": 0.75,
        "evidence": "requested",
        "reason": "it is in the record",
    }
    refused = session.run.trial("claimed")["scores"]["recorded"]
    assert "0 writes match post" in refused["reason"]


def test_options_are_handed_to_the_function_and_a_case_changes_them_by_name(
    project: EvalProject,
) -> None:
    changed = {"name": "told", "options": {"word": "fine"}}
    cases = [case("as-said", answer("ok")), case("changed", answer("ok fine"), judges=[changed])]
    project.eval(*cases, judges=judged_by("told"))
    session = project.run("--mst")
    reasons = {
        one: session.run.trial(one)["scores"]["told"]["reason"] for one in ("as-said", "changed")
    }
    assert reasons == {"as-said": "looked for ok", "changed": "looked for fine"}


def test_an_unknown_leaves_the_trial_ungraded_and_is_not_asked_again(project: EvalProject) -> None:
    project.eval(case("c", answer("ok")), judges=judged_by("unsure"))
    first = project.run("--mst")
    assert first.run.trial("c")["verdict"] == "ungraded"
    assert "ask somebody who was there" in first.out
    again = project.run("--mst", "--mst-resume")
    assert again.taken_up == [(1, 0, 0, 1)]


def test_a_change_of_the_function_only_grades_again(project: EvalProject) -> None:
    project.eval(case("c", answer("ok")), judges=judged_by("told"))
    first = project.run("--mst")
    assert first.code == 0
    run_id = first.run.folder.name[-6:]
    assert project.run("--mst", "--mst-resume", run_id).taken_up == [(1, 0, 0, 0)]
    project.write("house_judges.py", JUDGES.replace("looked for", "was looking for"))
    again = project.run("--mst", "--mst-resume", run_id)
    assert again.taken_up == [(0, 0, 1, 0)]
    assert first.run.trial("c")["scores"]["told"]["reason"] == "was looking for ok"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("not_there", "there is no 'not_there'"),
        ("HERE", "is PosixPath"),
        ("wrong_name", "raised TypeError"),
    ],
)
def test_a_function_that_cannot_be_called_leaves_trials_ungraded(
    project: EvalProject, name: str, said: str
) -> None:
    project.eval(case("c", answer("ok")), judges=judged_by(name))
    session = project.run("--mst")
    assert session.code == 10
    assert said in session.run.trial("c")["graderFailures"][name]


def test_a_judge_that_nobody_registered_is_refused_before_anything_starts(
    project: EvalProject,
) -> None:
    project.eval(case("c", answer("ok")), judges=["house-style"])
    session = project.run("--mst")
    assert session.code == 4
    assert "judges: there is no 'house-style'; there are: rubric, function" in session.text
    assert "Traceback" not in session.text
    assert project.desk_starts == 0


@pytest.mark.parametrize("check", [{"containsText": []}, {"toolsTriggered": []}])
def test_a_case_whose_only_check_is_empty_is_refused(
    project: EvalProject, check: dict[str, Any]
) -> None:
    """Field report GR-12."""
    project.eval(case("c", answer("ok"), assertions=check))
    session = project.run("--mst")
    assert session.code == 4
    assert 'the case "c" has nothing that a trial of it could fail' in session.text


def test_judges_run_before_the_body_of_a_python_case_and_under_xdist(
    project: EvalProject,
) -> None:
    script = {"script": [answer("ok")]}
    project.eval(file="desk.json", clientOptions=script, judges=judged_by("told"))
    project.test_file("""
        @pytest.mark.mst(input="hello", config="desk.json", trials=2)
        def test_it(trial):
            assert trial.answer == "ok"
    """)
    session = project.run("--mst", "-n", "2")
    assert session.code == 0, session.text
    scores = session.run.trial("test_it", 1)["scores"]
    assert set(scores) == {"told", "body"}


def test_a_judge_that_ends_the_process_or_fails_with_pytest_speaks_for_its_own_trial_only(
    project: EvalProject,
) -> None:
    project.write(
        "wild_judges.py",
        """
    import sys
    import pytest

    def leaves(trial):
        sys.exit(3)

    def fails(trial):
        pytest.fail("not kind enough")

    def fine(trial):
        return True
""",
    )

    def by(*names: str) -> list[dict[str, Any]]:
        return [{"type": "function", "object": f"wild_judges:{name}"} for name in names]

    project.eval(
        case("left", answer("ok"), judges=by("leaves", "fine")),
        case("failed", answer("ok"), judges=by("fails", "fine")),
        case("passed", answer("ok"), judges=by("fine")),
    )
    session = project.run("--mst")
    assert session.code == 1, session.text
    assert session.run.verdicts == {"left": "incomplete", "failed": "failed", "passed": "passed"}
    assert "not kind enough" in session.text
    assert "SystemExit" in session.text
    assert session.run.trial("left")["scores"]["fine"]["pass"] is True
    assert "Traceback" not in session.text
