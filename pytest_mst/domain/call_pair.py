"""A call as the trace tells of it, beside a call as the write record has it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.json_value import JsonObject, JsonValue
from pytest_mst.domain.stored_field import (
    Stored,
    integer_field,
    object_field,
    optional_text_field,
    text_field,
)


@dataclass(frozen=True, slots=True)
class CallSide:
    """A call as it was sent, or as it is told."""

    server: str | None
    """The server's label; `None` where the trace does not name it."""
    tool: str
    arguments: JsonObject

    def to_json(self) -> dict[str, object]:
        """Write the call as stored trials hold it."""
        return {"server": self.server, "tool": self.tool, "arguments": self.arguments}


@dataclass(frozen=True, slots=True)
class CallDifference:
    """The first place where two calls differ."""

    path: str
    """Such as `arguments.items[2].id`; `tool`, `server` or `id` where the difference is there."""
    in_trace: JsonValue = None
    in_record: JsonValue = None
    only_in: str | None = None
    """`trace` or `record` where the other side has nothing in this place."""

    def to_json(self) -> dict[str, object]:
        """Write the difference as stored trials hold it; what is not there has no key."""
        stored: dict[str, object] = {"path": self.path}
        if self.only_in != "record":
            stored["inTrace"] = self.in_trace
        if self.only_in != "trace":
            stored["inRecord"] = self.in_record
        return stored


@dataclass(frozen=True, slots=True)
class CallPair:
    """Two calls side by side, one of the trace and one of the record."""

    in_trace: CallSide
    in_record: CallSide
    difference: CallDifference | None
    """`None` for one call that the two sides do not have equally often."""
    times_in_trace: int = 1
    """How often the trace has the very call that it has in this pair."""
    times_in_record: int = 1
    """How often the record has the very call that it has in this pair."""
    joined: bool = False
    """Whether they are matched, by the client's own id of the call, and so not left over."""

    def to_json(self) -> dict[str, object]:
        """Write the pair as stored trials hold it."""
        stored: dict[str, object] = {
            "inTrace": self.in_trace.to_json(),
            "inRecord": self.in_record.to_json(),
        }
        if self.difference is not None:
            stored["differAt"] = self.difference.to_json()
        stored["timesInTrace"] = self.times_in_trace
        stored["timesInRecord"] = self.times_in_record
        if self.joined:
            stored["joined"] = True
        return stored


def side_from_json(stored: Stored) -> CallSide:
    """Read a stored call.

    Raises:
        ValueError: a field is missing or has a wrong type.

    """
    return CallSide(
        server=optional_text_field(stored, "server"),
        tool=text_field(stored, "tool"),
        arguments=object_field(stored, "arguments"),
    )


def pair_from_json(stored: Stored) -> CallPair:
    """Read a stored pair; fields that are not known are ignored.

    Raises:
        ValueError: a field is missing or has a wrong type.

    """
    return CallPair(
        in_trace=side_from_json(object_field(stored, "inTrace")),
        in_record=side_from_json(object_field(stored, "inRecord")),
        difference=_difference(object_field(stored, "differAt")) if "differAt" in stored else None,
        times_in_trace=integer_field(stored, "timesInTrace", 1),
        times_in_record=integer_field(stored, "timesInRecord", 1),
        joined=stored.get("joined") is True,
    )


def _difference(stored: Stored) -> CallDifference:
    only_in = None
    if "inTrace" not in stored:
        only_in = "record"
    elif "inRecord" not in stored:
        only_in = "trace"
    return CallDifference(
        path=text_field(stored, "path"),
        in_trace=stored.get("inTrace"),
        in_record=stored.get("inRecord"),
        only_in=only_in,
    )
