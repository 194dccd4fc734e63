"""Which graders a case has, and what comes of running them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pytest

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import (
    GradeOutcome,
    GraderFailure,
    Score,
    TrialVerdict,
    Unknown,
    trial_verdict,
)
from pytest_mst.domain.write import WriteMode
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.returned import outcome_of
from pytest_mst.grading.select import applicable, grade, graders_of
from tests.grading.trials import case_of, entry, event, facts_of

ASSERTIONS = {
    "containsText": "posted",
    "matchesPattern": [r"#\w+"],
    "toolsTriggered": [{"name": "post_message"}],
    "toolCallCount": {"max": 3},
}


def names(**case: Any) -> list[str]:
    return [grader.name for grader in graders_of(case_of(**case))]


def test_each_assertion_is_a_grader_under_its_own_key() -> None:
    assert names(assertions=ASSERTIONS) == [*ASSERTIONS, "writes"]


@pytest.mark.parametrize(
    "assertions",
    [
        {"containsText": [], "matchesPattern": [], "toolsTriggered": []},
        {"toolsTriggered": [{"name": "a", "required": False}], "toolCallCount": {"min": 0}},
    ],
)
def test_an_assertion_that_cannot_fail_passes_nothing(assertions: dict[str, Any]) -> None:
    case = case_of(assertions=assertions)
    outcomes = grade(facts_of(case), graders_of(case))
    assert outcomes == ()
    assert trial_verdict(facts_of().ending, outcomes) is TrialVerdict.UNGRADED


def test_no_tool_call_at_all_can_be_asked_for() -> None:
    case = case_of(assertions={"toolsTriggered": {"calls": [], "exclusive": True}})
    (score,) = grade(facts_of(case, events=[event("list_channels")]), graders_of(case))
    assert isinstance(score, Score)
    assert not score.passed


def test_every_score_of_a_built_in_grader_has_its_evidence_level() -> None:
    case = case_of(assertions=ASSERTIONS, expected={"writes": [{"tool": "post_message"}]})
    for facts in (
        facts_of(case),
        facts_of(case, answer="posted in #team", events=[event()], writes=[entry()]),
    ):
        levels = [
            (one.grader, one.evidence)
            for one in grade(facts, graders_of(case))
            if isinstance(one, Score)
        ]
        assert levels == [
            ("containsText", Evidence.CLAIMED),
            ("matchesPattern", Evidence.CLAIMED),
            ("toolsTriggered", Evidence.CALLED),
            ("toolCallCount", Evidence.CALLED),
            ("writes", Evidence.REQUESTED),
        ]


def test_writes_are_graded_on_the_trials_that_made_one() -> None:
    case = case_of(assertions={"containsText": "done"})
    graders = graders_of(case)
    assert [one.grader for one in grade(facts_of(case), graders)] == ["containsText"]
    made = grade(facts_of(case, writes=[entry()]), graders)
    assert [one.grader for one in made] == ["containsText", "writes"]


def test_a_live_trial_does_not_pass_without_its_outcome_checks() -> None:
    check = {"server": "chat", "tool": "list_messages", "containsText": "x"}
    case = case_of(expected={"outcome": [check]}, assertions={"containsText": "done"})
    live = facts_of(case, modes={"chat": WriteMode.LIVE})
    outcomes = grade(live, graders_of(case))
    assert trial_verdict(live.ending, outcomes) is TrialVerdict.UNGRADED
    planned = facts_of(case)
    assert [one.name for one in applicable(planned, graders_of(case))] == ["containsText"]


def test_whoever_makes_the_outcome_checks_takes_their_place() -> None:
    check = {"server": "chat", "tool": "list_messages", "isError": False}
    case = case_of(expected={"outcome": [check]})
    checks = Stub("outcome", returned=True)
    assert checks in graders_of(case, outcome=checks)


@dataclass
class Stub:
    """A grader of a user's own."""

    name: str = "own"
    returned: object = None
    seen: list[TrialFacts] = field(default_factory=list)

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        self.seen.append(facts)
        return self.returned  # type: ignore[return-value]  # what a user's grader may do


@pytest.mark.parametrize(
    "returned", [math.nan, math.inf, -math.inf, 1.7, -0.1, None, "abc", {}, object()]
)
def test_what_is_no_grade_is_a_grader_that_did_not_run(returned: object) -> None:
    (failure,) = grade(facts_of(), [Stub(returned=returned)])
    assert isinstance(failure, GraderFailure)
    assert failure.grader == "own"
    assert "a number from 0 to 1" in failure.reason


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_zero_is_a_grade(zero: float) -> None:
    (score,) = grade(facts_of(), [Stub(returned=zero)])
    assert isinstance(score, Score)
    assert not score.passed
    assert score.value == 0


@pytest.mark.parametrize(
    ("returned", "threshold", "passes"),
    [(True, 1, True), (False, 0, False), (1, 1, True), (0.7, 0.7, True), (0.69, 0.7, False)],
)
def test_a_number_passes_from_its_threshold_on(
    returned: object, threshold: float, passes: bool
) -> None:
    score = outcome_of("own", returned, threshold=threshold)
    assert isinstance(score, Score)
    assert score.passed is passes
    assert score.evidence is Evidence.CLAIMED


@pytest.mark.parametrize(
    "returned",
    [Score("own", passed=True), Unknown("own", "no reply"), GraderFailure("own", "no network")],
)
def test_an_outcome_is_kept_as_it_is(returned: GradeOutcome) -> None:
    assert outcome_of("own", returned) is returned


def test_one_graders_failure_says_nothing_about_another_grader() -> None:
    outcomes = grade(facts_of(), [Stub("a"), Stub("b", True), Stub("c", 0.5)])
    assert [type(one) for one in outcomes] == [GraderFailure, Score, Score]
