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
