"""Writes: which calls are writes, the modes that say what becomes of them, and their record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from pytest_mst.domain.json_value import JsonObject, JsonValue
from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    integer_field,
    object_field,
    optional_object_field,
    optional_text_field,
    text_field,
)

if TYPE_CHECKING:
    from pytest_mst.domain.eval_config import Dispatcher, ServerBase

Refusal: TypeAlias = Literal["unknown-tool", "invalid-arguments"]
"""Why the server itself would have refused a call."""


LIVE_OPTION = "--allow-live-writes"
"""What a person gives leave with for servers in the write mode `live`."""


class WriteMode(StrEnum):
    """What happens to a server's writes."""

    READ_ONLY = "read-only"
    PLANNED = "planned"
    SIMULATED = "simulated"
    SERVER_PLANNED = "server-planned"
    LIVE = "live"
    UNGUARDED = "unguarded"


def hinted_read_only(tool: Mapping[str, object]) -> bool:
    """Tell whether a tool, as its server lists it, says that it only reads.

    Only a real boolean counts: `readOnlyHint` is exactly `true` and `destructiveHint` is not
    `true`. Everything else is a write (MCP 2025-11-25, ToolAnnotations: hints default to a
    tool that writes and destroys).
    """
    annotations = tool.get("annotations")
    if not isinstance(annotations, Mapping):
        return False
    return (
        annotations.get("readOnlyHint") is True and annotations.get("destructiveHint") is not True
    )


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The tools a server lists, all pages of them, and which of them are reads."""

    label: str
    tools: Mapping[str, Mapping[str, object]]
    """By name, as the server sent them."""
    read_only_tools: frozenset[str] = frozenset()
    """Reads by the eval config's word, though not annotated so."""
    always_write_tools: frozenset[str] = frozenset()
    """Writes by the eval config's word, though annotated as reads."""
    dispatchers: Mapping[str, Dispatcher] = field(default_factory=dict)
    """By tool: the tools that run other tools."""

    @classmethod
    def as_configured(
        cls, label: str, tools: Mapping[str, Mapping[str, object]], config: ServerBase
    ) -> ServerTools:
        """Take the tools as listed, with what the eval config says of them."""
        return cls(
            label=label,
            tools=tools,
            read_only_tools=frozenset(config.read_only_tools),
            always_write_tools=frozenset(config.always_write_tools),
            dispatchers=config.dispatchers,
        )

    def is_read(self, name: str) -> bool:
        """Tell whether every call to this tool is a read. What is not listed is a write.

        A dispatcher's own hints count for nothing; see `dispatch.read_call` for its calls.
        """
        tool = self.tools.get(name)
        if tool is None or name in self.always_write_tools or name in self.dispatchers:
            return False
        return name in self.read_only_tools or hinted_read_only(tool)

    @property
    def writes(self) -> tuple[str, ...]:
        """The names of the listed tools that are not reads, in the server's order."""
        return tuple(name for name in self.tools if not self.is_read(name))

    @property
    def unhinted(self) -> tuple[str, ...]:
        """The listed tools that are held because nothing says whether they read or write."""
        return tuple(
            name
            for name in self.writes
            if name not in self.always_write_tools
            and name not in self.dispatchers
            and not _declares(self.tools[name])
        )


def _declares(tool: Mapping[str, object]) -> bool:
    """Tell whether a tool says about itself that it writes."""
    annotations = tool.get("annotations")
    return isinstance(annotations, Mapping) and (
        isinstance(annotations.get("readOnlyHint"), bool)
        or isinstance(annotations.get("destructiveHint"), bool)
    )


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The tool that a dispatcher's call was really for, innermost."""

    tool: str
    arguments: JsonObject
    """As an object, whether it was sent as one or as JSON text."""
    server: str | None = None
    """As the call names it (`github:create_issue`); `None` where it names none."""


