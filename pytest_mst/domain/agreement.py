"""Whether the client's account of its writes agrees with what the boundary recorded."""

from __future__ import annotations

from dataclasses import dataclass

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

    @property
    def agrees(self) -> bool:
        """Whether nothing is left over."""
        return not self.unreported and not self.unrecorded

    def to_json(self) -> dict[str, object]:
        """Write the agreement as stored trials hold it."""
        return {
            "checked": self.checked,
            "unreportedWrites": [_write(*entry.effective) for entry in self.unreported],
            "unrecordedWrites": [
                _write(event.server, event.name, event.arguments or {}) for event in self.unrecorded
            ],
            "unclassifiedCalls": self.unclassified,
        }


def _write(server: str | None, tool: str, arguments: object) -> dict[str, object]:
    return {"server": server, "tool": tool, "arguments": arguments}
