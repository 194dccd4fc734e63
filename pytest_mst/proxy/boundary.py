"""One attempt's boundary: every call goes through it, no write gets past it unrecorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import anyio

from pytest_mst.domain.dispatch import CallReading
from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.json_value import JsonObject, snapshot
from pytest_mst.domain.tool_call import CallGuard, ToolCallError
from pytest_mst.domain.write import Refusal, ServerTools, WriteEntry, WriteMode
from pytest_mst.proxy.gate import Gate
from pytest_mst.proxy.json_rpc import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    OnProgress,
    Params,
)
from pytest_mst.proxy.policy import (
    Forward,
    Recorded,
    RefuseArguments,
    RefuseUnknown,
    ReplyError,
    ServerPolicy,
    Stop,
    Withhold,
)
from pytest_mst.proxy.record import CallRecord, ObservedCall, UnrecordedError
from pytest_mst.proxy.replies import ReplyFacts
from pytest_mst.proxy.seen import Seen
from pytest_mst.proxy.seen_out import seen_out

if TYPE_CHECKING:
    from pytest_mst.proxy.fronts import Fronts
    from pytest_mst.proxy.relay_front import RelayCommand
    from pytest_mst.proxy.session_front import TransportStreams

_LIVE_WRITE_GRACE_S = 5.0
"""How long the answer to a live write is waited for once its attempt is cut off."""


class Boundary:
    """The servers of one attempt, as its client sees them. Implements `ToolCaller`."""

    def __init__(self, record: CallRecord, trial_id: str) -> None:
        self._record = record
        self._trial_id = trial_id
        self._gates: dict[str, Gate] = {}
        self._fronts: Fronts | None = None
        self._passed_on = 0
        self._unanswered: dict[int, _Call] = {}
        self._closed = False
        self.lost: InfrastructureError | None = None
        """Why the attempt cannot go on, where it cannot."""
        self.guard: CallGuard | None = None
        """Asked before each call is taken, whichever way it comes in."""
        self._seen: defaultdict[str, Seen] = defaultdict(Seen)

    def attach(self, gates: Mapping[str, Gate], fronts: Fronts) -> None:
        """Set the open gates by label, and the ways in for clients that want a session."""
        self._gates = dict(gates)
        self._fronts = fronts

    def close(self) -> None:
        """Take no call any more: the attempt has ended, whatever its client still has running.

        What is under way and may have written is in the record from now on.
        """
        self._closed = True
        for call in self._unanswered.values():
            with suppress(UnrecordedError):
                self._account_for(call, _ended())

    def check_open(self) -> None:
        """Make sure that the attempt has not ended.

        Raises:
            ToolCallError: it has.

        """
        if self._closed:
            raise _ended()

    @property
    def servers(self) -> tuple[str, ...]:
        """The labels of the servers there are."""
        return tuple(self._gates)

    @property
    def entries(self) -> list[WriteEntry]:
        """The write record, in order."""
        return self._record.entries

    @property
    def calls(self) -> list[ObservedCall]:
        """Every tool call that reached the boundary, in order."""
        return self._record.calls

    @property
    def taken(self) -> int:
        """How many calls it took, those of clients that are connected themselves too."""
        return len(self._record.calls) + self._passed_on

    def seen(self, label: str) -> Seen:
        """Say what came to the boundary for one server: what its client cannot make up."""
        return self._seen[label]

    def listed(self, server: str) -> Sequence[Mapping[str, Any]]:
        """Return the tools of a server as it lists them just now; see `ToolCaller`.

        Raises:
            KeyError: there is no server of that label.

        """
        self.seen(server).listed = True
        return tuple(self._gate(server).policy.tools.tools.values())

    async def tools_now(self, label: str) -> ServerTools:
        """List a server's tools once more, over the attempt's connection.

        Raises:
            ServerUnavailableError: it cannot be listed.

        """
        return await self._gates[label].list_anew()

    def lose(self, error: InfrastructureError) -> None:
        """Take note that the attempt cannot go on; the first reason counts."""
        if self.lost is None:
            self.lost = error

    def transport(self, label: str) -> AbstractAsyncContextManager[TransportStreams]:
        """Give an in-memory MCP transport to one server, for `mcp.Client(transport)`.

        Raises:
            KeyError: there is no server of that label.

        """
        gate = self._gate(label)
        self.seen(label).way_in = True
        return self._ways_in.transport(gate)

    async def url(self, label: str) -> str:
        """Give one server's address, for clients that are programs of their own.

        It speaks streamable HTTP on loopback until the attempt ends. Whoever knows it is let in:
        it is for the client alone, and no part of anything that is logged or stored.

        Raises:
            KeyError: there is no server of that label.
            RuntimeError: the attempt has ended.

        """
        gate = self._gate(label)
        self.seen(label).way_in = True
        return await self._ways_in.url(gate)

    async def command(self, label: str) -> RelayCommand:
        """Give a command that is one server, for clients that can only start their servers.

        Raises:
            KeyError: there is no server of that label.
            RuntimeError: the attempt has ended.

        """
        gate = self._gate(label)
        self.seen(label).way_in = True
        return await self._ways_in.command(gate)

    def _gate(self, label: str) -> Gate:
        gate = self._gates.get(label)
        if gate is None:
            raise KeyError(self._no_server(label))
        return gate

    def _no_server(self, label: str) -> str:
        return f"Unknown server: {label}; there are: {', '.join(self._gates) or 'none'}"

    @property
    def _ways_in(self) -> Fronts:
        if self._fronts is None:
            msg = "the boundary is not open"
            raise RuntimeError(msg)
        return self._fronts

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: JsonObject | None,
        *,
        join_id: str | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool and return the raw `tools/call` result; see `ToolCaller`.

        Raises:
            ToolCallError: the call got a protocol error.
            InfrastructureError: the attempt cannot go on.

        """
        gate = self._gates.get(server)
        if gate is None:
            await self._admit()
            raise ToolCallError(INVALID_PARAMS, self._no_server(server))
        params: dict[str, Any] = {"name": tool}
        if arguments is not None:
            params["arguments"] = snapshot(arguments)
        return await self.call(gate, params, join_id, own=True)

    async def call(
        self,
        gate: Gate,
        params: Params,
        join_id: str | None,
        *,
        own: bool = False,
        stamp: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
    ) -> Mapping[str, Any]:
        """Take one `tools/call`, whichever way it came in.

        Args:
            gate: the way to the server.
            params: the request's parameters, forwarded as they are.
            join_id: the client's own id of the call.
            own: the parameters are the boundary's own and lack the envelope of the era.
            stamp: what the era adds to results that are ours.
            on_progress: gets the parameters of progress notifications.

        Raises:
            ToolCallError: the call got a protocol error.
            InfrastructureError: the attempt cannot go on.

        """
        await self._admit()
        seen = self.seen(gate.label)
        seen.connected, seen.calls = True, seen.calls + 1
        tool = params.get("name")
        if not isinstance(tool, str):
            raise ToolCallError(INVALID_PARAMS, "tools/call names no tool")
        if gate.server.direct:  # as if the client were connected itself: nobody looks at it
            self._passed_on += 1
            return await gate.pass_on(params, own=own, on_progress=on_progress)
        seq = self._record.begin(gate.label, tool, params.get("arguments"), join_id)
        call = _Call(gate, seq, tool, params, own, stamp or {}, on_progress, gate.policy)
        self._unanswered[seq] = call
        try:
            result = await self._answer(call)
        except UnrecordedError as error:
            self.lose(error)
            self._finish(call, _as_error(error))
            raise
        except (ToolCallError, InfrastructureError) as error:
            self._finish(call, _as_error(error))
            self._account_for(call, error)
            raise
        except anyio.get_cancelled_exc_class():
            if call.is_recorded:
                raise
            nobody = ToolCallError(INTERNAL_ERROR, "nobody waited for the answer")
            with suppress(UnrecordedError):
                self._account_for(call, nobody)
            raise
        finally:
            del self._unanswered[seq]
        self._finish(call, result)
        return result

    async def _admit(self) -> None:
        if self.lost is not None:
            raise self.lost
        self.check_open()
        if self.guard is not None:
            await self.guard()

    async def _answer(self, call: _Call) -> Mapping[str, Any]:
        gate = call.gate
        try:
            decision = await gate.decide(call.tool, call.arguments)
            call.decided_by(gate.policy)
            self.check_open()  # what was decided too late is not done any more
            match decision:
                case Forward(is_read=is_read):
                    return await self._forward(call, may_repeat=is_read)
                case Stop(reply=reply, arguments=given):
                    made = reply.make(ReplyFacts(given, self._trial_id))
                    return self._answer_in_place(call, made)
                case Withhold():
                    return self._answer_in_place(call, decision.result())
                case RefuseArguments():
                    return self._answer_in_place(
                        call, decision.result(), refused="invalid-arguments"
                    )
                case RefuseUnknown():
                    raise ToolCallError(INVALID_PARAMS, f"Unknown tool: {call.tool}")
                case _:
                    assert_never(decision)
        except ReplyError as error:
            reason = f"server {gate.label!r}: {error}"
            failure = InfrastructureError(Broke.SETUP, reason, retryable=False, scope=Scope.VARIANT)
            self.lose(failure)
            raise failure from error

    def _answer_in_place(
        self, call: _Call, result: Mapping[str, Any], *, refused: Refusal | None = None
    ) -> Mapping[str, Any]:
        """Give an answer of our own, once the call is in the record."""
        stamped = {**call.stamp, **result}
        self._write(call, stamped, Recorded(refused=refused))
        return stamped

    async def _forward(self, call: _Call, *, may_repeat: bool) -> Mapping[str, Any]:
        """Forward a call; one that is, or may be, a write is in the record before its answer.

        A live write that is under way when its attempt is cut off is waited for a little: what
        comes after the cleanup would stay.
        """
        forward = partial(self._forward_once, call, may_repeat=may_repeat)
        if may_repeat or call.gate.server.mode is not WriteMode.LIVE:
            return await forward()

        def grace_s() -> float:
            return _LIVE_WRITE_GRACE_S if call.own or self._closed else 0.0

        return await seen_out(forward, grace_s)

    async def _forward_once(self, call: _Call, *, may_repeat: bool) -> Mapping[str, Any]:
        result = await call.gate.forward(
            "tools/call",
            call.forwarded,
            timeout_s=call.gate.server.spec.call_timeout_s,
            may_repeat=may_repeat,
            on_progress=call.on_progress,
        )
        self.check_open()
        self._record_as_seen(call, result)
        return result

    def _account_for(self, call: _Call, error: ToolCallError | InfrastructureError) -> None:
        """Record a call that got an error, or no answer, where it may have been a write."""
        try:
            self._record_as_seen(call, _as_error(error))
        except UnrecordedError as unrecorded:
            self.lose(unrecorded)
            raise

    def _record_as_seen(self, call: _Call, reply: Mapping[str, Any]) -> None:
        recorded = call.policy.recorded(call.reading, call.tool, call.arguments, reply)
        if recorded is not None and not call.is_recorded:
            self._write(call, reply, recorded)

    def _write(self, call: _Call, reply: Mapping[str, Any], as_what: Recorded) -> None:
        reading = call.reading
        call.is_recorded = True
        self._record.write(
            call.seq,
            reply,
            call.gate.server.mode,
            targets=reading.writes or reading.targets,
            unparsed=reading.unparsed is not None,
            refused=as_what.refused,
            unclassified=as_what.unclassified,
        )
        call.is_recorded = True

    def _finish(self, call: _Call, result: Mapping[str, Any]) -> None:
        self._record.finish(call.seq, result, is_read=call.reading.is_read)


