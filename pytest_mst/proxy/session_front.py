"""One client's MCP session, raw JSON through, and the way in for clients in our process."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.gate import Gate
from pytest_mst.proxy.handshake import HANDSHAKE_REVISIONS, LATEST_HANDSHAKE
from pytest_mst.proxy.json_rpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_REVISION,
    OnProgress,
    Params,
    RpcError,
    meta_of,
)
from pytest_mst.proxy.policy import ReplyError
from pytest_mst.proxy.pool import MODERN
from pytest_mst.proxy.sdk_import import import_sdk
from pytest_mst.proxy.seen import Seen
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream import Upstream

if TYPE_CHECKING:
    from pytest_mst.proxy.boundary import Boundary
    from pytest_mst.proxy.sdk import Inbound

TransportStreams: TypeAlias = tuple[Any, Any]
"""The read and write streams of the MCP SDK."""
GateMaker: TypeAlias = Callable[["Boundary", Gate, str], Gate]
"""Makes a gate to the same server in another era."""

_JOIN_ID_KEYS = ("claudecode/toolUseId", "callId")
"""Where clients put their own id of a call, in `_meta`."""
_ASKS_BACK = ("sampling", "elicitation", "roots")
"""Capabilities by which a server asks the client; nothing ties such a question to one of several
clients, so that they need a connection of their own."""
_READS = {
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "tools/list",
}
_PASSED_ON = {*_READS, "tools/call", "logging/setLevel", "resources/subscribe"} | {
    "resources/unsubscribe",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
}
"""Requests that the protocol knows. What another one does nobody can tell, so that it reaches a
server whose writes nobody stops, and no other."""
_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"

_STREAM_GRACE_S = 1.0
"""How long a question waits for a request to go with: over HTTP, what goes with none is lost where
the client does not listen yet, as it cannot before its handshake is answered."""

_listens = itertools.count(1)


@asynccontextmanager
async def session_transport(
    make_session: Callable[[Gate], Session], gate: Gate
) -> AsyncIterator[TransportStreams]:
    """Serve one client's session in memory, and give its end of the streams."""
    await import_sdk()
    from pytest_mst.proxy.sdk import RawServer, memory_streams

    session = make_session(gate)
    server = RawServer(session.answer, session.hear)
    handshake_only = not gate.upstream.agreement.is_modern
    try:
        async with memory_streams() as (client, ours), anyio.create_task_group() as tasks:

            async def serve() -> None:
                await server.serve(*ours, handshake_only=handshake_only)

            tasks.start_soon(serve)
            try:
                yield client
            finally:
                with anyio.CancelScope(shield=True):
                    await client[1].aclose()
                    await ours[1].aclose()
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await session.close()


