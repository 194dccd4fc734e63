"""The one place that touches the MCP SDK, its provisional parts above all.

Provisional in mcp 2.3, each covered by a contract test: `Server.middleware` and what a middleware
may return without calling on, `mcp.server.runner.serve_loop` and `serve_dual_era_loop`,
`MCPServer._lowlevel_server`, the headers of `ClientMessageMetadata`, `ServerSession._connection`
and what a connection keeps, the watcher that `sse_starlette` leaves in the event loop.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import anyio
import httpx2
import mcp_types as types
import sse_starlette.sse
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import serve_dual_era_loop, serve_loop
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import ClientMessageMetadata, ServerMessageMetadata, SessionMessage
from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticSerializationError, to_json

from pytest_mst.proxy.handshake import MODERN_REVISIONS, REVISION_KEY
from pytest_mst.proxy.json_rpc import INTERNAL_ERROR, Params, RpcError, meta_of
from pytest_mst.proxy.pipe import Message

Streams: TypeAlias = tuple[Any, Any]
"""A read and a write stream of `SessionMessage`s; the SDK's own types for them are private."""


def as_dict(item: SessionMessage | Exception) -> Message | None:
    """Take a message out of its model, untouched inside; `None` for what could not be read."""
    if isinstance(item, Exception):
        return None
    message = item.message
    plain: Message = {"jsonrpc": "2.0"}
    match message:
        case types.JSONRPCRequest():
            plain |= {"id": message.id, "method": message.method}
        case types.JSONRPCNotification():
            plain |= {"method": message.method}
        case types.JSONRPCResponse():
            return plain | {"id": message.id, "result": message.result}
        case types.JSONRPCError():
            error = message.error.model_dump(exclude_unset=True)
            return plain | {"id": message.id, "error": error}
    if message.params is not None:
        plain["params"] = message.params
    return plain


def as_session_message(message: Message, headers: dict[str, str] | None = None) -> SessionMessage:
    """Put a message into its model; `headers` are for transports that have some."""
    model: types.JSONRPCMessage
    if "method" not in message:
        kind = types.JSONRPCError if "error" in message else types.JSONRPCResponse
        model = kind.model_validate(message)
    elif "id" in message:
        model = types.JSONRPCRequest.model_validate(message)
    else:
        model = types.JSONRPCNotification.model_validate(message)
    return SessionMessage(model, ClientMessageMetadata(headers=headers) if headers else None)