@dataclass(slots=True)
class _Call:
    """One `tools/call` on its way."""

    gate: Gate
    seq: int
    tool: str
    params: Params
    own: bool
    stamp: Mapping[str, Any]
    on_progress: OnProgress | None
    policy: ServerPolicy
    """What decided the call, whatever the server lists meanwhile."""
    is_recorded: bool = False
    """Whether it is in the write record, or was to be."""
    _reading: CallReading | None = None

    def decided_by(self, policy: ServerPolicy) -> None:
        """Take note of what decided the call."""
        self.policy, self._reading = policy, None

    @property
    def reading(self) -> CallReading:
        """What the call is for."""
        if self._reading is None:
            self._reading = self.policy.read(self.tool, self.arguments)
        return self._reading

    @property
    def arguments(self) -> object:
        """As they were sent, whatever they are; `None` where none were."""
        return self.params.get("arguments")

    @property
    def forwarded(self) -> Params | None:
        """The parameters as the server gets them."""
        return self.gate.upstream.agreement.params(self.params) if self.own else self.params


def _ended() -> ToolCallError:
    return ToolCallError(CONNECTION_CLOSED, "The attempt has ended")


def _as_error(error: ToolCallError | InfrastructureError) -> dict[str, Any]:
    if isinstance(error, InfrastructureError):
        return {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
    detail = {} if error.data is None else {"data": error.data}
    return {"error": {"code": error.code, "message": error.message, **detail}}
