"""Rows of attempts, by hand and by hypothesis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import strategies as st

from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.plan import PlannedCase, RunPlan
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.report.attempts import AttemptRow, Call, unstarted
from pytest_mst.report.summary import RunSummary, case_row, run_summary
from tests.store.records import LOST, RUN_ID, attempt_id, case_of, plan_of

PASS = Score("containsText", True)
FAIL = Score("containsText", False, reason="'posted' is not in the answer")
REQUESTED = Score("writes", True, evidence=Evidence.REQUESTED)
CLAIMED = Score("containsText", True, evidence=Evidence.CLAIMED)
BROKEN = GraderFailure("rubric", "no API key")
UNKNOWN = Unknown("rubric", "say which tone is right")
DEADLINE = InfrastructureFailure(Broke.DEADLINE, "no end after 300 s", retryable=True)
NO_KEY = InfrastructureFailure(Broke.SETUP, "set CHAT_TOKEN", retryable=False)


def summarise(plan: RunPlan, attempts: Iterable[AttemptRow]) -> RunSummary:
    """Work out the figures of a run from the rows of its attempts, in any order.

    Planned attempts without a row are unstarted; of several rows of one attempt one counts; rows
    of what was not planned are left out. So the ledger always adds up to what was planned.
    """
    return run_summary(plan, [case_row(case, rows) for case, rows in planned_rows(plan, attempts)])


def planned_rows(
    plan: RunPlan, rows: Iterable[AttemptRow]
) -> Iterator[tuple[PlannedCase, list[AttemptRow]]]:
    """Yield each planned case with one row for each of its attempts, from rows in any order.

    Of several rows of one attempt the last one with an ending counts. Rows of attempts that
    were not planned are left out; what has no row is unstarted.
    """
    by_id: dict[AttemptId, AttemptRow] = {}
    for row in rows:
        if row.ending is not None or row.id not in by_id:
            by_id[row.id] = row
    for case in plan.cases:
        attempts = case.attempts
        yield case, [by_id.get(one) or unstarted(plan.run_id, one) for one in attempts]


def row(
    id_: AttemptId, *outcomes: GradeOutcome, ending: Ending | None = None, **more: Any
) -> AttemptRow:
    return AttemptRow(id_, locator(RUN_ID, id_), ending or Trial(), outcomes, **more)


def passed(trial: int = 0, case: str = "post-summary") -> AttemptRow:
    return row(attempt_id(trial, case), PASS)


def failed(trial: int = 0, case: str = "post-summary") -> AttemptRow:
    return row(attempt_id(trial, case), FAIL)


def lost(trial: int = 0, case: str = "post-summary", why: Ending = LOST) -> AttemptRow:
    return row(attempt_id(trial, case), ending=why)


CALL = Call("chat", "post_message", {"channel": "#team"})
outcomes = st.lists(
    st.sampled_from([PASS, FAIL, REQUESTED, CLAIMED, BROKEN, UNKNOWN]), max_size=3
).map(tuple)
calls = st.lists(st.just(CALL), max_size=2).map(tuple)
rows = st.builds(
    AttemptRow,
    id=st.builds(
        AttemptId,
        st.sampled_from(["default", "terse", "unplanned"]),
        st.sampled_from(["a", "b", "c", "unplanned"]),
        st.integers(0, 5),
    ),
    locator=st.just("@abc"),
    ending=st.sampled_from([None, Trial(), Trial(client_error="crashed"), LOST, NO_KEY, DEADLINE]),
    outcomes=outcomes,
    unreported=calls,
    unclassified=calls,
    unclassified_calls=st.integers(0, 3),
    unparsed=calls,
    wrote=st.booleans(),
)


@st.composite
def plans(draw: st.DrawFn) -> RunPlan:
    cases: list[PlannedCase] = []
    for variant in draw(st.sampled_from([["default"], ["default", "terse"]])):
        ids = draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
        cases += [draw(planned_cases(case, variant)) for case in ids]
    return plan_of(*cases, partial=draw(st.booleans()))


def planned_cases(case: str, variant: str) -> st.SearchStrategy[PlannedCase]:
    return st.builds(
        case_of,
        st.just(case),
        variant=st.just(variant),
        trials=st.integers(1, 4),
        pass_threshold=st.sampled_from([0.0, 0.5, 1.0]),
        skip=st.sampled_from([None, None, "later"]),
        write_case=st.booleans(),
    )