def http_headers(
    message: Message, revision: str | None, tools: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Say outside of a message what streamable HTTP wants said there.

    Args:
        message: the message.
        revision: the revision that a handshake agreed on; the modern era says it in each message.
        tools: the server's tools by name, for those that repeat arguments in headers.

    """
    params = message.get("params") or {}
    named = meta_of(params).get(REVISION_KEY)
    stated = named if named in MODERN_REVISIONS else revision
    method = message.get("method")
    if stated is None or method is None or method == "initialize":
        return {}
    headers = {MCP_PROTOCOL_VERSION_HEADER: stated}
    if stated in MODERN_REVISIONS and "id" in message:
        headers[MCP_METHOD_HEADER] = method
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            schema = tools.get(name, {}).get("inputSchema") if method == "tools/call" else None
            arguments = params.get("arguments")
            if schema is not None and isinstance(arguments, Mapping):
                headers |= mcp_param_headers(x_mcp_header_map(schema), arguments)
    return headers


class _WatchedClient(httpx2.AsyncClient):
    """Tells of each response's status and of each request that got none."""

    def __init__(
        self, watch: Callable[[int | httpx2.TransportError], None], **options: Any
    ) -> None:
        super().__init__(**options)
        self._watch = watch

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            self._watch(error)
            raise
        self._watch(response.status_code)
        return response


_NOT_BY_PROXY: dict[str, None] = dict.fromkeys(
    ("all://localhost", "all://127.0.0.1", "all://[::1]")
)
"""What is on this machine is asked for directly, whatever proxy the environment names: that one
would not find it, and learn the tokens that the server is let in with."""


@asynccontextmanager
async def http_streams(
    url: str,
    headers: dict[str, str],
    connect_timeout_s: float,
    watch: Callable[[int | httpx2.TransportError], None],
) -> AsyncIterator[Streams]:
    """Open the SDK's streamable HTTP transport; waiting for answers is bounded by who asks."""
    timeout = httpx2.Timeout(None, connect=connect_timeout_s)
    client = _WatchedClient(watch, headers=headers, timeout=timeout, mounts=_NOT_BY_PROXY)
    async with client:
        transport = streamable_http_client(url, http_client=client, max_sse_event_size=None)
        async with transport as streams:
            yield streams


def low_level_server(candidate: object) -> Server[Any] | None:
    """Give the SDK's low-level server in an object; `None` where it is not a server."""
    match candidate:
        case MCPServer():
            return candidate._lowlevel_server
        case Server():
            return candidate
        case _:
            return None


async def run_server(server: Server[Any], read: Any, write: Any) -> None:
    """Serve one connection of a server object, in the era that its client opens with."""
    await server.run(read, write, server.create_initialization_options())


class _RawResult(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Raw:
    """Stands in for a typed message that the SDK dumps; nulls and unknown fields survive."""

    def __init__(self, method: str, params: Params | None) -> None:
        self.method = method
        self._params = params

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"method": self.method, "params": self._params}


_HALF_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False, slots=True)
class Inbound:
    """A request or a notification of a client's, raw, and the way back to that client."""

    method: str
    params: Params | None
    is_request: bool
    revision: str
    """The protocol revision of the client's connection."""
    context: ServerRequestContext[Any, Any]

    @property
    def is_modern(self) -> bool:
        """Whether it came in the era without a handshake."""
        return self.revision in MODERN_REVISIONS

    @property
    def is_http(self) -> bool:
        """Whether it came over HTTP, where each request has a stream of its own for answers."""
        return self.context.request is not None

    def answered(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Give a result as it can be sent to this client."""
        return dict(self._sendable(result))

    def refused(self, error: RpcError) -> MCPError:
        """Give an error as it can be sent to this client."""
        message, data = self._sendable([error.message, error.data])
        return MCPError(error.code, message, data)

    def _sendable(self, value: Any) -> Any:
        r"""Mend half surrogate pairs where the SDK would leave the request without an answer.

        Its HTTP server writes UTF-8, which cannot hold them, and no `\ud83d` for them.
        """
        if not self.is_http:
            return value
        try:
            to_json(value)
        except PydanticSerializationError:
            text = json.dumps(value, ensure_ascii=False)
            return json.loads(_HALF_PAIR.sub("\ufffd", text))
        return value

    async def notify(self, method: str, params: Params | None, *, related: bool) -> None:
        """Send the client a notification; `related` to this request, or standing alone."""
        raw: Any = _Raw(method, self._sendable(params))
        related_id = self.context.request_id if related else None
        await self.context.session.send_notification(raw, related_request_id=related_id)

    async def ask(self, method: str, params: Params | None) -> dict[str, Any]:
        """Ask the client something.

        Raises:
            RpcError: the client answered with an error, or cannot be asked.

        """
        raw: Any = _Raw(method, self._sendable(params))
        related = ServerMessageMetadata(related_request_id=self.context.request_id)
        try:
            result = await self.context.session.send_request(raw, _RawResult, metadata=related)
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from error
        except ValueError as error:
            raise RpcError(INTERNAL_ERROR, "The client's answer is not valid") from error
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise RpcError(INTERNAL_ERROR, "The client is gone") from error
        return result.model_dump()


class Answering(Protocol):
    """Whoever answers one client's session."""

    async def answer(self, inbound: Inbound) -> Mapping[str, Any]:
        """Answer a request with its result; raises `RpcError`."""
        ...

    async def hear(self, inbound: Inbound) -> None:
        """Take a notification."""
        ...

    async def close(self) -> None:
        """Leave what was opened for the session."""
        ...


class RawServer:
    """A server whose only handler answers every method with raw JSON."""

    def __init__(
        self,
        answer: Callable[[Inbound], Awaitable[Mapping[str, Any]]],
        hear: Callable[[Inbound], Awaitable[None]],
    ) -> None:
        """Build the server.

        Args:
            answer: answers a request with its result; raises `RpcError`.
            hear: takes a notification.

        """
        self._answer = answer
        self._hear = hear
        self.server: Server[Any] = Server("pytest-mst")
        self.server.middleware[:] = [self._handle]

    async def _handle(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> BaseModel | dict[str, Any] | None:
        is_request = ctx.request_id is not None
        inbound = Inbound(ctx.method, ctx.params, is_request, ctx.protocol_version, ctx)
        if not is_request:
            await self._hear(inbound)
            is_commit = ctx.method == "notifications/initialized"
            return await call_next(ctx) if is_commit else None
        try:
            return inbound.answered(await self._answer(inbound))
        except RpcError as error:
            raise inbound.refused(error) from error

    async def serve(self, read: Any, write: Any, *, handshake_only: bool) -> None:
        """Serve one client until its streams close.

        Args:
            read: the client's messages.
            write: ours.
            handshake_only: the server behind knows the older era only. A client that probes for
                the modern one would otherwise lock its connection to it (mcp 2.3).

        """
        loop = serve_loop if handshake_only else serve_dual_era_loop
        await loop(self.server, read, write, lifespan_state={})


def memory_streams() -> AbstractAsyncContextManager[tuple[Streams, Streams]]:
    """Give two connected ends: the client's, and the server's."""
    return create_client_server_memory_streams()


_FAREWELL_S = 2.0
"""How long the sessions at one address may take to end."""
_HANDLER = "pytest-mst"
"""Where a connection keeps who answers it."""


class HttpSessions:
    """Streamable HTTP at one address: each client's session has somebody of its own to answer it.

    A session of the handshake's era begins with `initialize` and ends when its client says so. In
    the other era there are only requests; one session answers all of them.
    """

    def __init__(self, open_session: Callable[[], Answering], body_limit_bytes: int) -> None:
        """Make them; `run` serves.

        Args:
            open_session: makes whoever answers one session.
            body_limit_bytes: how long the body of a request may be.

        """
        self._open_session = open_session
        self._modern = open_session()
        self._open: dict[str, anyio.Event] = {}
        """The sessions that began with a handshake, by their ids; set when they are gone."""
        self._manager = StreamableHTTPSessionManager(
            RawServer(self._answer, self._hear).server,
            session_idle_timeout=None,  # a client may think for long; the attempt's end bounds it
            max_request_body_size=body_limit_bytes,
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve until left; every session has ended then."""
        try:
            async with self._manager.run():
                try:
                    yield
                finally:
                    with anyio.move_on_after(_FAREWELL_S, shield=True):
                        await self._end_all()
        finally:
            with anyio.CancelScope(shield=True):
                await self._modern.close()

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one HTTP request, as ASGI has it."""
        await self._manager.handle_request(scope, receive, send)

    async def _answer(self, inbound: Inbound) -> Mapping[str, Any]:
        return await self._session_of(inbound).answer(inbound)

    async def _hear(self, inbound: Inbound) -> None:
        await self._session_of(inbound).hear(inbound)

    def _session_of(self, inbound: Inbound) -> Answering:
        if inbound.is_modern:
            return self._modern
        connection = inbound.context.session._connection
        session: Answering | None = connection.state.get(_HANDLER)
        if session is None:
            session = connection.state[_HANDLER] = self._open_session()
            connection.exit_stack.push_async_callback(session.close)
            if connection.session_id is not None:
                gone = self._open[connection.session_id] = anyio.Event()
                connection.exit_stack.callback(self._open.pop, connection.session_id)
                connection.exit_stack.callback(gone.set)
        return session

    async def _end_all(self) -> None:
        """End each session as its client would; cancelled, each would be waited for in vain."""
        ending = dict(self._open)
        for session_id in ending:
            headers = [(b"mcp-session-id", session_id.encode())]
            scope = {"type": "http", "method": "DELETE", "path": "/", "headers": headers}
            await self._manager.handle_request(scope, _no_body, _unheard)
        for gone in ending.values():
            await gone.wait()


async def _no_body() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_message: object) -> None:
    """Take an answer that nobody reads."""


async def end_sse_watcher() -> None:
    """End the task that `sse_starlette` starts beside the first stream and leaves in the loop."""
    watching = sse_starlette.sse._shutdown_watcher.__code__
    tasks = [one for one in asyncio.all_tasks() if _code(one.get_coro()) is watching]
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _code(coroutine: object) -> object:
    return getattr(coroutine, "cr_code", None)
