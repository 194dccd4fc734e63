"""One attempt's boundary: every call goes through it, no write gets past it unrecorded."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

import anyio

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.tool_call import CallGuard, ToolCallError
from pytest_mst.domain.write import WriteEntry, WriteMode
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
    RefuseArguments,
    RefuseUnknown,
    ReplyError,
    Stop,
)
from pytest_mst.proxy.record import CallRecord, ObservedCall, UnrecordedError
from pytest_mst.proxy.replies import ReplyFacts

if TYPE_CHECKING:
    from pytest_mst.proxy.session_front import Front, TransportStreams


class Boundary:
    """The servers of one attempt, as its client sees them. Implements `ToolCaller`."""

    def __init__(self, record: CallRecord, trial_id: str) -> None:
        self._record = record
        self._trial_id = trial_id
        self._gates: dict[str, Gate] = {}
        self._front: Front | None = None
        self.lost: InfrastructureError | None = None
        """Why the attempt cannot go on, where it cannot."""
        self.guard: CallGuard | None = None
        """Asked before each call is taken, whichever way it comes in."""

    def attach(self, gates: Mapping[str, Gate], front: Front) -> None:
        """Set the open gates by label, and what makes in-memory transports."""
        self._gates = dict(gates)
        self._front = front

    def close(self) -> None:
        """Take no call any more: the attempt has ended, whatever its client still has running."""
        self.guard = _refuse

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

    def lose(self, error: InfrastructureError) -> None:
        """Take note that the attempt cannot go on; the first reason counts."""
        if self.lost is None:
            self.lost = error

    def transport(self, label: str) -> AbstractAsyncContextManager[TransportStreams]:
        """Give an in-memory MCP transport to one server, for `mcp.Client(transport)`.

        Raises:
            KeyError: there is no server of that label.

        """
        if self._front is None:
            msg = "the boundary is not open"
            raise RuntimeError(msg)
        return self._front(self, self._gates[label])

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
            there = ", ".join(self._gates) or "none"
            msg = f"Unknown server: {server}; there are: {there}"
            raise ToolCallError(INVALID_PARAMS, msg)
        params: dict[str, Any] = {"name": tool}
        if arguments is not None:
            params["arguments"] = arguments
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
        tool = params.get("name")
        if not isinstance(tool, str):
            raise ToolCallError(INVALID_PARAMS, f"tools/call names no tool: {tool!r}")
        seq = self._record.begin(gate.label, tool, params.get("arguments"), join_id)
        call = _Call(gate, seq, tool, params, own, stamp or {}, on_progress)
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
        self._finish(call, result)
        return result

    async def _admit(self) -> None:
        if self.lost is not None:
            raise self.lost
        if self.guard is not None:
            await self.guard()

    async def _answer(self, call: _Call) -> Mapping[str, Any]:
        gate = call.gate
        try:
            decision = await gate.decide(call.tool, call.params.get("arguments"))
            match decision:
                case Forward(is_read=is_read):
                    return await (self._read(call) if is_read else self._let_through(call))
                case Stop(reply=reply):
                    given = self._record.calls[call.seq].arguments
                    made = reply.make(ReplyFacts(given, self._trial_id))
                    result = {**call.stamp, **made}
                    self._record.write(call.seq, result, gate.server.mode)
                    return result
                case RefuseArguments():
                    result = {**call.stamp, **decision.result()}
                    self._record.write(
                        call.seq, result, gate.server.mode, refused="invalid-arguments"
                    )
                    return result
                case RefuseUnknown():
                    raise ToolCallError(INVALID_PARAMS, f"Unknown tool: {call.tool}")
                case _:
                    assert_never(decision)
        except ReplyError as error:
            reason = f"server {gate.label!r}: {error}"
            failure = InfrastructureError(Broke.SETUP, reason, retryable=False, scope=Scope.VARIANT)
            self.lose(failure)
            raise failure from error

    async def _read(self, call: _Call) -> Mapping[str, Any]:
        return await call.gate.forward(
            "tools/call",
            call.forwarded,
            timeout_s=call.gate.server.spec.call_timeout_s,
            may_repeat=True,
            on_progress=call.on_progress,
        )

    async def _let_through(self, call: _Call) -> Mapping[str, Any]:
        """Forward a call that may write, where nobody guards; it is in the record either way."""
        try:
            result = await call.gate.forward(
                "tools/call",
                call.forwarded,
                timeout_s=call.gate.server.spec.call_timeout_s,
                may_repeat=False,
                on_progress=call.on_progress,
            )
        except anyio.get_cancelled_exc_class():
            nobody = ToolCallError(INTERNAL_ERROR, "nobody waited for the answer")
            with suppress(UnrecordedError):
                self._account_for(call, nobody)
            raise
        self._record.write(call.seq, result, call.gate.server.mode, unclassified=True)
        return result

    def _account_for(self, call: _Call, error: ToolCallError | InfrastructureError) -> None:
        """Record a call that got an error, where it may have been a write."""
        tools, mode = call.gate.policy.tools, call.gate.server.mode
        if tools.is_read(call.tool):
            return
        unguarded = mode is WriteMode.UNGUARDED
        unknown = call.tool not in tools.tools and not unguarded
        try:
            self._record.write(
                call.seq,
                _as_error(error),
                mode,
                refused="unknown-tool" if unknown else None,
                unclassified=unguarded,
            )
        except UnrecordedError as unrecorded:
            self.lose(unrecorded)
            raise

    def _finish(self, call: _Call, result: Mapping[str, Any]) -> None:
        is_read = call.gate.policy.tools.is_read(call.tool)
        self._record.finish(call.seq, result, is_read=is_read)


@dataclass(frozen=True, slots=True)
class _Call:
    """One `tools/call` on its way."""

    gate: Gate
    seq: int
    tool: str
    params: Params
    own: bool
    stamp: Mapping[str, Any]
    on_progress: OnProgress | None

    @property
    def forwarded(self) -> Params | None:
        """The parameters as the server gets them."""
        return self.gate.upstream.agreement.params(self.params) if self.own else self.params


async def _refuse() -> None:
    raise ToolCallError(CONNECTION_CLOSED, "The attempt has ended")


def _as_error(error: ToolCallError | InfrastructureError) -> dict[str, Any]:
    if isinstance(error, InfrastructureError):
        return {"error": {"code": INTERNAL_ERROR, "message": str(error)}}
    detail = {} if error.data is None else {"data": error.data}
    return {"error": {"code": error.code, "message": error.message, **detail}}
