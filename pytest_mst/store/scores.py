"""What graders said of a trial, as stored files hold it."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.stored_field import (
    Stored,
    flag_field,
    number_field,
    optional_object_field,
    optional_text_field,
)


def score_to_json(outcome: Score | Unknown) -> dict[str, object]:
    """Write a score; absent fields are left out. An unknown does not pass, and says so."""
    match outcome:
        case Unknown():
            unknown = {"pass": False, "unknown": True, "reason": outcome.reason}
            return unknown | ({"details": outcome.details} if outcome.details else {})
        case Score():
            fields: dict[str, object] = {
                "pass": outcome.passed,
                "value": outcome.value,
                "evidence": None if outcome.evidence is None else outcome.evidence.label,
                "reason": outcome.reason,
                "details": outcome.details or None,
            }
            return {name: value for name, value in fields.items() if value is not None}


def score_from_json(grader: str, stored: Stored) -> Score | Unknown:
    """Read a score; fields that are not known are ignored.

    Raises:
        ValueError: `pass` is missing, or a field has a wrong type.

    """
    reason = optional_text_field(stored, "reason")
    passed = flag_field(stored, "pass")
    details = dict(optional_object_field(stored, "details") or {})
    if stored.get("unknown") is True:
        return Unknown(grader, reason or "", details)
    evidence = optional_text_field(stored, "evidence")
    return Score(
        grader=grader,
        passed=passed,
        value=number_field(stored, "value"),
        evidence=None if evidence is None else Evidence.from_label(evidence),
        reason=reason,
        details=details,
    )


def by_grader(outcomes: Iterable[GradeOutcome]) -> dict[str, Score | Unknown]:
    """Return the scores by their graders' names; the second of one name is called `name (2)`.

    A grader that could not run has no score.
    """
    named: dict[str, Score | Unknown] = {}
    for outcome in outcomes:
        if isinstance(outcome, GraderFailure):
            continue
        name, others = outcome.grader, 1
        while name in named:
            others += 1
            name = f"{outcome.grader} ({others})"
        named[name] = outcome
    return named