class Session:
    """One client's session with one server, whichever way it came in."""

    def __init__(self, boundary: Boundary, gate: Gate, gate_in_era: GateMaker) -> None:
        self._boundary = boundary
        self._direct = gate
        self._gate_in_era = gate_in_era
        self._gates: dict[str, Gate] = {}
        self._handshake_era: str | None = None
        self._heard: set[Upstream] = set()
        self._in_flight: list[Inbound] = []
        self._next = anyio.Event()
        """Set when the next request comes in."""
        self._standing: Inbound | None = None
        self._listens: dict[str, Inbound] = {}
        self._opening = anyio.Lock()

    async def close(self) -> None:
        """Leave the connections that were opened for this session."""
        for upstream in self._heard:
            upstream.listeners.discard(self._from_server)
            if upstream.answerer == self._to_client:
                upstream.answerer = None
        for gate in self._gates.values():
            if gate is not self._direct:
                await gate.close()

    async def answer(self, inbound: Inbound) -> Mapping[str, Any]:
        """Answer one request of the client's.

        Raises:
            RpcError: with an error.

        """
        try:
            return await self._answer(inbound)
        except ServerGoneError as error:  # with the server's last words, whatever is in them
            data = None if error.data is None else self._redact(str(error.data))
            raise RpcError(error.code, self._redact(error.message), data) from error
        except ToolCallError as error:
            raise RpcError(error.code, error.message, error.data) from error
        except (InfrastructureError, ServerUnavailableError, ReplyError) as error:
            raise RpcError(INTERNAL_ERROR, self._redact(str(error))) from error

    @property
    def _seen(self) -> Seen:
        return self._boundary.seen(self._direct.label)

    def _redact(self, words: str) -> str:
        return self._direct.server.spec.redact(words)

    async def hear(self, inbound: Inbound) -> None:
        """Take one notification of the client's."""
        match inbound.method:
            case "notifications/initialized":
                self._standing = inbound
                for upstream in self._heard:
                    upstream.client_is_there()
            case "notifications/cancelled" | "notifications/progress":
                return  # the dispatcher has cancelled the request, and with it ours
            case "notifications/roots/list_changed":
                gate = self._gates.get(self._handshake_era or "")
                if gate is not None and gate.is_private:
                    await gate.upstream.tell(inbound.method, inbound.params)
            case _:
                return  # nobody answers for it, and it could be a call in disguise

    async def _answer(self, inbound: Inbound) -> Mapping[str, Any]:
        self._boundary.check_open()
        if inbound.method == "ping" and not inbound.is_modern:
            return {}
        if inbound.method == "initialize":
            hello = await self._initialize(inbound.params or {})
            self._seen.connected = True
            return hello
        if inbound.is_modern and not self._direct.upstream.agreement.is_modern:
            raise _older_era_only(inbound)
        if inbound.is_modern:
            gate = await self._gate(MODERN)
            self._seen.connected = True
            if inbound.method == "server/discover":
                return gate.upstream.agreement.hello
        elif self._handshake_era is not None:
            gate = await self._gate(self._handshake_era)
        elif inbound.method == "server/discover":
            raise RpcError(METHOD_NOT_FOUND, "Method not found", inbound.method)
        else:
            raise RpcError(INVALID_PARAMS, "Received a request before initialize")
        return await self._pass_on(inbound, gate)

    async def _initialize(self, params: Params) -> Mapping[str, Any]:
        asked = params.get("protocolVersion")
        era = asked if asked in HANDSHAKE_REVISIONS else LATEST_HANDSHAKE
        capabilities = params.get("capabilities")
        asks_back = isinstance(capabilities, Mapping) and not capabilities.keys().isdisjoint(
            _ASKS_BACK
        )
        gate = await self._gate(era, params if asks_back else None)
        self._handshake_era = era
        return gate.upstream.agreement.hello

    async def _gate(self, era: str, handshake: Params | None = None) -> Gate:
        """Give the way to the server in an era.

        Where it is open nothing is waited for: a write that has come in is in the record before
        its client can take it back by leaving.
        """
        gate = self._gates.get(era) or await self._opened(era, handshake)
        if self._boundary.lost is None and not gate.upstream.alive:
            await gate.revive()
        self._hear_from(gate)
        return gate

    async def _opened(self, era: str, handshake: Params | None) -> Gate:
        async with self._opening:
            gate = self._gates.get(era)
            if gate is None:
                agreement = self._direct.upstream.agreement
                direct_era = MODERN if agreement.is_modern else agreement.revision
                if era == direct_era and handshake is None:
                    gate = self._direct
                else:
                    gate = self._gate_in_era(self._boundary, self._direct, era)
                    if handshake is not None:
                        gate.keep_private(handshake)
                    await gate.open()
                self._gates[era] = gate
            return gate

    def _hear_from(self, gate: Gate) -> None:
        upstream = gate.upstream
        if upstream not in self._heard:
            self._heard.add(upstream)
            upstream.listeners.add(self._from_server)
            if gate.is_private:
                upstream.answerer = self._to_client
            if self._standing is not None:
                upstream.client_is_there()

    async def _pass_on(self, inbound: Inbound, gate: Gate) -> Mapping[str, Any]:
        if self._boundary.lost is not None:
            raise self._boundary.lost
        params = inbound.params or {}
        meta = meta_of(params)
        progress = _progress_to(inbound, meta.get("progressToken"))
        takes_logs = gate.upstream.log_takers if _LOG_LEVEL_KEY in meta else []
        self._in_flight.append(inbound)
        self._next.set()
        self._next = anyio.Event()
        takes_logs.append(inbound)
        try:
            if inbound.method == "tools/call":
                stamp = {"resultType": "complete"} if inbound.is_modern else {}
                return await self._boundary.call(
                    gate, params, _join_id(meta), stamp=stamp, on_progress=progress
                )
            unguarded = gate.server.mode is WriteMode.UNGUARDED
            if inbound.method not in _PASSED_ON and not unguarded:
                raise RpcError(METHOD_NOT_FOUND, "Method not found", inbound.method)
            if inbound.method == "subscriptions/listen":
                return await self._listen(inbound, gate)
            result = await gate.forward(
                inbound.method,
                inbound.params,
                timeout_s=gate.server.spec.request_timeout_s,
                may_repeat=inbound.method in _READS,
                on_progress=progress,
            )
            self._seen.listed |= inbound.method == "tools/list"
            return result
        finally:
            self._in_flight.remove(inbound)
            takes_logs.remove(inbound)

    async def _listen(self, inbound: Inbound, gate: Gate) -> Mapping[str, Any]:
        key = f"mst-listen-{next(_listens)}"
        self._listens[key] = inbound
        try:
            result = await gate.forward(
                inbound.method, inbound.params, timeout_s=None, may_repeat=False, request_id=key
            )
        finally:
            del self._listens[key]
        return _with_subscription(result, inbound)

    async def _from_server(self, method: str, params: Params | None) -> None:
        """Pass a notification of the server's on to the client it is for."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            key = meta_of(params).get(_SUBSCRIPTION_KEY)
            if key is not None:
                listening = self._listens.get(str(key))
                if listening is not None:
                    given = _with_subscription(params or {}, listening)
                    await listening.notify(method, given, related=True)
            elif method == "notifications/message":
                await self._log(method, params)
            elif self._standing is not None:
                await self._standing.notify(method, params, related=False)

    async def _log(self, method: str, params: Params | None) -> None:
        """Pass a log line on, where it is certain whose it is."""
        for upstream in self._heard:
            alone = len(upstream.listeners) == 1
            if self._standing is not None and alone:
                one = self._in_flight[0] if len(self._in_flight) == 1 else None
                await (one or self._standing).notify(method, params, related=one is not None)
            elif len(upstream.log_takers) == 1 and upstream.log_takers[0] in self._in_flight:
                taker: Any = upstream.log_takers[0]
                await taker.notify(method, params, related=True)

    async def _to_client(self, method: str, params: Params | None) -> Mapping[str, Any]:
        """Ask the client what the server asks; of its calls, for the one that came last."""
        if not self._in_flight and self._standing is not None and self._standing.is_http:
            with anyio.move_on_after(_STREAM_GRACE_S):
                await self._next.wait()
        asked = self._in_flight[-1] if self._in_flight else self._standing
        if asked is None:
            raise RpcError(METHOD_NOT_FOUND, "There is no client to ask", method)
        return await asked.ask(method, params)


def _older_era_only(inbound: Inbound) -> RpcError:
    """Say what a server of the older era says of the newer one."""
    if inbound.method == "server/discover":
        return RpcError(METHOD_NOT_FOUND, "Method not found", inbound.method)
    supported = {"supported": list(HANDSHAKE_REVISIONS), "requested": inbound.revision}
    return RpcError(UNSUPPORTED_REVISION, "Unsupported protocol version", supported)


def _progress_to(inbound: Inbound, token: object) -> OnProgress | None:
    if token is None:
        return None

    async def progress(params: Params) -> None:
        given = {**params, "progressToken": token}
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await inbound.notify("notifications/progress", given, related=True)

    return progress


def _join_id(meta: Mapping[str, Any]) -> str | None:
    for key in _JOIN_ID_KEYS:
        value = meta.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return None


def _with_subscription(params: Params, listening: Inbound) -> dict[str, Any]:
    meta = {**meta_of(params), _SUBSCRIPTION_KEY: listening.context.request_id}
    return {**params, "_meta": meta}
