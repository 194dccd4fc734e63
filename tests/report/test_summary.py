"""From attempts to figures."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.ending import Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.plan import RunPlan, ServerInfo, VariantInfo
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import CaseVerdict, Ledger, Score
from pytest_mst.domain.write import WriteMode
from pytest_mst.report.attempts import AttemptRow
from pytest_mst.report.exit import exit_code
from pytest_mst.report.reasons import ReasonKind, Remedy
from pytest_mst.report.summary import KEPT_FINDINGS, CaseCounts, CaseRow
from tests.report.rows import (
    BROKEN,
    CALL,
    CLAIMED,
    DEADLINE,
    FAIL,
    NO_KEY,
    PASS,
    REQUESTED,
    UNKNOWN,
    failed,
    lost,
    passed,
    plans,
    row,
    rows,
    summarise,
)
from tests.store.records import attempt_id, case_of, plan_of


def only_case(plan: RunPlan, *attempts: AttemptRow) -> CaseRow:
    (case,) = summarise(plan, attempts).cases
    return case


@given(plans(), st.lists(rows, max_size=40))
def test_every_planned_attempt_is_in_one_place_of_the_ledger(
    plan: RunPlan, attempts: list[AttemptRow]
) -> None:
    summary = summarise(plan, attempts)
    planned = len(list(plan.attempts))
    assert summary.figures.ledger.planned == planned
    for case in summary.cases:
        trials = 0 if case.planned.skip is not None else case.planned.trials
        assert case.ledger.planned == trials
        assert case.passed_trials <= case.ledger.graded
    per_variant = [variant.figures.ledger for variant in summary.variants]
    assert sum(per_variant, Ledger()) == summary.figures.ledger
    counts = summary.figures.cases
    assert counts.complete + counts.incomplete + counts.skipped == len(plan.cases)


@given(plans(), st.lists(rows, max_size=40))
def test_no_rate_is_over_nothing(plan: RunPlan, attempts: list[AttemptRow]) -> None:
    summary = summarise(plan, attempts)
    for figures in (summary.figures, *(variant.figures for variant in summary.variants)):
        assert (figures.pass_rate is None) == (figures.cases.complete == 0)
        assert (figures.trial_pass_rate is None) == (figures.ledger.graded == 0)
        assert 0 <= (figures.pass_rate or 0) <= 1
    for case in summary.cases:
        whole = case.ledger.graded == case.planned.trials
        assert (case.pass_rate is None) == (case.planned.skip is not None or not whole)


@given(plans(), st.lists(rows, max_size=30, unique_by=lambda one: one.id), st.randoms())
def test_the_order_of_rows_changes_nothing(
    plan: RunPlan, attempts: list[AttemptRow], shuffle: random.Random
) -> None:
    shuffled = list(attempts)
    shuffle.shuffle(shuffled)
    assert summarise(plan, attempts) == summarise(plan, shuffled)


def test_a_case_short_of_a_trial_is_left_out_of_the_pass_rate() -> None:
    plan = plan_of(case_of("a", trials=8), case_of("b"))
    attempts = [passed(n, "a") for n in range(2)] + [failed(n, "a") for n in range(2, 6)]
    attempts += [lost(6, "a"), lost(7, "a"), passed(0, "b")]
    summary = summarise(plan, attempts)
    short = summary.cases[0]
    assert short.verdict is CaseVerdict.INCOMPLETE
    assert short.ledger == Ledger(graded=6, infrastructure=2)
    assert short.pass_rate is None
    assert summary.figures.cases == CaseCounts(passed=1, incomplete=1)
    assert summary.figures.pass_rate == 1
    assert summary.figures.trial_pass_rate == pytest.approx(3 / 7)


def test_the_missing_one_of_thirty_cases_is_counted() -> None:
    plan = plan_of(*(case_of(str(n)) for n in range(30)))
    attempts = [passed(0, str(n)) if n < 18 else failed(0, str(n)) for n in range(29)]
    figures = summarise(plan, attempts).figures
    assert figures.ledger == Ledger(graded=29, unstarted=1)
    assert figures.cases == CaseCounts(passed=18, failed=11, incomplete=1)


def test_nothing_graded_has_no_rate() -> None:
    figures = summarise(plan_of(case_of(trials=2)), [lost(0), lost(1)]).figures
    assert figures.pass_rate is None
    assert figures.trial_pass_rate is None
    assert figures.evidence is None


def test_of_several_rows_of_one_attempt_the_last_that_ended_counts() -> None:
    unstarted = AttemptRow(attempt_id(), "@abc", None)
    plan = plan_of(case_of())
    assert only_case(plan, lost(), passed(), unstarted).verdict is CaseVerdict.PASSED
    assert only_case(plan, unstarted, failed()).verdict is CaseVerdict.FAILED


def test_what_was_not_planned_is_left_out() -> None:
    case = only_case(plan_of(case_of()), passed(0), failed(1), failed(0, "other"))
    assert case.ledger == Ledger(graded=1)
    assert case.verdict is CaseVerdict.PASSED


def test_a_case_passes_by_its_threshold() -> None:
    attempts = [passed(0), passed(1), failed(2)]
    for threshold, verdict in [(0.6, CaseVerdict.PASSED), (0.7, CaseVerdict.FAILED)]:
        case = only_case(plan_of(case_of(trials=3, pass_threshold=threshold)), *attempts)
        assert case.verdict is verdict
        assert case.pass_rate == pytest.approx(2 / 3)


def test_evidence_is_the_lowest_over_graded_trials_and_of_write_cases_only() -> None:
    attempts = [row(attempt_id(0), REQUESTED, CLAIMED), row(attempt_id(1), CLAIMED)]
    assert only_case(plan_of(case_of(trials=2)), *attempts).evidence is None
    plan = plan_of(case_of(trials=2, write_case=True))
    assert only_case(plan, *attempts).evidence is Evidence.CLAIMED
    assert only_case(plan, attempts[0], lost(1)).evidence is Evidence.REQUESTED
    ungraded = row(attempt_id(1), CLAIMED, BROKEN)
    assert only_case(plan, attempts[0], ungraded).evidence is Evidence.REQUESTED


def test_the_runs_evidence_is_that_of_the_cases_its_pass_rate_is_over() -> None:
    plan = plan_of(case_of("a", write_case=True), case_of("b", trials=2, write_case=True))
    attempts = [row(attempt_id(0, "a"), REQUESTED), row(attempt_id(0, "b"), CLAIMED)]
    assert summarise(plan, attempts).figures.evidence is Evidence.REQUESTED
    attempts.append(row(attempt_id(1, "b"), REQUESTED))
    assert summarise(plan, attempts).figures.evidence is Evidence.CLAIMED


def test_a_case_that_wrote_is_a_write_case() -> None:
    plan = plan_of(case_of(trials=2, unguarded=True))
    quiet = only_case(plan, passed(0), passed(1))
    assert (quiet.write_case, quiet.unguarded) == (False, False)
    wrote = only_case(plan, passed(0), row(attempt_id(1), REQUESTED, wrote=True))
    assert (wrote.write_case, wrote.unguarded) == (True, True)
    assert wrote.evidence is Evidence.REQUESTED


def test_a_skipped_case_is_outside_the_ledger() -> None:
    summary = summarise(plan_of(case_of(trials=3, skip="later")), [passed()])
    assert summary.figures.ledger == Ledger()
    assert summary.figures.cases == CaseCounts(skipped=1)
    assert summary.cases[0].verdict is None
    assert exit_code([summary]) == 0


def test_equal_reasons_are_gathered_with_what_helps() -> None:
    attempts = [
        lost(0),
        lost(1),
        lost(2, why=NO_KEY),
        row(attempt_id(3), PASS, BROKEN),
        row(attempt_id(4), PASS, UNKNOWN),
        row(attempt_id(5)),
        failed(6),
        row(attempt_id(7), PASS, ending=Trial(client_error="out of memory")),
        passed(8),
    ]
    case = only_case(plan_of(case_of(trials=10)), *attempts)
    assert [(one.kind, one.remedy, one.count) for one in case.reasons] == [
        (ReasonKind.INFRASTRUCTURE, Remedy.COLLECT, 2),
        (ReasonKind.INFRASTRUCTURE, Remedy.FIX, 1),
        (ReasonKind.UNGRADED, Remedy.GRADE, 1),
        (ReasonKind.UNGRADED, Remedy.FIX, 1),
        (ReasonKind.UNGRADED, Remedy.GRADE, 1),
        (ReasonKind.FAILED, Remedy.NOTHING, 1),
        (ReasonKind.FAILED, Remedy.NOTHING, 1),
        (ReasonKind.UNSTARTED, Remedy.COLLECT, 1),
    ]
    assert case.reasons[0].text == "infrastructure: network: the connection was cut (2 attempts)"
    assert case.reasons[0].locator == attempts[0].locator


def test_a_deadline_is_called_one_and_no_failure() -> None:
    case = only_case(plan_of(case_of(trials=2)), passed(0), lost(1, why=DEADLINE))
    assert case.verdict is CaseVerdict.INCOMPLETE
    assert case.reasons[0].text == "infrastructure: deadline: no end after 300 s"


def test_figures_are_kept_apart_by_variant() -> None:
    unguarded = ServerInfo("chat", WriteMode.UNGUARDED)
    plan = plan_of(
        case_of("a", variant="default"),
        case_of("a", variant="legacy"),
        variants=(
            VariantInfo("default", "scripted"),
            VariantInfo("legacy", "scripted", servers=(unguarded,)),
            VariantInfo("unused", "scripted"),
        ),
    )
    attempts = [
        row(AttemptId("default", "a", 0), PASS),
        row(AttemptId("legacy", "a", 0), FAIL, unclassified=(CALL,), unclassified_calls=2),
    ]
    default, legacy, unused = summarise(plan, attempts).variants
    assert (default.figures.pass_rate, legacy.figures.pass_rate) == (1, 0)
    assert unused.figures.pass_rate is None
    assert (default.unguarded, legacy.unguarded) == (False, True)
    assert (default.figures.unclassified_calls, legacy.figures.unclassified_calls) == (0, 2)


def test_calls_that_could_not_be_read_are_counted_by_variant() -> None:
    plan = plan_of(
        case_of("a", variant="default"),
        case_of("a", variant="terse"),
        variants=(VariantInfo("default", "scripted"), VariantInfo("terse", "scripted")),
    )
    attempts = [
        row(AttemptId("default", "a", 0), PASS),
        row(AttemptId("terse", "a", 0), FAIL, unparsed=(CALL, CALL)),
    ]
    summary = summarise(plan, attempts)
    assert [variant.figures.unparsed_calls for variant in summary.variants] == [0, 2]
    assert summary.figures.unparsed_calls == summary.finding_counts["unparsed"] == 2


def test_writes_to_look_at_are_kept_up_to_a_limit_and_counted_beyond_it() -> None:
    cases = [case_of(str(n)) for n in range(3)]
    attempts = [row(attempt_id(0, str(n)), FAIL, refused=(CALL,) * 15) for n in range(3)]
    summary = summarise(plan_of(*cases), attempts)
    assert len(summary.findings) == KEPT_FINDINGS
    assert summary.finding_counts["refused"] == 45
    assert summary.findings[0].arguments == '{"channel":"#team"}'


def test_a_run_is_full_when_nothing_is_left_out_and_every_attempt_has_ended() -> None:
    whole, part = plan_of(case_of(trials=2)), plan_of(case_of(trials=2), partial=True)
    assert summarise(whole, [passed(0), lost(1)]).full
    assert not summarise(whole, [passed(0)]).full
    assert not summarise(part, [passed(0), passed(1)]).full


@pytest.mark.parametrize(
    ("attempts", "code"),
    [
        ([passed(0, "a"), passed(0, "b")], 0),
        ([passed(0, "a"), failed(0, "b")], 1),
        ([lost(0, "a"), failed(0, "b")], 1),
        ([passed(0, "a"), lost(0, "b")], 10),
        ([passed(0, "a"), row(attempt_id(0, "b"), BROKEN)], 10),
        ([passed(0, "a")], 10),
        ([], 10),
    ],
)
def test_the_exit_code_follows_from_the_cases(attempts: list[AttemptRow], code: int) -> None:
    plan = plan_of(case_of("a"), case_of("b"))
    assert exit_code([summarise(plan, attempts)]) == code
    untroubled = summarise(plan_of(case_of("a")), [passed(0, "a")])
    assert exit_code([untroubled, summarise(plan, attempts)]) == code


def test_a_row_keeps_a_few_hundred_bytes_of_an_attempt() -> None:
    plan = plan_of(case_of(trials=2000))

    def attempts() -> list[AttemptRow]:
        return [
            row(
                attempt_id(trial),
                Score("rubric", False, reason="long " * 20_000, details={"all": ["x"] * 1000}),
                PASS,
            )
            for trial in range(2000)
        ]

    big = iter(attempts())
    tracemalloc.start()
    try:
        summary = summarise(plan, big)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert summary.figures.ledger.graded == 2000
    assert kept < 2000 * 100
