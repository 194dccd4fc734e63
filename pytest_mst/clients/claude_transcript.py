"""What Claude Code says of one attempt: its `stream-json` lines, as a trace and an ending.

Every decision is by typed fields, as version 2.1 has them. `subtype` is `success` for failures of
the API too, and the exit status is no better: `is_error`, `terminal_reason`, `api_error_status`,
`stop_reason` and the `error` of the last assistant line are what counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.program.account import record_in
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.trace import EventKind, TraceEvent
from pytest_mst.domain.usage import Usage

SYNTHETIC = "<synthetic>"
"""The model that Claude Code names for messages of its own."""
MCP_PREFIX = "mcp__"

_KINDS: Mapping[str, EventKind] = {
    "Agent": "subagent",
    "Bash": "command",
    "Skill": "skill",
    "Task": "subagent",
    "ToolSearch": "tool_search",
}
"""What its own tools are, where they are more than a tool."""
_RAW = (
    "subtype", "is_error", "api_error_status", "terminal_reason", "stop_reason", "num_turns",
    "errors", "permission_denials",
)  # fmt: skip
"""The fields of the result that are kept for people."""
_RETRY = ("attempt", "max_retries", "retry_delay_ms", "error_status", "error")
"""What is kept of an error of the API that it asked again after."""


@dataclass(slots=True)
class Transcript:
    """The lines so far, written into a trace as they come."""

    log: TraceLog
    names: Mapping[str, str]
    """The labels of the servers, by the names that the client knows them by."""
    error: str | None = None
    """What the last message of Claude Code's own says went wrong, as a code."""
    failing: tuple[str | None, int | None] | None = None
    """The code and the HTTP status of what it asks the API again for, just now."""
    result: Mapping[str, Any] | None = None
    """Its final record."""
    servers: Mapping[str, str] = field(default_factory=dict)
    """The state of each server when it started, by label."""
    begun: bool = False
    """Whether it said that it started."""
    _at: dict[str, int] = field(default_factory=dict)
    """Where the call of an id is among the events."""
    _retried: list[JsonObject] = field(default_factory=list)
    """Errors of the API that it has not got over yet."""
    _messages: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """What each of the model's messages used, by id."""

    def take(self, line: str) -> None:
        """Take one line; what is no JSON object is not the client's account and left out."""
        read = record_in(line)
        if read is None:
            return
        match read.get("type"), read.get("subtype"):
            case "system", "init":
                self._init(read)
            case "system", "api_retry":
                self._retry(read)
            case "assistant", _:
                self._assistant(read)
            case "user", _:
                self._results(read)
            case "result", _:
                self._end(read)
            case _:
                pass

    @property
    def replies(self) -> int:
        """How many messages the model itself has sent."""
        return len(self._messages)

    @property
    def raw(self) -> JsonObject:
        """What the final record says of the ending, as it says it."""
        fields = {} if self.result is None else self.result
        found = {name: fields[name] for name in _RAW if fields.get(name) not in (None, [])}
        servers = {"mcp_servers": dict(self.servers)} if self.servers else {}
        return {**found, **({"error": self.error} if self.error else {}), **servers}

    @property
    def not_connected(self) -> tuple[str, ...]:
        """The labels of the servers that it says it was not connected to when it started."""
        return tuple(label for label, state in self.servers.items() if state != "connected")

    @property
    def denied(self) -> tuple[str, ...]:
        """The tools of servers whose calls it did not permit."""
        denials = _objects((self.result or {}).get("permission_denials"))
        names = [str(one.get("tool_name")) for one in denials]
        return tuple(dict.fromkeys(name for name in names if name.startswith(MCP_PREFIX)))

    @property
    def usage(self) -> Usage:
        """What it took, as it reports it; as far as it came where there is no final record."""
        result = self.result or {}
        of_models = result.get("modelUsage")
        if isinstance(of_models, Mapping) and of_models:
            used = [_renamed(one) for one in of_models.values() if isinstance(one, Mapping)]
        elif isinstance(result.get("usage"), Mapping):
            used = [result["usage"]]
        else:
            used = list(self._messages.values())
        cost = result.get("total_cost_usd")
        has_cost = isinstance(cost, int | float) and not isinstance(cost, bool) and cost > 0
        read, written = (_total(used, f"cache_{one}_input_tokens") for one in _CACHES)
        fresh = _total(used, "input_tokens")
        return Usage(
            requests=self.replies or None,
            input_tokens=None if fresh is None else fresh + (read or 0) + (written or 0),
            output_tokens=_total(used, "output_tokens"),
            cache_read_tokens=read,
            cache_write_tokens=written,
            cost_usd=float(cost) if has_cost and cost is not None else None,
            cost_source="reported" if has_cost else None,
            model_ms=_whole(result.get("duration_api_ms")),
        )

    def _init(self, line: Mapping[str, Any]) -> None:
        self.begun = True
        for one in _objects(line.get("mcp_servers")):
            label = self.names.get(str(one.get("name")))
            if label is not None:
                self.servers = {**self.servers, label: str(one.get("status"))}
        tools = line.get("tools")
        for name in tools if isinstance(tools, list) else []:
            if isinstance(name, str) and not name.startswith(MCP_PREFIX):
                self.log.outside.append(name)

    def _retry(self, line: Mapping[str, Any]) -> None:
        """Take note of an error of the API that it asks again after."""
        self._retried.append({name: line[name] for name in _RETRY if line.get(name) is not None})
        self.failing = (_text(line.get("error")), _whole(line.get("error_status")))

    def _assistant(self, line: Mapping[str, Any]) -> None:
        message = line.get("message")
        if not isinstance(message, Mapping):
            return
        if message.get("model") == SYNTHETIC:
            self.error = _text(line.get("error"))
            return
        used = message.get("usage")
        self.error, self.failing = None, None
        self.log.recovered.extend(self._retried)
        self._retried.clear()
        self._messages[str(message.get("id"))] = used if isinstance(used, Mapping) else {}
        texts = []
        for block in _objects(message.get("content")):
            if block.get("type") == "tool_use":
                self._call(block)
            elif block.get("type") == "text":
                texts.append(str(block.get("text", "")))
        if texts:
            self.log.answer = "".join(texts)

    def _call(self, block: Mapping[str, Any]) -> None:
        full, given = str(block.get("name")), block.get("input")
        server, name = self._split(full)
        key = str(block.get("id"))
        self._at[key] = len(self.log.events)
        self.log.events.append(
            TraceEvent(
                name=name,
                kind="tool_call" if server is not None else _KINDS.get(full, "tool_call"),
                source="mcp" if full.startswith(MCP_PREFIX) else "builtin",
                server=server,
                arguments=given if isinstance(given, Mapping) else {},
                id=key,
            )
        )

    def _split(self, full: str) -> tuple[str | None, str]:
        """Return the server's label and the tool's name."""
        fitting = [one for one in self.names if full.startswith(f"{MCP_PREFIX}{one}__")]
        if not fitting:
            return None, full
        longest = max(fitting, key=len)
        return self.names[longest], full.removeprefix(f"{MCP_PREFIX}{longest}__")

    def _results(self, line: Mapping[str, Any]) -> None:
        message = line.get("message")
        if not isinstance(message, Mapping):
            return
        for block in _objects(message.get("content")):
            at = self._at.get(str(block.get("tool_use_id")))
            if block.get("type") == "tool_result" and at is not None:
                self._answered(at, block)

    def _answered(self, at: int, block: Mapping[str, Any]) -> None:
        content, called = block.get("content"), self.log.events[at]
        is_error = block.get("is_error") is True
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self.log.events[at] = TraceEvent(
            name=called.name,
            kind=called.kind,
            source=called.source,
            server=called.server,
            arguments=called.arguments,
            output={"content": blocks or [], **({"isError": True} if is_error else {})},
            is_error=is_error,
            id=called.id,
        )

    def _end(self, line: Mapping[str, Any]) -> None:
        self.result = line
        if line.get("is_error") is not True and isinstance(line.get("result"), str):
            self.log.answer = line["result"]


_CACHES = ("read", "creation")


def _renamed(used: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what one model used, with the names that its API has."""
    return {
        "input_tokens": used.get("inputTokens"),
        "output_tokens": used.get("outputTokens"),
        "cache_read_input_tokens": used.get("cacheReadInputTokens"),
        "cache_creation_input_tokens": used.get("cacheCreationInputTokens"),
    }


def _total(used: Sequence[Mapping[str, Any]], name: str) -> int | None:
    known = [value for one in used if (value := _whole(one.get(name))) is not None]
    return sum(known) if known else None


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return round(value)


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
