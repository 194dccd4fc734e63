"""The trace of a command, from what its output says and what the boundary saw."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.command_output import Output, OutputReader
from pytest_mst.clients.program.servers import plain_names
from pytest_mst.clients.program.true_names import with_true_names
from pytest_mst.domain.json_value import JsonObject, JsonValue
from pytest_mst.domain.trace import TraceEvent

_JOINTS = ("__", "_", ".", "/", "-", ":")
"""What clients put between the name of a server and that of its tool."""
_PREFIXES = ("", "mcp__", "mcp_", "mcp.")


def fill_trace(request: ClientRequest, reader: OutputReader, output: Output) -> None:
    """Put what a command's output says into the trace.

    Where the output is not said to name its tool calls, they are known from the boundary alone.
    """
    trace = request.trace
    trace.answer = output.answer
    if reader.calls is None:
        trace.evidence = "observed"
        return
    names = _names(request)
    results = {_text(one["id"]): one for one in output.results if one.get("id") is not None}
    trace.events.extend(_event(one, results, names) for one in output.calls)
    with_true_names(request)
    trace.outside.extend(one.name for one in trace.events if one.source == "builtin")


def _event(
    call: Mapping[str, JsonValue],
    results: Mapping[str, Mapping[str, JsonValue]],
    names: Mapping[str, tuple[str, str]],
) -> TraceEvent:
    said = _text(call.get("name"))
    call_id = None if call.get("id") is None else _text(call["id"])
    result = results.get(call_id or "", {})
    failed = result.get("isError")
    named = call.get("server")
    # the server that the program names counts, where that has such a tool
    key = f"{named}/{said}" if isinstance(named, str) else said
    server, tool = names.get(key) or names.get(said) or (None, said)
    return TraceEvent(
        tool,
        source="builtin" if server is None else "mcp",
        server=server,
        arguments=_arguments(call.get("arguments")),
        output=result.get("output"),
        is_error=failed if isinstance(failed, bool) else None,
        id=call_id,
    )


def _names(request: ClientRequest) -> dict[str, tuple[str, str]]:
    """Return the tool that is meant by each name that a client may know one by.

    A tool's own name means one only where no two servers have it.
    """
    found: dict[str, tuple[str, str]] = {}
    bare: dict[str, list[tuple[str, str]]] = {}
    plain = plain_names(request.tools.servers)
    for label in request.tools.servers:
        for listed in request.tools.listed(label):
            tool = (label, str(listed["name"]))
            bare.setdefault(tool[1], []).append(tool)
            for name in _joined(label, plain[label], tool[1]):
                found.setdefault(name, tool)
    for name, tools in bare.items():
        if len(tools) == 1:
            found[name] = tools[0]
    return found


def _joined(label: str, plain: str, tool: str) -> Iterator[str]:
    for server in dict.fromkeys((label, plain)):
        for joint in _JOINTS:
            for prefix in _PREFIXES:
                yield f"{prefix}{server}{joint}{tool}"


def _arguments(value: JsonValue) -> JsonObject | None:
    """Return a call's arguments: an object, or one that is written in a text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, Mapping) else None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
