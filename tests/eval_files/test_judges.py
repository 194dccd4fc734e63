"""What is said of judges in eval configs and cases, and where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from pytest_mst.eval_files.schemas import schema
from tests.eval_files.evals import load, only_problem, write

VALIDATOR = Draft202012Validator(schema("eval-config"))


def in_config(folder: Path, judge: str) -> Path:
    case = "cases: [{id: a, input: x, expected: {writes: []}}]"
    return write(folder, f"name: team\n{case}\njudges:\n- {judge}\n")


def in_case(folder: Path, judge: str, of_config: str = "[]") -> Path:
    case = f"- id: a\n  input: x\n  expected: {{writes: []}}\n  judges:\n  - {judge}\n"
    return write(folder, f"name: team\njudges: {of_config}\ncases:\n{case}")


RIGHT = [
    "correctness",
    "The answer names the sum and the date.",
    "{type: rubric}",
    "{type: rubric, rubric: [correctness, {name: tone, text: It is kind.}], threshold: 0.5}",
    "{rubric: tone, reference: {sum: 3}, reps: 3, model: m, provider: openai, baseUrl: 'http://x',"
    " apiKeyEnv: KEY, temperature: 0, maxTokens: 900, timeout: 5000}",
    "{type: function, object: 'judges:f', options: {a: 1}, threshold: 0.5}",
    "{type: own, anything: [1]}",
]


@pytest.mark.parametrize("judge", RIGHT)
def test_what_a_judge_can_be(tmp_path: Path, judge: str) -> None:
    assert load(in_config(tmp_path, judge)).config.judges
    assert load(in_case(tmp_path, judge)).cases[0].case.judges


WRONG = [
    ("1", "", "expected a rubric, the name of a judge, or an object with type, got number"),
    ("{name: tone}", ".type", 'the key "type" is missing'),
    ("{type: rubric, treshold: 0.5}", ".treshold", 'did you mean "threshold"?'),
    ("{type: rubric, threshold: 2}", ".threshold", "must be at most 1, got 2"),
    ("{type: rubric, threshold: '0.5'}", ".threshold", "write it without quotes"),
    ("{type: rubric, rubric: []}", ".rubric", "is empty, so that there is nothing to grade by"),
    ("{type: rubric, rubric: corectness}", ".rubric", "did you mean 'correctness'?"),
    ("{rubric: [{name: a, text: b, tex: c}]}", ".rubric[0].tex", 'did you mean "text"?'),
    ("{type: rubric, provider: antropic}", ".provider", 'did you mean "anthropic"?'),
    ("{type: function}", ".object", 'the key "object" is missing'),
    ("{type: function, object: judges}", ".object", "expected module:attribute"),
    ("{type: function, object: 'j:f', model: m}", ".model", 'unknown key "model"'),
    ("{type: own, threshold: high}", ".threshold", "expected a number"),
]


@pytest.mark.parametrize(("judge", "key", "said"), WRONG)
def test_what_is_wrong_is_told_with_its_place(
    tmp_path: Path, judge: str, key: str, said: str
) -> None:
    error = only_problem(in_config(tmp_path, judge))
    assert (error.place.line, error.place.key) == (4, f"judges[0]{key}")
    assert said in str(error)


def test_a_judge_of_a_variant_or_a_case_is_looked_at_too(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "name: team\ncases: [{id: a, input: x, expected: {writes: []}}]\n"
        "variants:\n- name: v\n  judges: [{type: rubric, modle: m}]\n",
    )
    assert only_problem(path).place.key == "variants[0].judges[0].modle"
    error = only_problem(in_case(tmp_path, "{type: rubric, modle: m}"))
    assert (error.place.line, error.place.key) == (8, "cases[0].judges[0].modle")


def test_a_case_changes_the_evals_judge_of_its_name(tmp_path: Path) -> None:
    assert load(in_case(tmp_path, "{name: correctness, threshold: 0.9}", "[correctness]")).cases
    error = only_problem(in_case(tmp_path, "{name: corectness, threshold: 0.9}", "[correctness]"))
    assert error.place.key == "cases[0].judges[0]"
    assert error.problem == 'there is no judge "corectness" of the eval that it could change'
    assert 'did you mean "correctness"?' in str(error)
    error = only_problem(in_case(tmp_path, "{name: correctness, threshhold: 1}", "[correctness]"))
    assert error.place.key == "cases[0].judges[0].threshhold"


@pytest.mark.parametrize(
    "asked", ["3", "{rubric: tone, treshold: 1}", "[{type: rubric, rubric: []}]"]
)
def test_what_older_datasets_ask_for_is_looked_at_too(tmp_path: Path, asked: str) -> None:
    case = f"{{id: a, input: x, assertions: {{passesJudge: {asked}}}}}"
    error = only_problem(write(tmp_path, f"name: team\ncases:\n- {case}\n"))
    assert (error.place.key or "").startswith("cases[0].assertions.passesJudge")


def test_a_judge_that_is_asked_for_by_false_is_none(tmp_path: Path) -> None:
    case = "{id: a, input: x, assertions: {passesJudge: false}}"
    error = only_problem(write(tmp_path, f"name: team\ncases:\n- {case}\n"))
    assert "nothing that a trial of it could fail" in error.problem


@pytest.mark.parametrize("judge", [*RIGHT, "{name: correctness, threshold: 1}"])
def test_the_schema_knows_what_a_judge_can_be(judge: str) -> None:
    VALIDATOR.validate({"name": "team", "judges": [yaml.safe_load(judge)]})


@pytest.mark.parametrize(
    "judge",
    [judge for judge, key, _ in WRONG if key and "corectness" not in judge and key != ".type"],
)
def test_the_schema_refuses_what_is_wrong(judge: str) -> None:
    assert not VALIDATOR.is_valid({"name": "team", "judges": [yaml.safe_load(judge)]})
    assert not VALIDATOR.is_valid({"name": "team", "variants": [{"name": "v", "judges": [3]}]})
