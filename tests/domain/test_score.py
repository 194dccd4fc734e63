"""Scores, the verdicts that follow from them, and the ledger."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import (
    CaseVerdict,
    GradedAttempt,
    GradeOutcome,
    GraderFailure,
    Ledger,
    Score,
    TrialVerdict,
    Unknown,
    case_verdict,
    trial_verdict,
)

PASS = Score("g", passed=True, evidence=Evidence.REQUESTED)
FAIL = Score("g", passed=False, evidence=Evidence.CLAIMED)
UNKNOWN = Unknown("g", "no boundary stood there")
BROKEN = GraderFailure("g", "no reply")
BROKE = InfrastructureFailure(Broke.NETWORK, "cut", retryable=True)
ERRORED = Trial(client_error="boom")

OUTCOMES = st.lists(st.sampled_from([PASS, FAIL, UNKNOWN, BROKEN]), max_size=4).map(tuple)
ENDINGS = st.sampled_from([Trial(), Trial(stopped_by="turns"), ERRORED, BROKE, None])
ATTEMPTS = st.lists(st.builds(GradedAttempt, st.integers(0, 9), ENDINGS, OUTCOMES), max_size=8)


def attempt(*outcomes: GradeOutcome, ending: Ending | None = Trial()) -> GradedAttempt:  # noqa: B008 - frozen
    return GradedAttempt(0, ending, outcomes)


# Scores


@pytest.mark.parametrize("value", [0, 0.0, -0.0, 0.5, 1, 1.0, None])
def test_a_value_from_0_to_1_is_a_score(value: float | None) -> None:
    assert Score("g", passed=False, value=value).value == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1.7, -0.1, -1, -10, "abc", True])
def test_any_other_value_cannot_be_written(value: Any) -> None:
    with pytest.raises(ValueError, match="a number from 0 to 1"):
        Score("g", passed=True, value=value)


@pytest.mark.parametrize("passed", [None, 0, 1, "yes"])
def test_what_is_neither_a_pass_nor_a_fail_cannot_be_written(passed: Any) -> None:
    with pytest.raises(ValueError, match="True or False"):
        Score("g", passed=passed)


# A trial's verdict


@pytest.mark.parametrize(
    ("ending", "outcomes", "verdict"),
    [
        (Trial(), [PASS, PASS], TrialVerdict.PASSED),
        (Trial(), [PASS, FAIL], TrialVerdict.FAILED),
        (Trial(), [BROKEN, UNKNOWN, FAIL], TrialVerdict.FAILED),
        (Trial(), [PASS, BROKEN], TrialVerdict.UNGRADED),
        (Trial(), [PASS, UNKNOWN], TrialVerdict.UNGRADED),
        (Trial(), [], TrialVerdict.UNGRADED),
        (Trial(stopped_by="turns"), [PASS], TrialVerdict.PASSED),
        (Trial(stopped_by="context"), [FAIL], TrialVerdict.FAILED),
        (ERRORED, [PASS], TrialVerdict.FAILED),
        (ERRORED, [FAIL], TrialVerdict.FAILED),
        (ERRORED, [PASS, BROKEN], TrialVerdict.UNGRADED),
    ],
)
def test_a_trial_is_decided_by_its_outcomes(
    ending: Trial, outcomes: list[GradeOutcome], verdict: TrialVerdict
) -> None:
    assert trial_verdict(ending, outcomes) is verdict


@given(OUTCOMES, st.permutations([0, 1, 2, 3]))
def test_the_order_of_the_graders_does_not_count(
    outcomes: tuple[GradeOutcome, ...], order: list[int]
) -> None:
    shuffled = [outcomes[i] for i in order if i < len(outcomes)]
    assert trial_verdict(Trial(), shuffled) is trial_verdict(Trial(), outcomes)


@given(OUTCOMES)
def test_a_trial_whose_client_errored_never_passes(outcomes: tuple[GradeOutcome, ...]) -> None:
    assert trial_verdict(ERRORED, outcomes) is not TrialVerdict.PASSED


@given(OUTCOMES)
def test_one_more_grader_that_did_not_run_never_makes_a_pass_or_a_fail(
    outcomes: tuple[GradeOutcome, ...],
) -> None:
    before = trial_verdict(Trial(), outcomes)
    after = trial_verdict(Trial(), (*outcomes, BROKEN))
    assert after is (before if before is TrialVerdict.FAILED else TrialVerdict.UNGRADED)


@given(ATTEMPTS)
def test_only_a_trial_has_a_verdict(attempts: list[GradedAttempt]) -> None:
    for one in attempts:
        assert (one.verdict is not None) is isinstance(one.ending, Trial)


# The evidence of a verdict


def test_a_fail_rests_on_what_failed_and_a_pass_on_the_best_there_is() -> None:
    claimed = Score("g", passed=True, evidence=Evidence.CLAIMED)
    assert attempt(PASS, claimed).evidence is Evidence.REQUESTED
    assert attempt(PASS, FAIL).evidence is Evidence.CLAIMED


@pytest.mark.parametrize(
    "undecided", [attempt(PASS, BROKEN), attempt(PASS, ending=BROKE), attempt(PASS, ending=None)]
)
def test_where_there_is_no_verdict_nothing_rests_on_evidence(undecided: GradedAttempt) -> None:
    assert undecided.evidence is None


# A case's verdict


@pytest.mark.parametrize(
    ("attempts", "planned", "threshold", "verdict"),
    [
        ([attempt(PASS)], 1, 1.0, CaseVerdict.PASSED),
        ([attempt(FAIL)], 1, 1.0, CaseVerdict.FAILED),
        ([attempt(PASS), attempt(FAIL)], 2, 0.5, CaseVerdict.PASSED),
        ([attempt(PASS), attempt(FAIL)], 2, 0.51, CaseVerdict.FAILED),
        ([attempt(PASS)] * 7 + [attempt(FAIL)] * 3, 10, 0.7, CaseVerdict.PASSED),
        ([attempt(PASS)], 2, 0.5, CaseVerdict.INCOMPLETE),
        ([attempt(FAIL)] * 9 + [attempt(BROKEN)], 10, 1.0, CaseVerdict.INCOMPLETE),
        ([attempt(PASS), attempt(UNKNOWN)], 1, 0.5, CaseVerdict.INCOMPLETE),
        ([attempt(PASS), attempt(ending=BROKE)], 2, 0.5, CaseVerdict.INCOMPLETE),
        ([attempt(PASS), attempt(ending=None)], 2, 0.5, CaseVerdict.INCOMPLETE),
        ([attempt(FAIL)], 1, 0.0, CaseVerdict.PASSED),
        ([], 1, 0.0, CaseVerdict.INCOMPLETE),
        ([], 0, 0.0, CaseVerdict.INCOMPLETE),
    ],
)
def test_a_case_is_decided_by_its_trials(
    attempts: list[GradedAttempt], planned: int, threshold: float, verdict: CaseVerdict
) -> None:
    assert case_verdict(attempts, planned=planned, pass_threshold=threshold) is verdict


@given(ATTEMPTS, st.integers(0, 8), st.floats(0, 1))
def test_a_case_short_of_a_trial_or_with_an_ungraded_one_neither_passes_nor_fails(
    attempts: list[GradedAttempt], planned: int, threshold: float
) -> None:
    verdict = case_verdict(attempts, planned=planned, pass_threshold=threshold)
    ledger = Ledger.of(attempts)
    short = ledger.graded < max(planned, 1) or ledger.ungraded > 0
    assert (verdict is CaseVerdict.INCOMPLETE) is (short or planned == 0)


@given(ATTEMPTS, st.floats(0, 1), st.floats(0, 1))
def test_a_lower_threshold_never_turns_a_pass_into_a_fail(
    attempts: list[GradedAttempt], one: float, other: float
) -> None:
    low, high = sorted((one, other))
    planned = len(attempts)
    strict = case_verdict(attempts, planned=planned, pass_threshold=high)
    if strict is not CaseVerdict.FAILED:
        assert case_verdict(attempts, planned=planned, pass_threshold=low) is strict


# The ledger


@given(ATTEMPTS)
def test_the_ledger_has_a_place_for_every_attempt(attempts: list[GradedAttempt]) -> None:
    ledger = Ledger.of(attempts)
    assert ledger.planned == len(attempts)
    counts = ledger.to_json()
    assert counts.pop("planned") == sum(counts.values())
    verdicts = [one.verdict for one in attempts]
    assert ledger.ungraded == verdicts.count(TrialVerdict.UNGRADED)
    assert ledger.graded == verdicts.count(TrialVerdict.PASSED) + verdicts.count(
        TrialVerdict.FAILED
    )


@given(ATTEMPTS, ATTEMPTS)
def test_ledgers_add_up_like_their_attempts(
    some: list[GradedAttempt], others: list[GradedAttempt]
) -> None:
    assert Ledger.of(some) + Ledger.of(others) == Ledger.of([*some, *others])
    assert Ledger.of(some) + Ledger() == Ledger.of(some)
