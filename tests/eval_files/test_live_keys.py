"""What live evals write down: steps, outcome checks, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval_files.evals import load, only_problem, problems, write

STEP = "{server: web, tool: t, arguments: {marker: '{{trial.id}}'}}"


def config(folder: Path, *, outcome: str = "containsText: x", steps: str = STEP) -> Path:
    return write(
        folder,
        "name: team\n"
        "servers: {web: {transport: http, serverUrl: http://x}}\n"
        "writes: {web: live}\n"
        f"setup: [{steps}]\n"
        f"cleanup: [{steps}]\n"
        "cases:\n"
        "- id: a\n"
        "  input: x {{trial.id}}\n"
        "  expected:\n"
        f"    outcome: [{{server: web, tool: t, {outcome}}}]\n",
    )


def test_steps_and_outcome_checks_are_read(tmp_path: Path) -> None:
    loaded = load(config(tmp_path, outcome="jsonPath: [{path: $.a, equals: null}], withinMs: 0"))
    (step,) = loaded.config.setup
    assert (step.server, step.tool, step.arguments) == ("web", "t", {"marker": "{{trial.id}}"})
    (check,) = loaded.cases[0].case.expected.outcome or ()
    assert (check.within_ms, check.json_path[0].has_equals, check.json_path[0].has_contains) == (
        0,
        True,
        False,
    )


@pytest.mark.parametrize(
    ("outcome", "key", "problem"),
    [
        ("containText: x", "containText", "unknown key"),
        ("contains_text: x", "contains_text", "unknown key"),
        ("containsText: x, jsonPath: [{path: $.a, equal: 1}]", "jsonPath[0].equal", "unknown key"),
        ("containsText: ''", "containsText", "must not be empty"),
        ("matchesPattern: '('", "matchesPattern", "is not a regular expression"),
        ("withinMs: -1, containsText: x", "withinMs", "0"),
        ("jsonPath: [{path: $.a, exists: false, count: 2}]", "jsonPath[0]", "has exists: false"),
        ("arguments: {}", "", "says nothing that is to be found"),
        ("containsText: []", "", "says nothing that is to be found"),
    ],
)
def test_what_is_wrong_with_an_outcome_check_is_said_where_it_is(
    tmp_path: Path, outcome: str, key: str, problem: str
) -> None:
    error, *_ = problems(config(tmp_path, outcome=outcome))
    assert error.place.line == 10
    assert (error.place.key or "").endswith(key)
    assert problem in error.problem


def test_the_nearest_key_is_named(tmp_path: Path) -> None:
    error, *_ = problems(config(tmp_path, outcome="containsTxt: x, isError: false"))
    assert 'did you mean "containsText"' in str(error)


def test_a_server_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    path = config(tmp_path, steps="{server: webb, tool: t}")
    found = problems(path)
    assert [(error.place.line, error.place.key) for error in found] == [
        (4, "setup[0].server"),
        (5, "cleanup[0].server"),
    ]
    assert all('did you mean "web"?' in str(error) for error in found)
    text = (
        path.read_text()
        .replace("webb", "web")
        .replace("outcome: [{server: web", "outcome: [{server: wb")
    )
    path.write_text(text)
    error = only_problem(path)
    assert (error.place.line, error.place.key) == (10, "cases[0].expected.outcome[0].server")


@pytest.mark.parametrize("written", ["{{trail.id}}", "{{ trial.id }}", "{{trialId}}"])
def test_a_misspelt_placeholder_is_refused_where_it_is_written(
    tmp_path: Path, written: str
) -> None:
    outcome = "arguments: {at: '{{trial.id}}'}, containsText: '{{trial.id}}'"
    name, rest = config(tmp_path, outcome=outcome).read_text().split("\n", 1)
    templates = (
        "inputTemplate: '{{input}} {{trial.id}}'\n"
        "variants: [{name: v, inputTemplate: '{{trial.id}} {{input}}'}]\n"
    )
    text = f"{name}\n{templates}{rest}".replace("{{trial.id}}", written)
    found = problems(write(tmp_path, text))
    assert [(error.place.line, error.place.key) for error in found] == [
        (2, "inputTemplate"),
        (3, "variants[0].inputTemplate"),
        (6, "setup[0].arguments.marker"),
        (7, "cleanup[0].arguments.marker"),
        (12, "cases[0].expected.outcome[0].arguments.at"),
        (12, "cases[0].expected.outcome[0].containsText"),
    ]
    assert all(written in error.problem for error in found)
    assert {error.remedy for error in found} == {"did you mean {{trial.id}}?"}


def test_the_input_may_be_misspelt_in_a_template_only(tmp_path: Path) -> None:
    path = config(tmp_path, outcome="containsText: '{{ input }} {{user.id}}'")
    load(path)
    path.write_text(path.read_text() + "inputTemplate: '{{ input }} {{user.id}}'\n")
    assert only_problem(path).remedy == "did you mean {{input}}?"
