"""Whether the client's account of its writes agrees with what the boundary recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mst.domain.call_pair import CallPair, CallSide, pair_from_json, side_from_json
from pytest_mst.domain.json_value import json_equal
from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    flag_field,
    integer_field,
    object_list_field,
    optional_object_field,
    optional_text_field,
    text_field,
)
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.domain.write import WriteEntry


@dataclass(frozen=True, slots=True)
class Agreement:
    """What is left over when trace and write record are matched one to one."""

    checked: bool
    """False where the trace is only observed or absent, so that nothing could be compared."""
    unreported: tuple[WriteEntry, ...] = ()
    """Entries of the write record with no matching call in the trace."""
    unrecorded: tuple[TraceEvent, ...] = ()
    """Write calls in the trace, to a server behind the proxy, with no entry in the record."""
    unclassified: int = 0
    """Forwarded calls that may have written, and nobody can tell."""
    pairs: tuple[CallPair, ...] = ()
    """Calls of trace and record side by side, where they differ: of what is left over the
    nearest on the other side, calls that one side has more often, and those that the client's
    id joins although their arguments differ. A call stands in one pair at most."""
    unattributed: tuple[CallSide, ...] = ()
    """Writes over a connection that attempts share, made while this one was under way, of which
    nobody knows whose they are."""
    contested: tuple[CallSide, ...] = ()
    """Calls over such a connection that more attempts claim than the record has."""

    @property
    def agrees(self) -> bool:
        """Whether nothing is left over."""
        return not self.unreported and not self.unrecorded

    @property
    def in_doubt(self) -> bool:
        """Whether the record may lack a write of the attempt's, or have one of another's."""
        return bool(self.unattributed or self.contested)

    def to_json(self) -> dict[str, object]:
        """Write the agreement as stored trials hold it."""
        stored: dict[str, object] = {
            "checked": self.checked,
            "unreportedWrites": [_write(*entry.effective) for entry in self.unreported],
            "unrecordedWrites": [
                _write(event.server, event.name, event.arguments or {}) for event in self.unrecorded
            ],
            "unclassifiedCalls": self.unclassified,
        }
        if self.pairs:
            stored["pairs"] = [pair.to_json() for pair in self.pairs]
        if self.unattributed:
            stored["unattributedWrites"] = [one.to_json() for one in self.unattributed]
        if self.contested:
            stored["contestedCalls"] = [one.to_json() for one in self.contested]
        return stored


def agreement_from_json(stored: Stored, entries: Sequence[WriteEntry]) -> Agreement:
    """Read a stored agreement back; fields that are not known are ignored.

    Args:
        stored: what `Agreement.to_json` wrote.
        entries: the write record of the attempt, whose entries the unreported ones are.

    Raises:
        ValueError: a field is missing or has a wrong type.

    """
    left = list(entries)
    unreported = []
    for one in object_list_field(stored, "unreportedWrites"):
        entry = next((entry for entry in left if _is(entry, one)), None)
        if entry is None:
            expected = "entries of the write record"
            raise StoredFieldError(name="unreportedWrites", found=dict(one), expected=expected)
        left.remove(entry)
        unreported.append(entry)
    return Agreement(
        checked=flag_field(stored, "checked"),
        unreported=tuple(unreported),
        unrecorded=tuple(
            TraceEvent(
                name=text_field(one, "tool"),
                server=optional_text_field(one, "server"),
                arguments=optional_object_field(one, "arguments"),
            )
            for one in object_list_field(stored, "unrecordedWrites")
        ),
        unclassified=integer_field(stored, "unclassifiedCalls", 0),
        pairs=tuple(map(pair_from_json, object_list_field(stored, "pairs"))),
        unattributed=tuple(map(side_from_json, object_list_field(stored, "unattributedWrites"))),
        contested=tuple(map(side_from_json, object_list_field(stored, "contestedCalls"))),
    )


def _is(entry: WriteEntry, stored: Stored) -> bool:
    server, tool, arguments = entry.effective
    return (
        stored.get("server") == server
        and stored.get("tool") == tool
        and json_equal(stored.get("arguments"), arguments)
    )


def _write(server: str | None, tool: str, arguments: object) -> dict[str, object]:
    return {"server": server, "tool": tool, "arguments": arguments}
