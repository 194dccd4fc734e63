"""What graders said of a trial, and the verdicts that follow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias, TypeGuard, assert_never

from pytest_mst.domain.ending import Ending, InfrastructureFailure, Trial
from pytest_mst.domain.evidence import Evidence, strongest


@dataclass(frozen=True, slots=True)
class Score:
    """What one grader said of one trial."""

    grader: str
    passed: bool
    value: float | None = None
    """0 to 1, where the grader measures."""
    evidence: Evidence | None = None
    """Set on every score of a write case."""
    reason: str | None = None
    """For people: what was found and, on a fail, what would have been right."""
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no score, so that it can neither be averaged nor taken for a fail.

        Raises:
            ValueError: `passed` is not a boolean, or `value` is not a number from 0 to 1.

        """
        if not _is_boolean(self.passed):
            msg = f"grader {self.grader!r}: passed is {self.passed!r}; valid: True or False"
            raise ValueError(msg)
        if self.value is not None and not is_share(self.value):
            msg = f"grader {self.grader!r}: value is {self.value!r}; valid: a number from 0 to 1"
            raise ValueError(msg)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def is_share(value: object) -> TypeGuard[int | float]:
    """Tell whether a value is a number from 0 to 1."""
    # Not-a-number compares as out of range.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


@dataclass(frozen=True, slots=True)
class Unknown:
    """The grader ran and cannot tell."""

    grader: str
    reason: str
    """What would make it known."""
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GraderFailure:
    """The grader did not run."""

    grader: str
    reason: str
    retryable: bool = True
    """Whether running it again, as it is, can help."""


GradeOutcome: TypeAlias = Score | Unknown | GraderFailure


class TrialVerdict(StrEnum):
    """What a trial's scores add up to."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"


class CaseVerdict(StrEnum):
    """What a case's attempts add up to."""

    PASSED = "passed"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


def trial_verdict(ending: Trial, outcomes: Sequence[GradeOutcome]) -> TrialVerdict:
    """Decide a trial.

    Any grader that says fail decides it; else a grader that could not run or answered unknown
    leaves it ungraded, and so does having no grade at all; else it passed. A trial whose client
    errored cannot pass.
    """
    if any(isinstance(outcome, Score) and not outcome.passed for outcome in outcomes):
        return TrialVerdict.FAILED
    if not outcomes or not all(isinstance(outcome, Score) for outcome in outcomes):
        return TrialVerdict.UNGRADED
    return TrialVerdict.FAILED if ending.client_error is not None else TrialVerdict.PASSED


def verdict_evidence(outcomes: Iterable[GradeOutcome]) -> Evidence | None:
    """Return the strongest level among the scores that decided a trial's verdict."""
    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    deciding = [score for score in scores if not score.passed] or scores
    return strongest(score.evidence for score in deciding)


@dataclass(frozen=True, slots=True)
class GradedAttempt:
    """One attempt as far as verdicts and figures need it. No ending: unstarted."""

    trial: int
    ending: Ending | None
    outcomes: tuple[GradeOutcome, ...] = ()

    @property
    def verdict(self) -> TrialVerdict | None:
        """The verdict of a trial; `None` for what is not a trial."""
        if isinstance(self.ending, Trial):
            return trial_verdict(self.ending, self.outcomes)
        return None

    @property
    def evidence(self) -> Evidence | None:
        """The level that the verdict rests on; `None` where there is no verdict."""
        if self.verdict in (None, TrialVerdict.UNGRADED):
            return None
        return verdict_evidence(self.outcomes)


def case_verdict(
    attempts: Sequence[GradedAttempt], *, planned: int, pass_threshold: float
) -> CaseVerdict:
    """Decide a case by the share of its trials that passed.

    It is incomplete when it is short of a graded trial or has an ungraded one: with that one
    graded the share could be another.

    Args:
        attempts: the attempts there are.
        planned: how many trials the case needs.
        pass_threshold: the share of trials, 0 to 1, that must pass.

    """
    verdicts = [attempt.verdict for attempt in attempts]
    passed = verdicts.count(TrialVerdict.PASSED)
    graded = passed + verdicts.count(TrialVerdict.FAILED)
    if graded < planned or planned == 0 or TrialVerdict.UNGRADED in verdicts:
        return CaseVerdict.INCOMPLETE
    return CaseVerdict.PASSED if passed / graded >= pass_threshold else CaseVerdict.FAILED


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where every planned attempt is: planned = graded + ungraded + infrastructure + unstarted."""

    graded: int = 0
    ungraded: int = 0
    infrastructure: int = 0
    unstarted: int = 0

    @property
    def planned(self) -> int:
        """The number of attempts that were planned."""
        return self.graded + self.ungraded + self.infrastructure + self.unstarted

    def __add__(self, other: Ledger) -> Ledger:
        """Add two ledgers entry by entry."""
        return Ledger(
            self.graded + other.graded,
            self.ungraded + other.ungraded,
            self.infrastructure + other.infrastructure,
            self.unstarted + other.unstarted,
        )

    @classmethod
    def of(cls, attempts: Iterable[GradedAttempt]) -> Ledger:
        """Count attempts."""
        ledger = cls()
        for attempt in attempts:
            ledger += _entry(attempt)
        return ledger

    def to_json(self) -> dict[str, int]:
        """Write the ledger as stored runs hold it."""
        return {
            "planned": self.planned,
            "graded": self.graded,
            "ungraded": self.ungraded,
            "infrastructure": self.infrastructure,
            "unstarted": self.unstarted,
        }


def _entry(attempt: GradedAttempt) -> Ledger:
    match attempt.ending:
        case None:
            return Ledger(unstarted=1)
        case InfrastructureFailure():
            return Ledger(infrastructure=1)
        case Trial():
            if attempt.verdict is TrialVerdict.UNGRADED:
                return Ledger(ungraded=1)
            return Ledger(graded=1)
        case _:
            assert_never(attempt.ending)
