"""A finished trial as a test body sees it: answer, tool calls, writes. Lookups raise, or find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Ending
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.json_value import JsonObject, JsonValue
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry
from pytest_mst.grading.matching import match_arguments

_SHOWN_AT_MOST = 5


class Looked:
    """What a body has looked at, which is what its assertions can rest on."""

    def __init__(self) -> None:
        self.level: Evidence | None = None

    def note(self, level: Evidence) -> None:
        """Note that something of this level was looked at."""
        self.level = level if self.level is None else max(self.level, level)


class WriteRecord(Sequence[WriteEntry]):
    """The writes that reached the boundary, in order. It changes while the client acts."""

    def __init__(self, entries: Sequence[WriteEntry], looked: Looked | None = None) -> None:
        """Make a view.

        Args:
            entries: the record itself.
            looked: what to tell when the record is looked at.

        """
        self._entries = entries
        self._looked = looked or Looked()

    def __getitem__(self, index: Any) -> Any:
        """Return an entry, or a list of them for a slice."""
        return self._seen()[index]

    def __len__(self) -> int:
        """Return how many writes there are."""
        return len(self._seen())

    def __iter__(self) -> Iterator[WriteEntry]:
        """Yield the writes in order."""
        return iter(self._seen())

    def __eq__(self, other: object) -> bool:
        """Compare with a list of entries, so that `trial.writes == []` means what it says."""
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return list(self._seen()) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it changes while the client acts

    def __repr__(self) -> str:
        """Show the writes as a failing assertion prints them."""
        return f"<{len(self._entries)} writes: {_listed(self._entries)}>"

    def matching(
        self,
        tool: str | None = None,
        *,
        server: str | None = None,
        arguments: JsonObject | None = None,
    ) -> list[WriteEntry]:
        """Return the writes that match; arguments match partially, as in `expected.writes`."""
        return [one for one in self._seen() if _matches(one, tool, server, arguments)]

    def one(
        self,
        tool: str | None = None,
        *,
        server: str | None = None,
        arguments: JsonObject | None = None,
    ) -> WriteEntry:
        """Return the only write that matches.

        Raises:
            AssertionError: none does, or more than one.

        """
        __tracebackhide__ = True
        found = self.matching(tool, server=server, arguments=arguments)
        if len(found) != 1:
            asked = _asked(tool, server, arguments)
            msg = f"{len(found)} writes match {asked}, not 1; the record has: " + _listed(
                self._entries
            )
            raise AssertionError(msg)
        return found[0]

    def none(
        self,
        tool: str | None = None,
        *,
        server: str | None = None,
        arguments: JsonObject | None = None,
    ) -> None:
        """Make sure that no write matches; without arguments, that there is none at all.

        Raises:
            AssertionError: one does.

        """
        __tracebackhide__ = True
        found = self.matching(tool, server=server, arguments=arguments)
        if found:
            msg = f"no write was expected to match {_asked(tool, server, arguments)}, but " + (
                f"{len(found)} did: {_listed(found)}"
            )
            raise AssertionError(msg)

    def look(self) -> None:
        """Note that the record was looked at: for less where a call cannot be classified."""
        unclear = any(entry.unclassified for entry in self._entries)
        self._looked.note(Evidence.CALLED if unclear else Evidence.REQUESTED)

    def _seen(self) -> Sequence[WriteEntry]:
        self.look()
        return self._entries


class FinishedTrial:
    """A trial that has ended: what the client answered, did, and asked to be written."""

    def __init__(
        self, record: AttemptRecord, writes: Sequence[WriteEntry], looked: Looked | None = None
    ) -> None:
        """Make a view.

        Args:
            record: the attempt; it has a trace.
            writes: its write record.
            looked: what to tell when something is looked at.

        """
        assert record.trace is not None
        self._record = record
        self._trace = record.trace
        self._looked = looked or Looked()
        self._writes = WriteRecord(writes, self._looked)

    def __repr__(self) -> str:
        """Show which trial it is, as a failing test prints it; that is not looking at it."""
        return f"<trial {self.number} {self.locator}>"

    @property
    def locator(self) -> str:
        """The short name of the attempt, as it is printed."""
        return self._record.locator

    @property
    def number(self) -> int:
        """Which trial of its case it is, 0-based."""
        return self._record.id.trial

    @property
    def ending(self) -> Ending:
        """How the attempt ended."""
        return self._record.ending

    @property
    def duration_s(self) -> float:
        """How long the attempt took, in seconds."""
        return self._record.duration_ms / 1000

    @property
    def answer(self) -> str:
        """The client's answer; empty where it gave none."""
        self._looked.note(Evidence.CLAIMED)
        return self._trace.answer or ""

    @property
    def trace(self) -> Trace:
        """All that the client did, in order."""
        self._looked.note(Evidence.CALLED)
        return self._trace

    @property
    def writes(self) -> WriteRecord:
        """The writes that reached the boundary: the record, not the client's word."""
        return self._writes

    @property
    def agreement(self) -> Agreement | None:
        """Whether trace and record agree, and what is left over."""
        self._writes.look()
        return self._record.agreement

    @property
    def usage(self) -> Mapping[str, JsonValue]:
        """What the client used up, where it says so."""
        self._looked.note(Evidence.CLAIMED)
        return self._trace.usage or {}

    def calls(self, tool: str | None = None, *, server: str | None = None) -> list[TraceEvent]:
        """Return the tool calls of the trace, in order; of one tool or server where named."""
        return [
            event
            for event in self.trace.tool_calls
            if tool in (None, event.name) and server in (None, event.server)
        ]

    def call(self, tool: str, *, server: str | None = None) -> TraceEvent:
        """Return the only call of a tool in the trace.

        Raises:
            AssertionError: there is none, or more than one.

        """
        __tracebackhide__ = True  # what a failing test shows is its own line
        found = self.calls(tool, server=server)
        if len(found) != 1:
            made = ", ".join(event.name for event in self._trace.tool_calls) or "no call at all"
            msg = f"{len(found)} calls of {tool!r} in the trace, not 1; it has: {made}"
            raise AssertionError(msg)
        return found[0]


def _matches(
    entry: WriteEntry, tool: str | None, server: str | None, arguments: JsonObject | None
) -> bool:
    """Tell whether a write is one that is asked for, as `expected.writes` would.

    A dispatched call whose target could not be read is any write, and none in particular.
    """
    of_server, of_tool, sent = entry.effective
    if entry.refused is not None or server not in (None, of_server, entry.server):
        return False
    if entry.unparsed:
        return tool is None and arguments is None
    return tool in (None, of_tool) and (
        arguments is None or match_arguments(arguments, sent) is None
    )


def _asked(tool: str | None, server: str | None, arguments: JsonObject | None) -> str:
    name = ".".join(part for part in (server, tool) if part) or "any tool"
    return name if arguments is None else f"{name}({arguments!r})"


def _listed(entries: Sequence[WriteEntry]) -> str:
    shown = [
        f"{server}.{tool}({dict(arguments)!r})"
        + (f" refused: {entry.refused}" if entry.refused else "")
        + (" whose target cannot be read" if entry.unparsed else "")
        for entry in entries[:_SHOWN_AT_MOST]
        for server, tool, arguments in [entry.effective]
    ]
    more = len(entries) - _SHOWN_AT_MOST
    return (", ".join(shown) or "no write") + (f" and {more} more" if more > 0 else "")
