"""Which judges a case has: the eval's or the variant's, with the case's own over them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pytest_mst.domain.case import Case
from pytest_mst.domain.judge import (
    FunctionConfig,
    RegisteredConfig,
    RubricConfig,
    config_class,
    entry_of,
    judge_entries,
    reps_of,
)


def case_of(**keys: Any) -> Case:
    return Case.model_validate({"id": "c", "input": "do it", **keys})


def entries(*configured: Any, **keys: Any) -> dict[str, dict[str, Any]]:
    found = judge_entries(case_of(**keys), configured)
    return {entry.pop("name"): entry for entry in found}


def criteria(rubric: Any) -> dict[str, str]:
    read = RubricConfig.model_validate({"type": "rubric", "rubric": rubric})
    return {one.name: one.text for one in read.rubric}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("correctness", {"type": "rubric", "rubric": "correctness"}),
        ("is polite and short", {"type": "rubric", "rubric": "is polite and short"}),
        ("house-style", {"type": "house-style"}),
        ({"rubric": "tone"}, {"type": "rubric", "rubric": "tone"}),
        ({"object": "judges:f"}, {"type": "function", "object": "judges:f"}),
        ({"type": "own", "strict": True}, {"type": "own", "strict": True}),
        ({"name": "tone"}, {"name": "tone"}),
    ],
)
def test_what_a_short_form_stands_for(given: Any, meant: dict[str, Any]) -> None:
    assert entry_of(given) == meant


@pytest.mark.parametrize("given", [1, " ", None, ["correctness"], True])
def test_what_is_no_judge(given: Any) -> None:
    with pytest.raises(ValueError, match="expected a rubric"):
        entry_of(given)


def test_the_type_says_what_an_entry_is_read_as() -> None:
    assert config_class({"type": "rubric"}) is RubricConfig
    assert config_class({"type": "function"}) is FunctionConfig
    assert config_class({"type": "own"}) is RegisteredConfig
    own = RegisteredConfig.model_validate({"type": "own", "strict": True, "threshold": 0.5})
    assert own.options == {"strict": True}


def test_a_case_changes_what_the_evals_judge_of_its_name_says() -> None:
    found = entries(
        {"type": "rubric", "rubric": "correctness", "threshold": 0.7, "model": "m"},
        {"type": "own"},
        judges=[{"name": "correctness", "threshold": 0.9}, "tone of a friend"],
    )
    assert found == {
        "correctness": {"type": "rubric", "rubric": "correctness", "threshold": 0.9, "model": "m"},
        "own": {"type": "own"},
        "rubric": {"type": "rubric", "rubric": "tone of a friend"},
    }


def test_a_case_may_put_a_judge_of_another_type_in_ones_place() -> None:
    own = {"name": "correctness", "type": "function", "object": "judges:f"}
    found = entries({"type": "rubric", "rubric": "correctness", "threshold": 0.7}, judges=[own])
    assert found == {"correctness": {"type": "function", "object": "judges:f"}}


def test_no_judge_takes_the_place_of_another_beside_it() -> None:
    own = [{"rubric": "be kind to all"}, {"rubric": "be short and clear"}]
    assert [*entries(*own)] == ["rubric", "rubric-2"]
    assert [*entries(judges=own)] == ["rubric", "rubric-2"]


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (True, [{"type": "rubric", "rubric": "correctness"}]),
        (False, []),
        (None, []),
        ("is polite", [{"type": "rubric", "rubric": "is polite"}]),
        ("politeness", [{"type": "rubric", "rubric": "politeness"}]),
        ({"rubric": "tone", "reps": 2}, [{"type": "rubric", "rubric": "tone", "reps": 2}]),
        ({"threshold": 0.7}, [{"type": "rubric", "threshold": 0.7}]),
        (["is polite"], [{"type": "rubric", "rubric": "is polite"}]),
    ],
)
def test_what_older_datasets_ask_for_among_the_assertions(
    asked: Any, meant: list[dict[str, Any]]
) -> None:
    assert list(entries(assertions={"passesJudge": asked}).values()) == meant


def test_how_often_a_judge_is_asked() -> None:
    def reps(configured: dict[str, Any], **keys: Any) -> int:
        case = case_of(**keys)
        [entry] = judge_entries(case, [configured])
        return reps_of(RubricConfig.model_validate(entry), case)

    plain = {"type": "rubric"}
    assert reps(plain) == 1
    assert reps(plain, judgeReps=3) == 3
    assert reps(plain | {"reps": 2}) == 2
    assert reps(plain | {"reps": 2}, judgeReps=3) == 3
    own = [{"name": "correctness", "reps": 5}]
    assert reps(plain | {"reps": 2}, judgeReps=3, judges=own) == 5


def test_a_rubric_is_a_name_a_text_or_a_list_of_criteria() -> None:
    assert criteria("groundedness") == {"groundedness": "groundedness"}
    assert criteria("is polite to all") == {"rubric": "is polite to all"}
    assert criteria(["tone", {"name": "sum", "text": "names the sum"}]) == {
        "tone": "tone",
        "sum": "names the sum",
    }
    assert [*criteria(["is kind to us", "is short and clear"])] == ["rubric", "rubric 2"]


@pytest.mark.parametrize("rubric", [[], "", "  ", 3, None, {"name": "tone"}, [3], ["corectness"]])
def test_what_is_no_rubric(rubric: Any) -> None:
    with pytest.raises(ValidationError):
        criteria(rubric)


def test_a_misspelt_name_of_a_built_in_rubric_is_no_text_of_ones_own() -> None:
    with pytest.raises(ValidationError, match="did you mean 'instruction-following'"):
        criteria("instruction_folowing")