@dataclass(frozen=True, slots=True)
class WriteEntry:
    """One write that reached a boundary this project owns."""

    seq: int
    """0-based, in the order of this attempt's record."""
    call_seq: int
    """0-based number of the call among all calls of this attempt that reached the boundary."""
    time: str
    """ISO 8601, UTC."""
    server: str
    tool: str
    arguments: JsonObject
    """As sent; `{}` where the client sent none."""
    reply: JsonValue
    """What the client got: a `tools/call` result, or `{"error": ...}` for a protocol error."""
    mode: WriteMode
    target: WriteTarget | None = None
    """Of a dispatcher's call; a batch has an entry for each target that is not a read, all of the
    same `call_seq`."""
    unparsed: bool = False
    """Whether it is a dispatcher's call whose targets could not be read. It has no target,
    satisfies no expectation, and is a write too many where no other may be."""
    refused: Refusal | None = None
    """The server itself would have refused this call; it satisfies no expectation."""
    unclassified: bool = False
    """The call was forwarded and may have written; nobody can tell."""
    join_id: str | None = field(default=None)
    """The client's own id of the call, where it sends one."""

    @property
    def effective(self) -> tuple[str, str, JsonObject]:
        """Server, tool and arguments that expectations are matched against.

        The server is the one that the target names, and else the label that was called.
        """
        if self.target is None:
            return self.server, self.tool, self.arguments
        return self.target.server or self.server, self.target.tool, self.target.arguments

    def to_json(self) -> dict[str, object]:
        """Write the entry as a line of the stored write record holds it."""
        line: dict[str, object] = {
            "format": "mst.write/v1",
            "seq": self.seq,
            "callSeq": self.call_seq,
            "time": self.time,
            "server": self.server,
            "tool": self.tool,
            "arguments": self.arguments,
        }
        if self.target is not None:
            target: dict[str, object] = {
                "tool": self.target.tool,
                "arguments": self.target.arguments,
            }
            if self.target.server is not None:
                target["server"] = self.target.server
            line["target"] = target
        line["reply"] = self.reply
        line["mode"] = self.mode.value
        if self.refused is not None:
            line["refused"] = self.refused
        if self.unparsed:
            line["unparsed"] = True
        if self.unclassified:
            line["unclassified"] = True
        if self.join_id is not None:
            line["joinId"] = self.join_id
        return line


def unclassified_calls(entries: Iterable[WriteEntry]) -> int:
    """Count the calls that may have written, and nobody can tell; a batch is one call."""
    return len({entry.call_seq for entry in entries if entry.unclassified})


def write_from_json(stored: Stored) -> WriteEntry:
    """Read one line of a stored write record; fields that are not known are ignored.

    Raises:
        ValueError: a field is missing, has a wrong type, or is outside its closed set.

    """
    target = optional_object_field(stored, "target")
    return WriteEntry(
        seq=integer_field(stored, "seq"),
        call_seq=integer_field(stored, "callSeq"),
        time=text_field(stored, "time"),
        server=text_field(stored, "server"),
        tool=text_field(stored, "tool"),
        arguments=object_field(stored, "arguments"),
        reply=stored.get("reply"),
        mode=WriteMode(text_field(stored, "mode")),
        target=None if target is None else _target(target),
        refused=_refusal(stored.get("refused")),
        unparsed=stored.get("unparsed") is True,
        unclassified=stored.get("unclassified") is True,
        join_id=optional_text_field(stored, "joinId"),
    )


def _target(stored: Stored) -> WriteTarget:
    return WriteTarget(
        tool=text_field(stored, "tool"),
        arguments=object_field(stored, "arguments"),
        server=optional_text_field(stored, "server"),
    )


def _refusal(value: object) -> Refusal | None:
    match value:
        case None | "unknown-tool" | "invalid-arguments":
            return value
        case _:
            raise StoredFieldError(
                name="refused", found=value, expected="unknown-tool or invalid-arguments"
            )
