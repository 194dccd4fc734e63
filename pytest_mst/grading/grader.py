"""What a grader is, and what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.outcome import OutcomeReading
from pytest_mst.domain.score import GradeOutcome
from pytest_mst.domain.trace import Trace
from pytest_mst.domain.write import WriteEntry, WriteMode


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """What a grader sees of one finished trial."""

    case: Case
    ending: Trial
    trace: Trace
    writes: tuple[WriteEntry, ...]
    """The write record, in order."""
    agreement: Agreement
    modes: Mapping[str, WriteMode]
    """Of the variant's servers, by label."""
    declared_writes: bool = False
    """A Python case marked as making writes, without saying which."""
    direct: frozenset[str] = frozenset()
    """Labels of the servers that the client connects to itself: no boundary stands there, so
    that the write record cannot have their writes."""
    trial_id: str = ""
    """What `{{trial.id}}` stood for in the attempt."""
    outcome: tuple[OutcomeReading, ...] = ()
    """What our own reads brought after the attempt, where it was live."""


class Grader(Protocol):
    """What scores a trial."""

    @property
    def name(self) -> str:
        """The name its scores are kept under; unique in a case."""
        ...

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Score a trial, say that it cannot be told, or say why the grader did not run."""
        ...


@runtime_checkable
class ConditionalGrader(Grader, Protocol):
    """A grader that has something to say about some trials only."""

    def applies(self, facts: TrialFacts) -> bool:
        """Tell whether the trial is one of them. No score is missing where it does not apply."""
        ...
