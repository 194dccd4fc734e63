"""One planned attempt as figures need it, whatever is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.json_value import JsonValue, json_equal
from pytest_mst.domain.plan import PlannedCase, RunPlan
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import (
    GradedAttempt,
    GradeOutcome,
    GraderFailure,
    TrialVerdict,
)
from pytest_mst.domain.write import WriteEntry, unclassified_calls
from pytest_mst.report.spending import NO_SPENDING, Spending
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
    """A call as lists of writes show it: of a dispatcher's call, its target."""

    server: str | None
    tool: str
    arguments: JsonValue
    via: tuple[str, str] | None = None
    """Server and tool of the dispatcher whose target it is."""

    @classmethod
    def of(cls, entry: WriteEntry) -> Call:
        """Return the call that an entry of the write record is of."""
        via = None if entry.target is None else (entry.server, entry.tool)
        return cls(*entry.effective, via)

    @property
    def name(self) -> str:
        """Server and tool, behind those of its dispatcher; text from outside, not yet safe.

        A target on the server that was called is named without it once more.
        """
        if self.via is None:
            return _named(self.server, self.tool)
        server = None if self.server == self.via[0] else self.server
        return f"{_named(*self.via)} -> {_named(server, self.tool)}"

    def to_json(self) -> dict[str, object]:
        """Write the call as stored runs hold it."""
        stored: dict[str, object] = {
            "server": self.server,
            "tool": self.tool,
            "arguments": self.arguments,
        }
        if self.via is not None:
            stored["via"] = {"server": self.via[0], "tool": self.via[1]}
        return stored


def _named(server: str | None, tool: str) -> str:
    return tool if server is None else f"{server}.{tool}"


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
    unparsed: tuple[Call, ...] = ()
    """Recorded calls of dispatchers whose targets could not be read."""
    unclassified_calls: int = 0
    """How many there were; of some there is no more than this number."""
    compared: bool | None = None
    """Whether its trace could be compared with its record; `None` where that is not stored."""
    wrote: bool = False
    """Whether it made a write, of whatever kind."""
    spending: Spending = NO_SPENDING
    """What its client and its judges used."""
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
    agreement, trace = stored.agreement or {}, stored.record.trace
    entries = stored.writes.entries
    unrecorded = _calls(agreement.get("unrecordedWrites"))
    unclassified = tuple(Call.of(entry) for entry in entries if entry.unclassified)
    counted, checked = agreement.get("unclassifiedCalls"), agreement.get("checked")
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
        unreported=_recorded(agreement.get("unreportedWrites"), entries),
        unrecorded=unrecorded,
        unclassified=unclassified,
        refused=tuple(Call.of(entry) for entry in entries if entry.refused is not None),
        unparsed=tuple(Call.of(entry) for entry in entries if entry.unparsed),
        unclassified_calls=counted if isinstance(counted, int) else unclassified_calls(entries),
        compared=checked if isinstance(checked, bool) else None,
        wrote=bool(entries or stored.writes.torn or unrecorded),
        spending=Spending.of(trace.usage if trace is not None else None, outcomes),
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
        unreported=tuple(Call.of(entry) for entry in writes.entries),
        unclassified=tuple(Call.of(one) for one in writes.entries if one.unclassified),
        refused=tuple(Call.of(one) for one in writes.entries if one.refused is not None),
        unparsed=tuple(Call.of(one) for one in writes.entries if one.unparsed),
        unclassified_calls=unclassified_calls(writes.entries),
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


def _recorded(stored: object, entries: Sequence[WriteEntry]) -> tuple[Call, ...]:
    """Read the recorded calls that a stored agreement lists, with what it leaves out of them."""
    left = [Call.of(entry) for entry in entries]
    found = []
    for call in _calls(stored):
        same = next((one for one in left if _is_same(one, call)), None)
        if same is not None:
            left.remove(same)
        found.append(same or call)
    return tuple(found)


def _is_same(one: Call, other: Call) -> bool:
    return (one.server, one.tool) == (other.server, other.tool) and json_equal(
        one.arguments, other.arguments
    )


def _calls(stored: object) -> tuple[Call, ...]:
    """Read the calls that a stored agreement lists."""
    if not isinstance(stored, list):
        return ()
    return tuple(
        Call(one.get("server"), str(one.get("tool")), one.get("arguments"))
        for one in stored
        if isinstance(one, Mapping)
    )
