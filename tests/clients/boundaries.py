"""A boundary that no server stands behind, and requests to act through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_mst.clients.client import ClientRequest, TraceLog
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.tool_call import CallGuard, ToolCallError


class Boundary:
    """Answers calls with the tool's name, and keeps what was called; implements `ToolCaller`."""

    def __init__(self) -> None:
        self.guard: CallGuard | None = None
        self.calls: list[tuple[str, str, JsonObject | None, str | None]] = []

    @property
    def servers(self) -> tuple[str, ...]:
        return ("chat",)

    def listed(self, server: str) -> Sequence[Mapping[str, Any]]:
        schema = {"type": "object", "properties": {"id": {"type": "string"}}}
        named = ("read", "post", "fail", "refuse", "odd")
        return [{"name": one, "description": f"to {one}", "inputSchema": schema} for one in named]

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: JsonObject | None,
        *,
        join_id: str | None = None,
    ) -> Mapping[str, Any]:
        if self.guard is not None:
            await self.guard()
        self.calls.append((server, tool, arguments, join_id))
        if tool == "refuse":
            raise ToolCallError(-32050, "not today")
        failed = {"isError": True} if tool == "fail" else {}
        extra = {"error": "a field of the tool's own"} if tool == "odd" else {}
        blocks = [{"type": "text", "text": f"{tool} said"}, {"type": "image"}]
        return {"content": blocks, **failed, **extra}

    @property
    def tools(self) -> list[str]:
        """The tools that were called, in order."""
        return [tool for _, tool, _, _ in self.calls]


def request(
    boundary: Boundary | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    log: TraceLog | None = None,
    **fields: Any,
) -> ClientRequest:
    given: dict[str, Any] = {
        "input": "do it",
        "trial": 0,
        "trial_id": "mstabc",
        "model": None,
        "options": options or {},
        "tools": boundary or Boundary(),
        "trace": log or TraceLog(("chat",)),
        **fields,
    }
    return ClientRequest(**given)


def call(tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Write a `call` step down."""
    given = {} if arguments is None else {"arguments": arguments}
    return {"call": {"server": "chat", "tool": tool, **given}}
