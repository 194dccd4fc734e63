"""What becomes of a call: forwarded, answered by us, or refused. Pure: it asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from pytest_mst.domain.dispatch import CallReading, read_call, with_parsed_text
from pytest_mst.domain.json_value import JsonObject, json_type
from pytest_mst.domain.write import Refusal, ServerTools, WriteMode
from pytest_mst.proxy.json_rpc import INVALID_PARAMS
from pytest_mst.proxy.planned_mark import is_marked
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
    """Whether it is known beforehand that it only reads, so that asking twice does no harm."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The call is a write: recorded, answered by us."""

    reply: Reply
    arguments: JsonObject
    """What the reply is filled in from."""


@dataclass(frozen=True, slots=True)
class Withhold:
    """It cannot be read what a dispatcher is to run, and nobody else would stop it."""

    tool: str
    problem: str

    def result(self) -> dict[str, Any]:
        """Answer that the call was not made, and why."""
        text = f"{self.tool} was NOT called: what it is to run cannot be read: {self.problem}"
        return {"content": [{"type": "text", "text": text}], "isError": True}


@dataclass(frozen=True, slots=True)
class RefuseUnknown:
    """The server lists no such tool."""

    tool: str


@dataclass(frozen=True, slots=True)
class RefuseArguments:
    """The arguments do not fit the `inputSchema` of the tool, or of a dispatcher's target."""

    tool: str
    problems: tuple[str, ...]

    def result(self) -> dict[str, Any]:
        """Answer as a server would: a failed call that names what is wrong."""
        text = f"Invalid arguments for tool {self.tool}: " + "; ".join(self.problems)
        return {"content": [{"type": "text", "text": text}], "isError": True}


Decision: TypeAlias = Forward | Stop | Withhold | RefuseUnknown | RefuseArguments


@dataclass(frozen=True, slots=True)
class Recorded:
    """How a call that was not stopped stands in the write record."""

    refused: Refusal | None = None
    unclassified: bool = False


