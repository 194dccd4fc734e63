"""Why a case is not passed: what its attempts came to, gathered, and what helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.score import GraderFailure, Score, TrialVerdict, Unknown
from pytest_mst.report.attempts import AttemptRow

KEPT_REASONS = 10
"""How many different reasons of one case are kept."""
_KEPT_CHARS = 300


class ReasonKind(StrEnum):
    """Where in the ledger an attempt with such a reason is."""

    FAILED = "failed"
    UNGRADED = "ungraded"
    INFRASTRUCTURE = "infrastructure"
    UNSTARTED = "unstarted"


class Remedy(StrEnum):
    """What completes a case that is incomplete for a reason."""

    NOTHING = "nothing"
    """It is a result, not a lack of one."""
    COLLECT = "collect"
    """The attempt can be made (again)."""
    GRADE = "grade"
    """The trial can be graded again."""
    FIX = "fix"
    """Something is to be fixed first; a retry cannot help."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, and how many attempts of the case have it."""

    kind: ReasonKind
    detail: str
    """What happened, in the words of whoever knew it; text from outside, not yet safe to show."""
    remedy: Remedy
    locator: str
    """Of the first attempt that has it."""
    count: int = 1

    @property
    def text(self) -> str:
        """The reason as stored files hold it."""
        times = f" ({self.count} attempts)" if self.count > 1 else ""
        return f"{self.kind}: {self.detail}{times}"


def _kept(detail: str) -> str:
    return detail if len(detail) <= _KEPT_CHARS else detail[: _KEPT_CHARS - 3] + "..."


def reasons(attempts: Iterable[AttemptRow], *, gone: bool = False) -> tuple[Reason, ...]:
    """Gather the reasons of a case's attempts, equal ones together, in order of appearance.

    Args:
        attempts: the case's attempts.
        gone: whether the case is there no more, so that it has to be put back first.

    """
    counts: dict[tuple[ReasonKind, str, Remedy], tuple[str, int]] = {}
    for attempt in attempts:
        for kind, detail, helps in _of(attempt):
            remedy = Remedy.FIX if gone and helps is not Remedy.NOTHING else helps
            key = (kind, _kept(detail), remedy)
            first, count = counts.get(key, (attempt.locator, 0))
            counts[key] = (first, count + 1)
    gathered = [
        Reason(kind, detail, remedy, locator, count)
        for (kind, detail, remedy), (locator, count) in counts.items()
    ]
    return tuple(gathered[:KEPT_REASONS])


def _of(attempt: AttemptRow) -> Iterator[tuple[ReasonKind, str, Remedy]]:
    match attempt.ending:
        case None:
            yield ReasonKind.UNSTARTED, "never began", Remedy.COLLECT
        case InfrastructureFailure() as failure:
            remedy = Remedy.COLLECT if failure.retryable else Remedy.FIX
            yield ReasonKind.INFRASTRUCTURE, f"{failure.broke}: {failure.reason}", remedy
        case Trial() as ending:
            match attempt.verdict:
                case TrialVerdict.UNGRADED:
                    yield from _ungraded(attempt)
                case TrialVerdict.FAILED:
                    yield from _failed(attempt, ending)
                case _:
                    pass


def _ungraded(attempt: AttemptRow) -> Iterator[tuple[ReasonKind, str, Remedy]]:
    kind = ReasonKind.UNGRADED
    if not attempt.outcomes:
        yield kind, "no grader scored it", Remedy.GRADE
    for outcome in attempt.outcomes:
        match outcome:
            case GraderFailure():
                remedy = Remedy.GRADE if outcome.retryable else Remedy.FIX
                yield kind, f"{outcome.grader} could not run: {outcome.reason}", remedy
            case Unknown():
                yield kind, f"{outcome.grader} cannot tell: {outcome.reason}", Remedy.FIX
            case Score():
                pass


def _failed(attempt: AttemptRow, ending: Trial) -> Iterator[tuple[ReasonKind, str, Remedy]]:
    kind, nothing = ReasonKind.FAILED, Remedy.NOTHING
    if ending.client_error is not None:
        yield kind, f"the client errored: {ending.client_error}", nothing
    for outcome in attempt.outcomes:
        if isinstance(outcome, Score) and not outcome.passed:
            found = "did not pass" if outcome.reason is None else outcome.reason
            yield kind, f"{outcome.grader}: {found}", nothing
