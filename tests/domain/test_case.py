from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pytest_mst.domain.case import Case, Dataset


def case(**parts: Any) -> Case:
    return Case.model_validate({"id": "a", "input": "x", **parts})


def test_a_list_of_writes_is_short_for_an_object_with_calls() -> None:
    short = case(expected={"writes": [{"tool": "t"}]})
    assert short == case(expected={"writes": {"calls": [{"tool": "t"}]}})


def test_no_writes_expected_is_not_the_same_as_nothing_said_of_writes() -> None:
    none_expected, nothing_said = case(expected={"writes": []}), case(expected={})
    assert none_expected.expected.writes is not None
    assert none_expected.expected.writes.calls == ()
    assert nothing_said.expected.writes is None


def test_writes_that_are_null_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"write \[\] where no write is expected"):
        case(expected={"writes": None})


def test_a_text_is_short_for_a_list_of_one() -> None:
    assertions = case(assertions={"containsText": "x", "matchesPattern": "y+"}).assertions
    assert (assertions.contains_text, assertions.matches_pattern) == (("x",), ("y+",))


def test_a_list_in_a_list_is_as_strict_as_everything_else() -> None:
    with pytest.raises(ValidationError):
        case(tags=[1])
    with pytest.raises(ValidationError):
        case(tags="smoke")


def test_texts_with_a_lone_surrogate_are_texts() -> None:
    held = case(id="a\ud800", input="\ud800", assertions={"containsText": "\udfff"})
    assert (held.id, held.input) == ("a\ud800", "\ud800")


def test_what_was_read_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        case().id = "b"


@pytest.mark.parametrize(
    ("parts", "grades"),
    [
        ({}, False),
        ({"assertions": {"containsText": []}}, False),
        ({"assertions": {"containsText": "x"}}, True),
        ({"assertions": {"toolsTriggered": []}}, False),
        ({"assertions": {"toolsTriggered": [{"name": "t", "required": False}]}}, False),
        ({"assertions": {"toolsTriggered": [{"name": "t"}]}}, True),
        ({"assertions": {"toolsTriggered": {"calls": [], "exclusive": True}}}, True),
        ({"assertions": {"toolCallCount": {"min": 0}}}, False),
        ({"assertions": {"toolCallCount": {"min": 1}}}, True),
        ({"assertions": {"toolCallCount": {"exact": 0}}}, True),
        ({"assertions": {"toolCallCount": {"max": 0}}}, True),
        ({"assertions": {"passesJudge": True}}, True),
        ({"expected": {"answer": "x"}}, False),
        ({"expected": {"writes": []}}, True),
        ({"expected": {"outcome": []}}, False),
        ({"expected": {"outcome": [{"server": "s", "tool": "t", "containsText": "x"}]}}, True),
        ({"judges": [{"type": "rubric"}]}, True),
    ],
)
def test_a_case_grades_something_when_a_trial_of_it_can_fail(
    parts: dict[str, Any], grades: bool
) -> None:
    assert case(**parts).grades_something is grades


def test_a_dataset_is_written_with_the_keys_it_is_read_with() -> None:
    content = {
        "$schema": "s",
        "name": "d",
        "cases": [{"id": "a", "input": "x", "passThreshold": 0.5, "expected": {"free": [1]}}],
        "metadata": {"a": {"b": 1}},
    }
    dataset = Dataset.model_validate(content)
    assert dataset.model_dump(by_alias=True, exclude_unset=True, mode="json") == content
