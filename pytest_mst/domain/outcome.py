"""What our own reads brought after a live attempt, kept: it can be graded again from that."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.stored_field import (
    Stored,
    integer_field,
    object_field,
    optional_object_field,
    optional_text_field,
    text_field,
)

OUTCOME_GRADER = "outcome"
"""The name of the grader of outcome checks. It reads nothing: what it grades is read when the
attempt ends, and is not there any more afterwards."""


@dataclass(frozen=True, slots=True)
class OutcomeReading:
    """The last read for one outcome check, through our own connection."""

    server: str
    """The server's label."""
    tool: str
    arguments: JsonObject
    """As sent."""
    result: JsonObject | None = None
    """The raw `tools/call` result; `None` where there was none."""
    error: str | None = None
    """Why there was no result."""
    tries: int = 1
    """How often it was read."""
    waited_ms: int = 0
    """From the first read to the end of the last."""

    def to_json(self) -> dict[str, object]:
        """Write the reading as stored trials hold it; absent fields are left out."""
        stored: dict[str, object] = {
            "server": self.server,
            "tool": self.tool,
            "arguments": self.arguments,
            "tries": self.tries,
            "waitedMs": self.waited_ms,
        }
        if self.result is not None:
            stored["result"] = self.result
        if self.error is not None:
            stored["error"] = self.error
        return stored


def outcome_reading_from_json(stored: Stored) -> OutcomeReading:
    """Read a stored reading back; fields that are not known are ignored.

    Raises:
        ValueError: a field is missing or has a wrong type.

    """
    return OutcomeReading(
        server=text_field(stored, "server"),
        tool=text_field(stored, "tool"),
        arguments=object_field(stored, "arguments"),
        result=optional_object_field(stored, "result"),
        error=optional_text_field(stored, "error"),
        tries=integer_field(stored, "tries", 1),
        waited_ms=max(0, integer_field(stored, "waitedMs", 0)),
    )
