"""What is tried before the first attempt, and the model that the command line names."""

from __future__ import annotations

import pytest

from tests.model_provider.server import ModelProvider
from tests.model_provider.steps import say
from tests.plugin.eval_project import EvalProject, answer, case, says

ASKS = {"input": "Say ok", "assertions": says("ok"), "client": "mst"}


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_key_that_is_not_set_stops_the_cases_that_need_it_and_no_other(
    project: EvalProject, workers: tuple[str, ...]
) -> None:
    project.environ.pop("ANTHROPIC_API_KEY", None)
    project.eval({"id": "asks", **ASKS}, case("other", answer("ok")), model="claude-x")
    session = project.run("--mst", *workers)
    assert session.code == 10, session.text
    said = "ANTHROPIC_API_KEY is not set: model 'claude-x' cannot be asked"
    assert session.count(f"cannot be attempted: {said}") == 1
    assert "it stops 1 case: asks [default]" in session.text
    assert "Traceback" not in session.text
    ending = session.run.ending("asks")
    assert (ending["broke"], ending["retryable"]) == ("setup", False)
    assert said in ending["reason"]
    assert session.run.verdicts["other"] == "passed"


def test_the_model_of_the_command_line_comes_before_a_files(project: EvalProject) -> None:
    project.eval({"id": "asks", **ASKS, "model": "claude-of-case"}, model="claude-of-file")
    with ModelProvider([say("ok")]) as provider:
        project.environ |= provider.environment
        session = project.run("--mst", "--mst-model", "claude-asked")
    assert session.code == 0, session.text
    assert {one.model for one in provider.asked if one.body} == {"claude-asked"}
    assert session.run.plan["variants"][0]["model"] == "claude-asked"


def test_nothing_is_tried_where_nothing_is_collected(project: EvalProject) -> None:
    project.environ.pop("ANTHROPIC_API_KEY", None)
    project.eval({"id": "asks", **ASKS}, model="claude-x")
    session = project.run("--mst", "--collect-only")
    assert session.code == 0, session.text
    assert "cannot be attempted" not in session.text


def test_a_key_that_is_refused_and_a_model_that_is_not_there_stop_before_anything_is_paid_for(
    project: EvalProject,
) -> None:
    project.eval(
        {"id": "good", **ASKS},
        {"id": "nobody", **ASKS, "model": "claude-nobody"},
        {"id": "elsewhere", **ASKS, "model": "gpt-loopback"},
        model="claude-loopback",
    )
    models = {"claude-loopback", "gpt-loopback"}
    with ModelProvider([say("ok")], forever=True, models=models, keys={"good-key-123"}) as provider:
        project.environ |= provider.environment | {"ANTHROPIC_API_KEY": "good-key-123"}
        session = project.run("--mst")
        asked = [one.model for one in provider.asked]
    assert session.code == 10, session.text
    assert session.run.verdicts["good"] == "passed"
    assert asked.count("claude-loopback") == 1
    assert "gpt-loopback" not in asked
    unknown, refused = session.run.ending("nobody"), session.run.ending("elsewhere")
    assert (unknown["broke"], unknown["retryable"]) == ("setup", False)
    assert (refused["broke"], refused["retryable"]) == ("provider", False)
    assert "OPENAI_API_KEY" in refused["reason"]
    assert session.count("cannot be attempted: ") == 2


def test_a_judge_without_a_key_is_said_before_and_leaves_its_trials_ungraded(
    project: EvalProject,
) -> None:
    project.environ.pop("ANTHROPIC_API_KEY", None)
    judge = {"type": "rubric", "model": "claude-judge"}
    project.eval(case("c", answer("ok"), judges=[judge]))
    session = project.run("--mst")
    assert session.code == 10, session.text
    assert "cannot grade: judge correctness: ANTHROPIC_API_KEY is not set" in session.text
    assert "it would leave ungraded 1 case: c [default]" in session.text
    assert session.run.ledger["ungraded"] == 1


def test_a_program_that_is_not_there_is_said_before(project: EvalProject) -> None:
    options = {"command": str(project.root / "no-such-claude")}
    project.environ["ANTHROPIC_API_KEY"] = "no-key-at-all"
    project.eval(
        {"id": "c", "input": "x", "assertions": says("ok"), "client": "claude-code"},
        clientOptions=options,
        model="claude-x",
    )
    session = project.run("--mst")
    assert session.code == 10, session.text
    assert "cannot be attempted: " in session.text
    assert session.run.ending("c")["retryable"] is False


def test_a_run_is_finished_with_the_model_it_was_started_with(project: EvalProject) -> None:
    project.environ.pop("ANTHROPIC_API_KEY", None)
    project.eval({"id": "asks", **ASKS}, model="claude-of-file")
    first = project.run("--mst", "--mst-model", "claude-asked")
    assert first.code == 10, first.text
    other = project.run("--mst", "--mst-resume", "--mst-model", "claude-other")
    assert other.code == 4
    assert "--mst-model claude-other is not what it was started with" in other.text
    with ModelProvider([say("ok")]) as provider:
        project.environ |= provider.environment
        finished = project.run("--mst", "--mst-resume", "--mst-fixed")
    assert finished.code == 0, finished.text
    assert {one.model for one in provider.asked} == {"claude-asked"}


@pytest.mark.parametrize(
    ("judge", "environ"),
    [
        ({"model": "who-knows"}, {}),
        ({}, {"MST_JUDGE_MODEL": "who-knows"}),
        ({"model": "gpt-5", "baseUrl": "nonsense"}, {"OPENAI_API_KEY": "key-key-key"}),
        ({"model": "gpt-5"}, {"OPENAI_API_KEY": "key-key-key", "OPENAI_BASE_URL": "nonsense"}),
        ({"model": "gpt-5"}, {"OPENAI_API_KEY": "key with blank"}),
    ],
)
def test_a_judge_that_cannot_be_asked_leaves_its_trials_ungraded_and_nothing_crashes(
    project: EvalProject, judge: dict[str, str], environ: dict[str, str]
) -> None:
    project.environ.pop("OPENAI_BASE_URL", None)
    project.environ |= environ
    project.eval(case("c", answer("ok"), judges=[{"type": "rubric", **judge}]))
    session = project.run("--mst")
    assert session.code == 10, session.text
    assert "cannot grade: judge correctness: " in session.text
    assert "INTERNALERROR" not in session.text
    assert "Traceback" not in session.text
    assert "with blank" not in session.text
    assert session.run.ledger["ungraded"] == 1
