"""What becomes of a call: forwarded, answered by us, or refused. Pure: it asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_mst.domain.json_value import json_type
from pytest_mst.domain.write import ServerTools, WriteMode
from pytest_mst.proxy.replies import (
    OutputSchema,
    PlannedReply,
    ReplyError,
    SimulatedReply,
    TemplateReply,
)
from pytest_mst.proxy.schema import CompiledSchema

Reply: TypeAlias = PlannedReply | SimulatedReply | TemplateReply


@dataclass(frozen=True, slots=True)
class Forward:
    """The call goes to the server."""

    is_read: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """The call is a write: recorded, answered by us."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class RefuseUnknown:
    """The server lists no such tool."""

    tool: str


@dataclass(frozen=True, slots=True)
class RefuseArguments:
    """The arguments do not fit the tool's `inputSchema`."""

    tool: str
    problems: tuple[str, ...]

    def result(self) -> dict[str, Any]:
        """Answer as a server would: a failed call that names what is wrong."""
        text = f"Invalid arguments for tool {self.tool}: " + "; ".join(self.problems)
        return {"content": [{"type": "text", "text": text}], "isError": True}


Decision: TypeAlias = Forward | Stop | RefuseUnknown | RefuseArguments


@dataclass(frozen=True, slots=True)
class _WriteTool:
    """What is compiled once for each tool that writes."""

    arguments: CompiledSchema
    reply: Reply


class ServerPolicy:
    """Decides the calls to one server, as it lists its tools, in one write mode."""

    def __init__(self, tools: ServerTools, mode: WriteMode, templates: Mapping[str, Any]) -> None:
        """Check the templates of simulated replies; the rest is compiled when first needed.

        Args:
            tools: the server's tools, and which of them are reads.
            mode: what happens to its writes.
            templates: replies to simulated writes, by tool.

        Raises:
            ReplyError: a template cannot fit its tool's `outputSchema`.

        """
        self.tools = tools
        self.mode = mode
        self._templates = templates if mode is WriteMode.SIMULATED else {}
        self._compiled: dict[str, _WriteTool] = {}
        for name in self._templates:
            if name in tools.tools and not tools.is_read(name):
                self._template(name).check()

    def decide(self, tool: str, arguments: object) -> Decision:
        """Say what becomes of a call.

        Args:
            tool: the name that was called.
            arguments: as they were sent; `None` where none were.

        Raises:
            ReplyError: no valid reply can be made.

        """
        is_read = self.tools.is_read(tool)
        if self.mode is WriteMode.UNGUARDED or is_read:
            return Forward(is_read)
        if tool not in self.tools.tools:
            return RefuseUnknown(tool)
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            problem = f"they must be an object and are of type {json_type(given)}"
            return RefuseArguments(tool, (problem,))
        write = self._write_tool(tool)
        problems = write.arguments.problems(given)
        return RefuseArguments(tool, tuple(problems)) if problems else Stop(write.reply)

    def _write_tool(self, name: str) -> _WriteTool:
        known = self._compiled.get(name)
        if known is None:
            schema = self.tools.tools[name].get("inputSchema")
            known = _WriteTool(CompiledSchema(schema), self._reply(name))
            self._compiled[name] = known
        return known

    def _reply(self, name: str) -> Reply:
        if self.mode is not WriteMode.SIMULATED:
            return PlannedReply(self.tools.label, name, OutputSchema(self.tools.tools[name]))
        if name in self._templates:
            return self._template(name)
        return SimulatedReply(OutputSchema(self.tools.tools[name]))

    def _template(self, name: str) -> TemplateReply:
        return TemplateReply(name, self._templates[name], OutputSchema(self.tools.tools[name]))


__all__ = [
    "Decision",
    "Forward",
    "RefuseArguments",
    "RefuseUnknown",
    "ReplyError",
    "ServerPolicy",
    "Stop",
]
