"""How attempts and cases show as pytest reports: their properties, letters and words."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import pytest

from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.domain.score import CaseVerdict, GradedAttempt, TrialVerdict

ATTEMPT_PROPERTY = "mst_attempt"
SKIP_PROPERTY = "mst_skipped"
CASE_PROPERTY = "mst_verdict"
RATE_PROPERTY = "mst_pass_rate"
EVIDENCE_PROPERTY = "mst_evidence"

ATTEMPT_PHASE = "trial"
"""`when` of the small report of one attempt: no reporter takes it for a test of its own."""

NOTE_REASON_CHARS = 400
"""Of an attempt's or a skip's reason in its report, which is to stay small."""

State: TypeAlias = Literal["passed", "failed", "ungraded", "infrastructure", "unstarted"]

Status: TypeAlias = tuple[str, str, str | tuple[str, dict[str, bool]]]

_ATTEMPT_STATUS: dict[State, Status] = {
    "passed": ("", ".", ("trial passed", {"green": True})),
    "failed": ("", "x", ("trial failed", {"red": True})),
    "ungraded": ("", "?", ("trial ungraded", {"yellow": True})),
    "infrastructure": ("", "!", ("infrastructure failure", {"yellow": True})),
    "unstarted": ("", "", ""),
}
_CASE_STATUS: dict[CaseVerdict, Status] = {
    CaseVerdict.PASSED: ("passed", "P", ("CASE PASSED", {"green": True})),
    CaseVerdict.FAILED: ("failed", "F", ("CASE FAILED", {"red": True})),
    CaseVerdict.INCOMPLETE: ("incomplete", "I", ("CASE INCOMPLETE", {"yellow": True})),
}


class Refused(pytest.Collector.CollectError):
    """A mistake of the user's, found at collection, that ends the session with exit code 4."""


class CaseFailed(AssertionError):
    """Too few of a case's trials passed."""


class CaseIncomplete(Exception):
    """A case is short of a trial, or has an ungraded one."""


@dataclass(frozen=True, slots=True)
class AttemptNote:
    """What is reported of one attempt: small, and plain data, so that any transport takes it."""

    locator: str
    run: str
    variant: str
    case: str
    trial: int
    state: State
    broke: str | None = None
    reason: str = ""
    """The start of why it broke."""
    retryable: bool = False

    def to_property(self) -> tuple[str, str]:
        """Write the note as a report's property, ASCII only."""
        return ATTEMPT_PROPERTY, json.dumps({name: getattr(self, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True)
class SkipNote:
    """A case that was skipped while it ran, by a mark or a fixture: outside the ledger."""

    run: str
    variant: str
    case: str
    reason: str

    def to_property(self) -> tuple[str, str]:
        """Write the note as a report's property, ASCII only."""
        return SKIP_PROPERTY, json.dumps(asdict(self))


def skip_note_of(report: Any) -> SkipNote | None:
    """Read back the note of a skipped case's report; `None` for any other report."""
    for name, value in getattr(report, "user_properties", ()):
        if name == SKIP_PROPERTY:
            return SkipNote(**json.loads(value))
    return None


def state_of(graded: GradedAttempt) -> State:
    """Return the word for how an attempt stands."""
    if graded.ending is None:
        return "unstarted"
    if isinstance(graded.ending, InfrastructureFailure):
        return "infrastructure"
    match graded.verdict:
        case TrialVerdict.PASSED:
            return "passed"
        case TrialVerdict.FAILED:
            return "failed"
        case _:
            return "ungraded"


def note_of(report: Any) -> AttemptNote | None:
    """Read back the note of an attempt's report; `None` for any other report."""
    if getattr(report, "when", None) != ATTEMPT_PHASE:
        return None
    for name, value in report.user_properties:
        if name == ATTEMPT_PROPERTY:
            return _note(value)
    return None


@lru_cache(maxsize=16)
def _note(value: str) -> AttemptNote:
    """Read a note once, however many plugins ask for it."""
    return AttemptNote(**json.loads(value))


def verdict_of(report: Any) -> CaseVerdict | None:
    """Return the verdict that a case's report carries; `None` for any other report."""
    for name, value in getattr(report, "user_properties", ()):
        if name == CASE_PROPERTY:
            return CaseVerdict(value)
    return None


def decides(report: Any) -> bool:
    """Tell whether a report of a case is the one that carries its verdict."""
    return report.when == "call" or (report.when == "setup" and not report.passed)


def status_of(report: pytest.CollectReport | pytest.TestReport) -> Status | None:
    """Return category, letter and word of a report of ours; `None` leaves it to pytest."""
    note = note_of(report)
    if note is not None:
        return _ATTEMPT_STATUS[note.state]
    verdict = verdict_of(report)
    if verdict is None or not isinstance(report, pytest.TestReport):
        return None
    if decides(report):
        return _CASE_STATUS[verdict]
    return ("", "", "") if report.passed else None
