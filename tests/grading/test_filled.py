"""The attempt's own id in what a case expects of it."""

from __future__ import annotations

from typing import Any

from pytest_mst.domain.score import Score
from pytest_mst.grading.filled import filled_case, filled_graders
from pytest_mst.grading.select import grade, graders_of
from tests.grading.trials import case_of, entry, event, facts_of

CASE: dict[str, Any] = {
    "expected": {"writes": [{"tool": "post_message", "arguments": {"text": "ref {{trial.id}}"}}]},
    "assertions": {
        "containsText": ["{{trial.id}}", "done"],
        "matchesPattern": "^{{trial.id}}",
        "toolsTriggered": [{"name": "post_message", "arguments": {"text": "ref {{trial.id}}"}}],
    },
}


def verdicts(trial_id: str) -> dict[str, bool]:
    case, said = case_of(**CASE), {"text": "ref mst1"}
    facts = facts_of(
        filled_case(case, trial_id),
        answer="mst1 done",
        events=[event(arguments=said)],
        writes=[entry(arguments=said)],
        trial_id=trial_id,
    )
    outcomes = grade(facts, graders_of(case))
    return {one.grader: one.passed for one in outcomes if isinstance(one, Score)}


def test_expectations_are_of_the_attempt_that_they_are_matched_with() -> None:
    assert verdicts("mst1") == dict.fromkeys(
        ("containsText", "matchesPattern", "toolsTriggered", "writes"), True
    )
    assert not any(verdicts("mst2").values())


def test_what_does_not_mention_it_is_the_same_object() -> None:
    case = case_of(assertions={"containsText": "done"}, expected={"writes": []})
    graders = graders_of(case)
    assert filled_case(case, "mst1") is case
    assert all(
        one is other for one, other in zip(graders, filled_graders(graders, "m"), strict=True)
    )


def test_where_the_id_is_not_known_things_stay_as_they_are_written() -> None:
    case = case_of(**CASE)
    assert filled_case(case, "") is case
    assert filled_graders(graders_of(case), "") == graders_of(case)
