"""The journal of a run, read back: which attempts began, and which of them have ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    integer_field,
    optional_text_field,
    text_field,
)
from pytest_mst.store.failure import store_error
from pytest_mst.store.layout import RunLayout


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an attempt waits for, between two of its tries or before the first."""

    next_try: int
    """1-based."""
    of: int
    """How many tries there are at most."""
    reason: str
    wait_ms: int


@dataclass(frozen=True, slots=True)
class JournalLine:
    """One line of the journal."""

    kind: Literal["begun", "retry", "ended", "owes", "paid"]
    id: AttemptId
    locator: str
    at: str
    """ISO 8601, UTC."""
    worker: str = ""
    """The process that the attempt began in."""
    waiting: Waiting | None = None
    """Of a `retry` line."""
    trial_id: str = ""
    """Of an `owes` or a `paid` line: what `{{trial.id}}` stands for in the attempt."""
    error: str | None = None
    """Of an `owes` line after a cleanup that failed: why it did."""


@dataclass(frozen=True, slots=True)
class TornLine:
    """A line that cannot be read, such as the last one of a process that was killed."""

    line: int
    """1-based."""
    problem: str


def read_journal(layout: RunLayout) -> Iterator[JournalLine | TornLine]:
    """Yield the lines of a run's journal in the order they were written; none without one.

    Raises:
        StoreError: the journal is there and cannot be opened.

    """
    for number, line in json_lines(str(layout.journal)):
        if isinstance(line, TornLine):
            yield line
            continue
        try:
            yield journal_line(line)
        except ValueError as error:
            yield TornLine(number, str(error))


def begun(layout: RunLayout) -> dict[AttemptId, JournalLine]:
    """Return the attempts that began and have not ended, with the line of their beginning.

    An attempt has ended where the journal says so after its last beginning, or where its file
    is there.

    Raises:
        StoreError: the journal is there and cannot be opened.

    """
    under_way: dict[AttemptId, JournalLine] = {}
    for line in read_journal(layout):
        if isinstance(line, TornLine):
            continue
        match line.kind:
            case "begun":
                under_way[line.id] = line
            case "ended":
                under_way.pop(line.id, None)
            case "retry" | "owes" | "paid":
                pass  # still under way, or over
            case _:
                assert_never(line.kind)
    return {id_: line for id_, line in under_way.items() if not layout.trace(id_).exists()}


def json_lines(path: str) -> Iterator[tuple[int, Stored | TornLine]]:
    """Yield the objects of a file with one on each line, with the lines' numbers from 1.

    Lines end at a line feed and nowhere else. Blank lines are left out; a file that is not
    there has no lines.

    Raises:
        StoreError: the file is there and cannot be opened.

    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, _json_line(number, line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise store_error(path, "read", error) from error


def _json_line(number: int, line: bytes) -> Stored | TornLine:
    try:
        stored = json.loads(line)
    except (ValueError, RecursionError) as error:
        return TornLine(number, str(error))
    return stored if isinstance(stored, dict) else TornLine(number, "not a JSON object")


def journal_line(stored: Stored) -> JournalLine:
    """Read one line of the journal.

    Raises:
        ValueError: a field is missing, has a wrong type, or is outside its closed set.

    """
    match stored.get("kind"):
        case "begun" | "retry" | "ended" | "owes" | "paid" as kind:
            return JournalLine(
                kind=kind,
                id=AttemptId(
                    variant=text_field(stored, "variant"),
                    case=text_field(stored, "caseId"),
                    trial=integer_field(stored, "trial"),
                ),
                locator=text_field(stored, "locator"),
                at=text_field(stored, "at"),
                worker=text_field(stored, "worker", ""),
                waiting=_waiting(stored) if kind == "retry" else None,
                trial_id=text_field(stored, "trialId") if kind in ("owes", "paid") else "",
                error=optional_text_field(stored, "error") if kind == "owes" else None,
            )
        case other:
            valid = "'begun', 'retry', 'ended', 'owes' or 'paid'"
            raise StoredFieldError(name="kind", found=other, expected=valid)


def _waiting(stored: Stored) -> Waiting:
    return Waiting(
        next_try=integer_field(stored, "try"),
        of=integer_field(stored, "of"),
        reason=text_field(stored, "reason"),
        wait_ms=integer_field(stored, "waitMs"),
    )
