"""What a Python case's fixtures and test body say about its attempt, as a grade or an ending."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_mst.attempt.finished import FinishedAttempt, not_stored, store_outcomes
from pytest_mst.attempt.job import BODY
from pytest_mst.attempt.unexpected import detail_of, fatal_failure, fatal_in, leaves, named
from pytest_mst.domain.ending import (
    Broke,
    FatalError,
    InfrastructureError,
    InfrastructureFailure,
)
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score
from pytest_mst.plugin import timer
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.store.append import RunWriter

_REASON_LIMIT_CHARS = 4_000


class NotATrial(Exception):
    """Raised by the fixture `trial` so that the body does not run on what is no trial."""


class NeverAwaited(Exception):
    """A body left a coroutine behind that nobody awaited."""


def body_grade(case: CaseItem) -> GradeOutcome:
    """Return what fixtures and body said of a finished trial.

    Only `AssertionError` and `pytest.fail` in the body fail a trial; anything else that was
    raised means that the body could not grade it, a fatal error whatever it was turned into, and
    so does never looking at it.

    Args:
        case: the case, with what its phases raised and what its body looked at.

    """
    raised = [(when, one.value) for when, one in case.errors if when != "teardown"]
    level = case.looked.level
    if not raised:
        graded_by_marks = case.case.expected.writes is not None or case.declared_writes
        if level is None and not graded_by_marks:
            return GraderFailure(BODY, "the test body never looked at its trial")
        return Score(BODY, passed=True, evidence=level or Evidence.CLAIMED)
    when, error = raised[0]
    if when == "call" and is_assertion(error):
        text = "\n".join(str(leaf) or type(leaf).__name__ for leaf in leaves(error))
        text = text[:_REASON_LIMIT_CHARS]
        return Score(BODY, passed=False, evidence=level or Evidence.CLAIMED, reason=text)
    where = "a fixture" if when == "setup" else "the test body"
    return GraderFailure(BODY, f"{where} raised {named(error)}")


FIXTURES = "fixtures"
"""The name under which a failure of what surrounds a case is kept beside its graders."""


def fixtures_grade(case: CaseItem) -> GraderFailure | None:
    """Return what a failing fixture means for a trial of an eval file: it is not graded."""
    if case.raised is None:
        return None
    return GraderFailure(FIXTURES, f"the case could not be graded: {named(case.raised)}")


def add_body_grade(
    writer: RunWriter, finished: FinishedAttempt, outcome: GradeOutcome
) -> FinishedAttempt:
    """Store what the body said, and return the attempt with it.

    Whatever it looked at: where nobody can tell what a call did, it rests on the trace at most.
    """
    if isinstance(outcome, Score) and any(entry.unclassified for entry in finished.writes):
        level = min(outcome.evidence or Evidence.CLAIMED, Evidence.CALLED)
        outcome = replace(outcome, evidence=level)
    try:
        record = store_outcomes(writer, finished.record, [outcome])
    except StoreError as error:
        return replace(
            finished, record=replace(finished.record, ending=not_stored(error)), outcomes=()
        )
    return replace(finished, record=record, outcomes=(*finished.outcomes, outcome))


def failure_before_end(
    error: BaseException, *, body_is_client: bool = False
) -> InfrastructureFailure:
    """Return the ending of an attempt whose body or fixture broke before its client ended.

    Args:
        error: what was raised.
        body_is_client: whether the body itself is the client (it asked for the proxy, not for
            `mst`), so that what it raises is the client's program failing.

    """
    fatal = fatal_behind(error)
    if fatal is not None:
        return fatal_failure(fatal, error)
    for leaf in leaves(error):
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
    detail = detail_of(error)
    if timer.fired(error):
        reason = f"pytest-timeout ended the test before the client had ended: {named(error)}"
        return InfrastructureFailure(Broke.DEADLINE, reason, retryable=True, detail=detail)
    if body_is_client:
        return InfrastructureFailure(
            Broke.CLIENT_APP, f"the test body raised {named(error)}", retryable=True, detail=detail
        )
    reason = f"a fixture or the test body raised {named(error)} before the client had ended"
    return InfrastructureFailure(Broke.SETUP, reason, retryable=False, detail=detail)


def fatal_behind(error: BaseException) -> FatalError | None:
    """Return the fatal error in what a fixture or body raised; see `fatal_in`.

    Who skips a case because of one has dealt with it.
    """
    return None if isinstance(error, pytest.skip.Exception) else fatal_in(error)


def is_assertion(error: BaseException) -> bool:
    """Tell whether an error is the body's way to fail a trial, and nothing fatal is behind it."""
    if fatal_behind(error) is not None:
        return False
    return not timer.fired(error) and all(
        isinstance(one, AssertionError | pytest.fail.Exception) for one in leaves(error)
    )
