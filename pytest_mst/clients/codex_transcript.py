"""What Codex says of one attempt: its lines as they come, as a trace, and how its turn ended.

The lines of `codex exec --json` have numbers of their own for calls (`item_1`), and of an error
the words only. The model's ids of the calls and the type of the error are in the session's file,
see `codex_rollout`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.program.account import record_in
from pytest_mst.domain.trace import EventKind, TraceEvent
from pytest_mst.domain.usage import Usage

TurnEnd: TypeAlias = Literal["completed", "failed"]

OF_RESOURCES = frozenset({"list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"})
"""Tools of Codex's own that it reports as calls of a server's."""

_BUILTIN: Mapping[str, tuple[str, EventKind]] = {
    "collab_tool_call": ("collab", "subagent"),
    "command_execution": ("shell", "command"),
    "file_change": ("apply_patch", "tool_call"),
    "web_search": ("web_search", "tool_call"),
}
"""The items that are uses of Codex's own tools: the tool, and what it is."""
_NO_WORD_OF_THE_MODEL = frozenset({"error"})
"""Items that Codex makes by itself, before the model has said anything."""


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call of a server's tool as somebody else saw it, with the model's own id of it."""

    id: str
    server: str
    """The server's label."""
    tool: str
    arguments: object


@dataclass(slots=True)
class Transcript:
    """The lines so far, written into a trace as they come."""

    log: TraceLog
    names: Mapping[str, str]
    """The labels of the servers, by the names that the client knows them by."""
    thread: str | None = None
    """The id of its session; `None` as long as it has not said that it started."""
    end: TurnEnd | None = None
    """What its final record says; `None` where there is none."""
    words: str | None = None
    """What it says of its failure, for people."""
    replied: bool = False
    """Whether the model has said or called anything."""
    usage: Usage = field(default_factory=Usage)
    """What it took, as its final record says; that of a turn that failed says nothing."""
    _at: dict[str, int] = field(default_factory=dict)
    """Where the call of an item is among the events."""

    def take(self, line: str) -> None:
        """Take one line; what is no JSON object is not the client's account and left out."""
        read = record_in(line)
        if read is None:
            return
        match read.get("type"):
            case "thread.started":
                self.thread = _text(read.get("thread_id"))
            case "item.started" | "item.updated" | "item.completed":
                item = read.get("item")
                if isinstance(item, Mapping):
                    self._item(item, whole=read["type"] == "item.completed")
            case "turn.completed":
                self.end = "completed"
                self.usage = usage_of(read.get("usage"))
            case "turn.failed":
                self.end = "failed"
                said = read.get("error")
                self.words = _text(said.get("message")) if isinstance(said, Mapping) else None
            case _:  # `error` also stands for what it gets over, so that it says nothing
                pass

    def join(self, calls: Sequence[KnownCall]) -> None:
        """Give the calls in the trace the ids that somebody else knows them by.

        Server, tool and arguments say which is which; of calls that are the same in all of these,
        the first is the first.
        """
        left: dict[str, list[str]] = {}
        taken = {event.id for event in self.log.events}
        for call in calls:
            if call.id not in taken:
                left.setdefault(_key(call.server, call.tool, call.arguments), []).append(call.id)
        for at in self._at.values():
            event = self.log.events[at]
            if event.id is None and event.server is not None:
                ids = left.get(_key(event.server, event.name, event.arguments))
                if ids:
                    self.log.events[at] = replace(event, id=ids.pop(0))

    def _item(self, item: Mapping[str, Any], *, whole: bool) -> None:
        kind = str(item.get("type"))
        if kind not in _NO_WORD_OF_THE_MODEL:
            self.replied = True
        if kind == "mcp_tool_call":
            self._put(item, self._call(item, whole=whole))
        elif kind in _BUILTIN:
            self._put(item, _own(item, *_BUILTIN[kind], whole=whole))
        elif kind == "agent_message" and isinstance(item.get("text"), str):
            self.log.answer = item["text"]

    def _put(self, item: Mapping[str, Any], event: TraceEvent) -> None:
        key = str(item.get("id"))
        if key in self._at:
            self.log.events[self._at[key]] = event
        else:
            self._at[key] = len(self.log.events)
            self.log.events.append(event)

    def _call(self, item: Mapping[str, Any], *, whole: bool) -> TraceEvent:
        name, given = str(item.get("tool")), item.get("arguments")
        is_own = name in OF_RESOURCES
        result, error = item.get("result"), item.get("error")
        is_error = item.get("status") == "failed" or error is not None
        return TraceEvent(
            name=name,
            source="builtin" if is_own else "mcp",
            server=None if is_own else self.names.get(str(item.get("server"))),
            arguments=given if isinstance(given, Mapping) else {},
            output=_output(result, error, is_error=is_error) if whole else None,
            is_error=is_error if whole else None,
        )


def usage_of(used: object) -> Usage:
    """Return what an account of tokens says, as Codex writes it."""
    if not isinstance(used, Mapping):
        return Usage()
    return Usage(
        input_tokens=_whole(used.get("input_tokens")),
        output_tokens=_whole(used.get("output_tokens")),
        cache_read_tokens=_whole(used.get("cached_input_tokens")),
        cache_write_tokens=_whole(used.get("cache_write_input_tokens")),
    )


def _output(result: object, error: object, *, is_error: bool) -> dict[str, Any]:
    flag = {"isError": True} if is_error else {}
    if isinstance(result, Mapping):
        structured = result.get("structured_content")
        more = {} if structured is None else {"structuredContent": structured}
        return {"content": result.get("content") or [], **more, **flag}
    words = error.get("message") if isinstance(error, Mapping) else None
    return {"content": [{"type": "text", "text": words}] if words else [], **flag}


def _own(item: Mapping[str, Any], name: str, kind: EventKind, *, whole: bool) -> TraceEvent:
    known = ("command", "query", "changes", "prompt")
    output = item.get("aggregated_output")
    return TraceEvent(
        name=name,
        kind=kind,
        source="builtin",
        arguments={key: item[key] for key in known if item.get(key) is not None},
        output=output if isinstance(output, str) else None,
        is_error=item.get("status") == "failed" if whole else None,
    )


def _key(server: str, tool: str, arguments: object) -> str:
    return json.dumps([server, tool, arguments or {}], sort_keys=True, default=str)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
