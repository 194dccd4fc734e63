"""What Gemini CLI says of one attempt: its `stream-json` lines, as a trace.

The lines are those of version 0.61. They name no server and no reason: which tool of which server
a call was of is known from the names that we gave the servers, and why the model stopped from the
recording of its requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.program.account import record_in
from pytest_mst.clients.program.servers import plain_names
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.trace import EventKind, TraceEvent
from pytest_mst.domain.usage import Usage

Tools: TypeAlias = Mapping[str, tuple[str, str]]
"""The label of the server and the server's own name of each tool, by Gemini CLI's name for it."""

MCP_PREFIX = "mcp_"
_NAME_LIMIT_CHARS = 63
_KEPT_CHARS = 30
"""Of a longer name it keeps so much of both ends."""
_KINDS: Mapping[str, EventKind] = {
    "activate_skill": "skill",
    "invoke_agent": "subagent",
    "run_shell_command": "command",
}
"""What its own tools are, where they are more than a tool."""


def server_names(labels: Iterable[str]) -> dict[str, str]:
    """Return a name for each server, by label.

    Gemini CLI puts server and tool together by one underscore, and begins them by `mcp_` where
    they do not: so no name of ours has an underscore, and none is `mcp`.
    """
    own = list(labels)
    plain = {label: re.sub(r"_", "-", name) for label, name in plain_names(own).items()}
    names: dict[str, str] = {}
    for label in own:
        stem = "mcp-server" if plain[label] == "mcp" else plain[label]
        name, number = stem, 2
        while name in names.values():
            name, number = f"{stem}-{number}", number + 1
        names[label] = name
    return names


def tool_name(server: str, tool: str) -> str:
    """Return what Gemini CLI calls a tool of a server's."""
    full = f"{server}_{tool}"
    full = full if full.startswith(MCP_PREFIX) else f"{MCP_PREFIX}{full}"
    full = re.sub(r"[^a-zA-Z0-9_\-.:]", "_", full)
    if len(full) > _NAME_LIMIT_CHARS:
        full = f"{full[:_KEPT_CHARS]}...{full[-_KEPT_CHARS:]}"
    return full


@dataclass(slots=True)
class Transcript:
    """The lines so far, written into a trace as they come."""

    log: TraceLog
    tools: Tools
    names: Mapping[str, str] = field(default_factory=dict)
    """The labels of the servers, by the names that it knows them by."""
    result: Mapping[str, Any] | None = None
    """Its final record."""
    rounds: int = 0
    """How many answers of the model asked for tools."""
    severity: str | None = None
    """Of what it said went wrong, since the last result of a tool."""
    says: list[str] = field(default_factory=list)
    """What it said went wrong, for people."""
    _at: dict[str, int] = field(default_factory=dict)
    """Where the call of an id is among the events."""
    _calling: bool = False
    """Whether the last line of a call was the call, and not its result."""
    _text: str = ""
    """What the model said since it last asked for a tool."""

    def take(self, line: str) -> None:
        """Take one line; what is no JSON object is not the client's account and left out."""
        read = record_in(line)
        if read is None:
            return
        match read.get("type"), read.get("role"):
            case "message", "assistant":
                self._says(read)
            case "tool_use", _:
                self._call(read)
            case "tool_result", _:
                self._answered(read)
            case "error", _:
                self.severity = str(read.get("severity"))
                self.says.append(str(read.get("message")))
            case "result", _:
                self.result = read
            case _:
                pass

    @property
    def spoke(self) -> bool:
        """Whether the model has said something since the last result of a tool."""
        return bool(self._text.strip())

    @property
    def raw(self) -> JsonObject:
        """What the final record says of the ending, as it says it."""
        fields = {} if self.result is None else self.result
        found = {name: fields[name] for name in ("status", "error") if name in fields}
        return {**found, **({"errors": list(self.says)} if self.says else {})}

    @property
    def usage(self) -> Usage:
        """What it took, as it reports it at its end."""
        stats = (self.result or {}).get("stats")
        counts = stats if isinstance(stats, Mapping) else {}
        return Usage(
            input_tokens=_whole(counts.get("input_tokens")),
            output_tokens=_whole(counts.get("output_tokens")),
            cache_read_tokens=_whole(counts.get("cached")),
        )

    def _says(self, line: Mapping[str, Any]) -> None:
        text = line.get("content")
        if isinstance(text, str):
            self._text += text
            self.log.answer = self._text

    def _call(self, line: Mapping[str, Any]) -> None:
        full, given = str(line.get("tool_name")), line.get("parameters")
        server, name = self._split(full)
        self._at[str(line.get("tool_id"))] = len(self.log.events)
        self.rounds += 0 if self._calling else 1
        self._calling, self._text = True, ""
        self.log.events.append(
            TraceEvent(
                name=name,
                kind="tool_call" if server is not None else _KINDS.get(full, "tool_call"),
                source="mcp" if full.startswith(MCP_PREFIX) else "builtin",
                server=server,
                arguments=given if isinstance(given, Mapping) else {},
            )
        )

    def _split(self, full: str) -> tuple[str | None, str]:
        """Return the server's label and the tool's name."""
        found = self.tools.get(full)
        if found is not None:
            return found
        for name, label in self.names.items():
            if full.startswith(f"{MCP_PREFIX}{name}_"):
                return label, full.removeprefix(f"{MCP_PREFIX}{name}_")
        return None, full

    def _answered(self, line: Mapping[str, Any]) -> None:
        self._calling, self.severity = False, None
        at = self._at.get(str(line.get("tool_id")))
        if at is None:
            return
        error, text = line.get("error"), line.get("output")
        is_error = line.get("status") != "success" or isinstance(error, Mapping)
        if not isinstance(text, str):
            text = error.get("message") if isinstance(error, Mapping) else None
        blocks = [{"type": "text", "text": text}] if isinstance(text, str) else []
        output: JsonObject = {"content": blocks, **({"isError": True} if is_error else {})}
        self.log.events[at] = replace(self.log.events[at], output=output, is_error=is_error)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
