"""One planned attempt as figures need it, whatever is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.plan import PlannedCase, RunPlan
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import (
    GradedAttempt,
    GradeOutcome,
    GraderFailure,
    TrialVerdict,
)
from pytest_mst.store.journal import JournalLine, TornLine, begun
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import (
    StoredAttempt,
    UnreadableAttempt,
    WriteRecord,
    read_attempt,
    read_writes,
    score_folders,
)
from pytest_mst.store.supersede import replaced_attempts, superseded_stamps


@dataclass(frozen=True, slots=True)
class Call:
    """A call as lists of writes show it."""

    server: str | None
    tool: str
    arguments: object

    def to_json(self) -> dict[str, object]:
        """Write the call as stored runs hold it."""
        return {"server": self.server, "tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One planned attempt: stored, only reported, or never begun."""

    id: AttemptId
    locator: str
    ending: Ending | None
    """No ending: unstarted."""
    outcomes: tuple[GradeOutcome, ...] = ()
    unreported: tuple[Call, ...] = ()
    """Entries of the write record with no matching call in the trace."""
    unrecorded: tuple[Call, ...] = ()
    """Write calls in the trace with no entry in the write record."""
    unclassified: tuple[Call, ...] = ()
    """Recorded calls that may have written, and nobody can tell."""
    refused: tuple[Call, ...] = ()
    """Recorded calls that their server itself would have refused."""
    unclassified_calls: int = 0
    """How many there were; of some there is no more than this number."""
    wrote: bool = False
    """Whether it made a write, of whatever kind."""
    replaced: tuple[Ending, ...] = ()
    """How earlier goes at it ended, that were replaced when the run was taken up again."""

    @property
    def graded(self) -> GradedAttempt:
        """The attempt as verdicts need it."""
        return GradedAttempt(self.id.trial, self.ending, self.outcomes)

    @property
    def verdict(self) -> TrialVerdict | None:
        """The verdict of a trial; `None` for what is not a trial."""
        return self.graded.verdict


def unstarted(run_id: str, attempt: AttemptId) -> AttemptRow:
    """Return the row of an attempt that never began."""
    return AttemptRow(attempt, locator(run_id, attempt), None)


def stored_row(stored: StoredAttempt) -> AttemptRow:
    """Return the row of a stored attempt."""
    agreement = stored.agreement or {}
    entries = stored.writes.entries
    unrecorded = _calls(agreement.get("unrecordedWrites"))
    unclassified = tuple(Call(*entry.effective) for entry in entries if entry.unclassified)
    counted = agreement.get("unclassifiedCalls")
    outcomes = stored.outcomes
    if stored.writes.torn:
        lines = ", ".join(str(torn.line) for torn in stored.writes.torn)
        reason = f"the write record cannot be read: line {lines}"
        outcomes = (*outcomes, GraderFailure("write record", reason))
    return AttemptRow(
        id=stored.id,
        locator=stored.locator,
        ending=stored.ending,
        outcomes=outcomes,
        unreported=_calls(agreement.get("unreportedWrites")),
        unrecorded=unrecorded,
        unclassified=unclassified,
        refused=tuple(Call(*entry.effective) for entry in entries if entry.refused is not None),
        unclassified_calls=counted if isinstance(counted, int) else len(unclassified),
        wrote=bool(entries or stored.writes.torn or unrecorded),
    )


def cut_short_row(run_id: str, attempt: AttemptId, reason: str, writes: WriteRecord) -> AttemptRow:
    """Return the row of an attempt that began and whose result is not there.

    Args:
        run_id: the run.
        attempt: which one.
        reason: why, in one line for people.
        writes: what was recorded until then. There is no trace to match it with, so every entry
            is unreported.

    """
    return AttemptRow(
        id=attempt,
        locator=locator(run_id, attempt),
        ending=InfrastructureFailure(Broke.COLLECTION, reason, retryable=True),
        unreported=tuple(Call(*entry.effective) for entry in writes.entries),
        unclassified=tuple(Call(*one.effective) for one in writes.entries if one.unclassified),
        refused=tuple(Call(*one.effective) for one in writes.entries if one.refused is not None),
        unclassified_calls=sum(one.unclassified for one in writes.entries),
        wrote=bool(writes.entries or writes.torn),
    )


def disk_rows(
    plan: RunPlan,
    layout: RunLayout,
    reported: Mapping[AttemptId, AttemptRow] | None = None,
    under_way: Mapping[AttemptId, JournalLine] | None = None,
) -> Iterator[tuple[PlannedCase, list[AttemptRow]]]:
    """Yield each planned case with one row for each of its attempts, one case at a time.

    What is on disk is believed first; then what was reported without being stored; then the
    journal, which tells an attempt that was cut short from one that never began.

    Args:
        plan: the run's plan.
        layout: where its files are.
        reported: rows of attempts that were reported to this process.
        under_way: attempts that began and did not end; read from the journal without it.

    Raises:
        StoreError: the journal or the folder of scores is there and cannot be opened.

    """
    under_way = begun(layout) if under_way is None else under_way
    folders = score_folders(layout)
    stamps = superseded_stamps(layout)

    def row(attempt: AttemptId) -> AttemptRow:
        found = read_attempt(layout, attempt, folders)
        if isinstance(found, StoredAttempt):
            return replace(stored_row(found), replaced=earlier(attempt, found))
        return replace(not_stored(attempt, found), replaced=earlier(attempt))

    def not_stored(attempt: AttemptId, found: UnreadableAttempt | None) -> AttemptRow:
        if reported is not None and attempt in reported:
            return reported[attempt]
        if found is not None:
            reason = f"the stored attempt cannot be read: {found.path}: {found.problem}"
        elif attempt in under_way:
            reason = f"began in process {under_way[attempt].worker} and did not end"
        else:
            return unstarted(plan.run_id, attempt)
        return cut_short_row(plan.run_id, attempt, reason, _writes(layout, attempt))

    def earlier(attempt: AttemptId, now: StoredAttempt | None = None) -> tuple[Ending, ...]:
        goes = replaced_attempts(layout, attempt, stamps, now) if stamps else []
        return tuple(one.stored.ending for one in goes)

    for case in plan.cases:
        yield case, [row(attempt) for attempt in case.attempts]


def _writes(layout: RunLayout, attempt: AttemptId) -> WriteRecord:
    try:
        return read_writes(layout, attempt)
    except StoreError as error:
        return WriteRecord(torn=(TornLine(1, error.problem),))


def _calls(stored: object) -> tuple[Call, ...]:
    """Read the calls that a stored agreement lists."""
    if not isinstance(stored, list):
        return ()
    return tuple(
        Call(one.get("server"), str(one.get("tool")), one.get("arguments"))
        for one in stored
        if isinstance(one, Mapping)
    )