class ServerPolicy:
    """Decides the calls to one server, as it lists its tools, in one write mode."""

    def __init__(
        self,
        tools: ServerTools,
        mode: WriteMode,
        templates: Mapping[str, Any],
        *,
        planned_write_key: str | None = None,
    ) -> None:
        """Check the templates of simulated replies; the rest is compiled when first needed.

        Args:
            tools: the server's tools, and which of them are reads.
            mode: what happens to its writes.
            templates: replies to simulated writes, by tool.
            planned_write_key: by which the server marks the writes that it stopped itself.

        Raises:
            ReplyError: a template cannot fit its tool's `outputSchema`.

        """
        self.tools = tools
        self.mode = mode
        self._templates = templates if mode is WriteMode.SIMULATED else {}
        self._planned_write_key = planned_write_key
        self._schemas: dict[str, CompiledSchema] = {}
        self._replies: dict[str, Reply] = {}
        for name in self._templates:
            if name in tools.tools and not tools.is_read(name):
                self._template(name).check()

    def read(self, tool: str, arguments: object) -> CallReading:
        """Read what a call is for, and whether it may be let through as a read."""
        return read_call(self.tools, tool, arguments)

    def decide(self, tool: str, arguments: object) -> Decision:
        """Say what becomes of a call.

        Args:
            tool: the name that was called.
            arguments: as they were sent; `None` where none were.

        Raises:
            ReplyError: no valid reply can be made.

        """
        call = self.read(tool, arguments)
        if call.is_read:
            return Forward(is_read=True)
        match self.mode:
            case WriteMode.UNGUARDED | WriteMode.SERVER_PLANNED:
                return Forward(is_read=False)
            case WriteMode.LIVE:
                if call.unparsed is not None:
                    return Withhold(tool, call.unparsed)
                return Forward(is_read=False)
            case WriteMode.READ_ONLY | WriteMode.PLANNED | WriteMode.SIMULATED:
                refused = self._refuse(call, tool, arguments)
                return self._stop(call, tool, arguments) if refused is None else refused
            case _:
                assert_never(self.mode)

    def recorded(
        self, call: CallReading, tool: str, arguments: object, reply: Mapping[str, Any]
    ) -> Recorded | None:
        """Say how a call that was not stopped goes into the record; `None` for a read.

        What its server marks as a write is one, whatever the tool says of itself. Where the server
        plans writes itself, nothing but the mark says what a dispatched call was.

        Args:
            call: what it is for.
            tool: the name that was called.
            arguments: as they were sent.
            reply: what came back: a result, or `{"error": ...}` for a protocol error.

        """
        if self._is_marked(reply):
            return Recorded()
        planned_by_server = self.mode is WriteMode.SERVER_PLANNED
        if call.is_read and not (planned_by_server and call.targets):
            return None
        if planned_by_server or self.mode is WriteMode.UNGUARDED:
            return Recorded(unclassified=True)
        return Recorded(refused=self._refused_for(call, tool, arguments, reply))

    def _is_marked(self, reply: Mapping[str, Any]) -> bool:
        key = self._planned_write_key
        return key is not None and is_marked(reply, key)

    def _refused_for(
        self, call: CallReading, tool: str, arguments: object, reply: Mapping[str, Any]
    ) -> Refusal | None:
        """Tell for what a call was, or would have been, refused.

        A call that reached the server was refused only where the server says so.
        """
        if self.mode is WriteMode.LIVE and not _is_refusal(reply):
            return None
        match self._refuse(call, tool, arguments):
            case RefuseUnknown():
                return "unknown-tool"
            case RefuseArguments():
                return "invalid-arguments"
            case None:
                return None

    def _refuse(
        self, call: CallReading, tool: str, arguments: object
    ) -> RefuseUnknown | RefuseArguments | None:
        """Refuse what the server itself would."""
        if tool not in self.tools.tools:
            return RefuseUnknown(tool)
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            problem = f"they must be an object and are of type {json_type(given)}"
            return RefuseArguments(tool, (problem,))
        problems = self._problems(tool, given)
        if problems:
            return RefuseArguments(tool, tuple(problems))
        for target in call.listed:
            problems = self._schema(target.tool).problems(target.arguments)
            if problems:
                return RefuseArguments(target.tool, tuple(problems))
        return None

    def _problems(self, tool: str, arguments: JsonObject) -> list[str]:
        """Say how a call's own arguments do not fit its tool."""
        schema = self._schema(tool)
        problems = schema.problems(arguments)
        dispatcher = self.tools.dispatchers.get(tool)
        if not problems or dispatcher is None:
            return problems
        meant = with_parsed_text(dispatcher, arguments)
        return [] if not schema.problems(meant) else problems

    def _schema(self, name: str) -> CompiledSchema:
        known = self._schemas.get(name)
        if known is None:
            known = CompiledSchema(self.tools.tools[name].get("inputSchema"))
            self._schemas[name] = known
        return known

    def _stop(self, call: CallReading, tool: str, arguments: object) -> Stop:
        given = arguments if isinstance(arguments, Mapping) else {}
        if self._has_template_of_target(call, tool):
            (target,) = call.targets
            template = self._templates[target.tool]
            return Stop(TemplateReply(target.tool, template, self._output(tool)), target.arguments)
        known = self._replies.get(tool)
        if known is None:
            known = self._replies[tool] = self._reply(tool)
        return Stop(known, given)

    def _has_template_of_target(self, call: CallReading, tool: str) -> bool:
        """Tell whether a dispatcher's call is answered as its target is.

        The dispatcher's own template goes before, and so does its `outputSchema`, which the
        template of another tool was not written for.
        """
        return (
            len(call.targets) == 1
            and call.targets[0].server is None
            and call.targets[0].tool in self._templates
            and tool not in self._templates
            and not self._output(tool).checked
        )

    def _reply(self, name: str) -> Reply:
        if self.mode is not WriteMode.SIMULATED:
            return PlannedReply(self.tools.label, name, self._output(name))
        if name in self._templates:
            return self._template(name)
        return SimulatedReply(self._output(name))

    def _template(self, name: str) -> TemplateReply:
        return TemplateReply(name, self._templates[name], self._output(name))

    def _output(self, name: str) -> OutputSchema:
        return OutputSchema(self.tools.tools[name])


def _is_refusal(reply: Mapping[str, Any]) -> bool:
    error = reply.get("error")
    if isinstance(error, Mapping):
        return error.get("code") == INVALID_PARAMS
    return reply.get("isError") is True


__all__ = [
    "Decision",
    "Forward",
    "Recorded",
    "RefuseArguments",
    "RefuseUnknown",
    "ReplyError",
    "ServerPolicy",
    "Stop",
    "Withhold",
]
