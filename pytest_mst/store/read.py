"""Reading a stored run, one attempt at a time. What cannot be read is told, not raised."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_mst.domain.attempt import AttemptRecord, attempt_from_json
from pytest_mst.domain.ending import Ending
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import GradedAttempt, GradeOutcome, GraderFailure
from pytest_mst.domain.stored_field import (
    Stored,
    object_field,
    optional_object_field,
    text_field,
)
from pytest_mst.domain.write import WriteEntry, write_from_json
from pytest_mst.store.failure import store_error
from pytest_mst.store.journal import TornLine, json_lines
from pytest_mst.store.json_file import Unreadable, format_problem, read_object
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.legacy import is_legacy, score_as_current, trial_as_current
from pytest_mst.store.names import safe_name
from pytest_mst.store.scores import score_from_json

UNNAMED_GRADER = "grading"
"""Stands for a grader that a stored `gradingError` does not name."""
NO_SCORE = "its score is not stored"


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """The write record of one attempt, read back."""

    entries: tuple[WriteEntry, ...] = ()
    torn: tuple[TornLine, ...] = ()
    """Lines that cannot be read: each was a write."""


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One attempt with everything that is stored of it."""

    record: AttemptRecord
    """Without its agreement, which is below as it was stored."""
    outcomes: tuple[GradeOutcome, ...] = ()
    """One for each score, and a `GraderFailure` for each grader that has none."""
    agreement: Mapping[str, object] | None = None
    writes: WriteRecord = WriteRecord()

    @property
    def id(self) -> AttemptId:
        """Which attempt."""
        return self.record.id

    @property
    def locator(self) -> str:
        """Its short name."""
        return self.record.locator

    @property
    def ending(self) -> Ending:
        """How it ended."""
        return self.record.ending

    @property
    def duration_ms(self) -> int:
        """How long it took, never below 0."""
        return self.record.duration_ms

    @property
    def graded(self) -> GradedAttempt:
        """The attempt as verdicts need it."""
        return GradedAttempt(self.id.trial, self.ending, self.outcomes)

    @property
    def grading_error(self) -> str | None:
        """Why a grader could not run."""
        return self.record.grading_error


@dataclass(frozen=True, slots=True)
class UnreadableAttempt:
    """An attempt whose file is there and cannot be read."""

    id: AttemptId
    path: str
    problem: str


def read_document(path: Path) -> Stored | None:
    """Read a stored file that is one JSON object; `None` where there is none.

    Raises:
        StoreError: the file is there and cannot be read, or is of a format that is not known.

    """
    stored = read_object(path)
    if isinstance(stored, Unreadable):
        raise StoreError(str(path), stored.problem)
    problem = None if stored is None else format_problem(stored)
    if problem is not None:
        raise StoreError(str(path), problem, "read it with the version that wrote it")
    return stored


def read_attempt(
    layout: RunLayout, attempt: AttemptId, folders: Sequence[str] | None = None
) -> StoredAttempt | UnreadableAttempt | None:
    """Read one attempt; `None` where it has no file.

    Args:
        layout: the run.
        attempt: which one.
        folders: the names of the folders to look for scores in; every one by default.

    Raises:
        StoreError: the folder of scores is there and cannot be listed.

    """
    path = layout.trace_file(attempt)
    stored = read_object(path)
    if stored is None:
        return None
    if isinstance(stored, Unreadable):
        return UnreadableAttempt(attempt, path, stored.problem)
    problem = format_problem(stored)
    if problem is not None:
        return UnreadableAttempt(attempt, path, problem)
    try:
        legacy = is_legacy(stored)
        record = attempt_from_json(trial_as_current(stored, layout) if legacy else stored)
        if not record.locator:
            record = replace(record, locator=locator(layout.run_id, record.id))
        if record.id != attempt:
            return UnreadableAttempt(attempt, path, f"is of another attempt: {record.id}")
        agreement = optional_object_field(stored, "agreement")
    except ValueError as error:
        return UnreadableAttempt(attempt, path, str(error))
    try:
        writes = read_writes(layout, attempt)
    except StoreError as error:
        return UnreadableAttempt(attempt, error.path, error.problem)
    there = score_folders(layout) if folders is None else folders
    outcomes = _outcomes(layout, attempt, record, there, legacy=legacy)
    return StoredAttempt(record, outcomes, agreement, writes)


def score_folders(layout: RunLayout) -> list[str]:
    """Return the names of the folders that hold scores, one for each grader.

    Raises:
        StoreError: the folder of scores is there and cannot be listed.

    """
    try:
        return sorted(os.listdir(layout.scores_dir))  # noqa: PTH208 - names are what is wanted
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(layout.scores_dir, "read", error) from error


def read_writes(layout: RunLayout, attempt: AttemptId) -> WriteRecord:
    """Read the write record of one attempt; empty where there is none.

    Raises:
        StoreError: the record is there and cannot be opened.

    """
    entries: list[WriteEntry] = []
    torn: list[TornLine] = []
    for number, line in json_lines(layout.writes_file(attempt)):
        if isinstance(line, TornLine):
            torn.append(line)
            continue
        try:
            entries.append(write_from_json(line))
        except ValueError as error:
            torn.append(TornLine(number, str(error)))
    return WriteRecord(tuple(entries), tuple(torn))


def _outcomes(
    layout: RunLayout,
    attempt: AttemptId,
    record: AttemptRecord,
    folders: Sequence[str],
    *,
    legacy: bool,
) -> tuple[GradeOutcome, ...]:
    """Read the scores there are, and name the graders that are still to score the trial."""
    expected = {safe_name(grader): grader for grader in record.graders}
    outcomes: list[GradeOutcome] = []
    for folder in folders:
        path = layout.score_in(folder, attempt)
        outcome = _score(path, expected.get(folder, folder), legacy=legacy)
        if outcome is not None:
            expected.pop(folder, None)
            outcomes.append(outcome)
    scored = {outcome.grader for outcome in outcomes}
    for failure in record.grader_failures:
        if failure.grader not in scored:
            expected.pop(safe_name(failure.grader), None)
            outcomes.append(failure)
    if record.grading_error is not None and not record.grader_failures:
        reason, names = record.grading_error, tuple(expected.values()) or (UNNAMED_GRADER,)
        return (*outcomes, *(GraderFailure(name, reason) for name in names))
    return (*outcomes, *(GraderFailure(name, NO_SCORE) for name in expected.values()))


def _score(path: str, grader: str, *, legacy: bool) -> GradeOutcome | None:
    stored = read_object(path)
    if stored is None:
        return None
    if isinstance(stored, Unreadable):
        return GraderFailure(grader, f"{path}: {stored.problem}")
    problem = format_problem(stored)
    if problem is not None:
        return GraderFailure(grader, f"{path}: {problem}")
    try:
        score = object_field(stored, "score")
        if legacy:
            score = score_as_current(score)
        return score_from_json(text_field(stored, "grader"), score)
    except ValueError as error:
        return GraderFailure(grader, f"{path}: cannot be read: {error}")
