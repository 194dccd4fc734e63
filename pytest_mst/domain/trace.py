"""What the client did in one attempt, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pytest_mst.domain.json_value import JsonObject, JsonValue

EventKind: TypeAlias = Literal["tool_call", "skill", "command", "subagent", "tool_search"]
TraceEvidence: TypeAlias = Literal["structured", "observed", "none"]
"""`structured`: the client's own account. `observed`: from our boundary only. `none`: absent."""


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """One thing the client did."""

    name: str
    """The tool, as its server names it."""
    kind: EventKind = "tool_call"
    source: Literal["mcp", "builtin"] = "mcp"
    server: str | None = None
    """The server's label."""
    arguments: JsonObject | None = None
    output: JsonValue = None
    is_error: bool | None = None
    id: str | None = None
    """The client's own id of the call; the write record's `joinId` where the client sends it."""

    def to_json(self) -> dict[str, object]:
        """Write the event as stored traces hold it; absent fields are left out."""
        event: dict[str, object] = {"kind": self.kind, "source": self.source, "name": self.name}
        optional: dict[str, object] = {
            "server": self.server,
            "arguments": self.arguments,
            "output": self.output,
            "isError": self.is_error,
            "id": self.id,
        }
        event.update({name: value for name, value in optional.items() if value is not None})
        return event


@dataclass(frozen=True, slots=True)
class Trace:
    """The client's account of one attempt."""

    answer: str | None = None
    events: Sequence[TraceEvent] = ()
    servers: Sequence[str] = ()
    """The labels of the servers the client was given."""
    evidence: TraceEvidence = "structured"
    usage: Mapping[str, JsonValue] | None = field(default=None)
    outside: Sequence[str] = ()
    """The client's own tools that stayed on and go round the proxy, by name."""
    recovered: Sequence[JsonObject] = ()
    """Errors of the model's API that the client got over by itself, in order."""
    notes: Sequence[str] = ()
    """What is not known exactly of what such a client does, for people."""

    @property
    def tool_calls(self) -> list[TraceEvent]:
        """The tool calls, in order."""
        return [event for event in self.events if event.kind == "tool_call"]

    def to_json(self) -> dict[str, object]:
        """Write the trace as stored runs hold it."""
        stored: dict[str, object] = {
            "answer": self.answer,
            "events": [event.to_json() for event in self.events],
            "servers": list(self.servers),
            "evidence": self.evidence,
        }
        if self.usage is not None:
            stored["usage"] = self.usage
        if self.outside:
            stored["builtinTools"] = list(self.outside)
        if self.recovered:
            stored["recoveredErrors"] = [dict(one) for one in self.recovered]
        if self.notes:
            stored["notes"] = list(self.notes)
        return stored
