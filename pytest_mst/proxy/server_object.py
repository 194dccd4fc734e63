"""A server object in this process: it runs in a thread of its own, so that it can block nobody.

A tool that blocks for ever blocks its own event loop; ours goes on and bounds the wait, and the
thread does not keep the interpreter from ending.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from pytest_mst.domain.eval_config import PythonServer
from pytest_mst.proxy.object_import import load_object
from pytest_mst.proxy.pipe import Message, Pipe, PipeClosedError, PipeEnding, UnsendableError
from pytest_mst.proxy.sdk_import import import_sdk
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec

if TYPE_CHECKING:
    from mcp.server import Server

_STOP_S = 1.0
"""How long a thread may take to end; one that is blocked is left behind, as a daemon."""


@asynccontextmanager
async def open_object(spec: UpstreamSpec, config: PythonServer) -> AsyncIterator[Pipe]:
    """Connect to a server object.

    Raises:
        ServerUnavailableError: `module:attribute` cannot be imported, or is not a server.

    """
    await import_sdk()
    from pytest_mst.proxy.sdk import low_level_server

    candidate = spec.server_object
    if candidate is None:
        with anyio.fail_after(spec.connect_timeout_s):
            candidate = await anyio.to_thread.run_sync(
                load_object, spec.label, config.object, spec.base_dir, abandon_on_cancel=True
            )
    server = low_level_server(candidate)
    if server is None:
        reason = (
            f"{config.object} is of type {type(candidate).__name__};"
            " it must be an mcp Server or MCPServer"
        )
        raise ServerUnavailableError(spec.label, "object", reason)
    pipe = _connect(server)
    try:
        yield pipe
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(pipe.host.leave, pipe)


class _Host:
    """The thread of one server object, for all connections to it."""

    def __init__(self, server: Server[Any]) -> None:
        self.server = server
        self.ended = False
        self.pipes: set[_ObjectPipe] = set()
        self._started = threading.Event()
        self._stop: asyncio.Event | None = None
        self._open: set[_ObjectPipe] = set()
        self._serving: set[asyncio.Future[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        name = f"mcp server {server.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin(self, pipe: _ObjectPipe) -> None:
        """Serve one more connection."""
        self._started.wait()
        self.call(self._begin, pipe)

    def leave(self, pipe: _ObjectPipe) -> None:
        """End one connection, and the thread with the last of them."""
        pipe.hang_up()
        with _HOSTS_LOCK:
            self.pipes.discard(pipe)
            if self.pipes:
                return
            if _HOSTS.get(id(self.server)) is self:
                del _HOSTS[id(self.server)]
        if self._stop is not None:
            self.call(self._stop.set)
        self._thread.join(_STOP_S)

    def call(self, do: Callable[..., Any], *arguments: Any) -> None:
        """Do something in the server's event loop; nothing where that has ended."""
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(do, *arguments)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._started.set()
            with _HOSTS_LOCK:
                self.ended = True
            for pipe in tuple(self._open | self.pipes):
                pipe.over("ended with its event loop")

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._started.set()
        await self._stop.wait()
        if self._serving:
            await asyncio.wait(self._serving, timeout=_STOP_S / 2)

    def _begin(self, pipe: _ObjectPipe) -> None:
        pipe.open()
        self._open.add(pipe)
        task = asyncio.ensure_future(self._serve(pipe))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, pipe: _ObjectPipe) -> None:
        from pytest_mst.proxy.sdk import as_dict, run_server

        serving = asyncio.ensure_future(run_server(self.server, pipe.read, pipe.write))
        async for item in pipe.written:
            message = as_dict(item)
            if message is not None:
                pipe.deliver(message)
        await asyncio.wait([serving])
        error = None if serving.cancelled() else serving.exception()
        pipe.over("ended" if error is None else f"ended by {type(error).__name__}: {error}")
        self._open.discard(pipe)


_HOSTS: dict[int, _Host] = {}
"""By the identity of the server object: one thread each, however many connections there are."""
_HOSTS_LOCK = threading.Lock()


def _connect(server: Server[Any]) -> _ObjectPipe:
    with _HOSTS_LOCK:
        host = _HOSTS.get(id(server))
        if host is None or host.ended:
            host = _HOSTS[id(server)] = _Host(server)
        pipe = _ObjectPipe(host)
        host.pipes.add(pipe)
    host.begin(pipe)
    return pipe


class _ObjectPipe(Pipe):
    """Messages from one event loop to another's, and back."""

    def __init__(self, host: _Host) -> None:
        self.host = host
        self._ours = asyncio.get_running_loop()
        self._received: asyncio.Queue[Message | None] = asyncio.Queue()
        """What the server sent; `None` is its end."""
        self._reason = "ended"
        self.to_server: Any = None
        self.read: Any = None
        self.write: Any = None
        self.written: Any = None

    def open(self) -> None:
        """Make the server's streams, in its own loop."""
        self.to_server, self.read = anyio.create_memory_object_stream[Any](math.inf)
        self.write, self.written = anyio.create_memory_object_stream[Any](math.inf)

    async def send(self, message: Message) -> None:
        from pytest_mst.proxy.sdk import as_session_message

        try:
            item = as_session_message(message)
        except ValueError as error:
            msg = f"cannot be sent: {error}"
            raise UnsendableError(msg) from error
        self.host.call(self._hand_over, item)

    def _hand_over(self, item: Any) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.to_server.send_nowait(item)

    async def receive(self) -> Message:
        message = await self._received.get()
        if message is None:
            raise PipeClosedError
        return message

    def ending(self) -> PipeEnding:
        return PipeEnding(self._reason)

    def deliver(self, message: Message) -> None:
        """Hand a message of the server's to our event loop."""
        with suppress(RuntimeError):
            self._ours.call_soon_threadsafe(self._received.put_nowait, message)

    def over(self, reason: str) -> None:
        """Say to our event loop that the server serves this connection no more."""
        with suppress(RuntimeError):
            self._ours.call_soon_threadsafe(self._close, reason)
        for stream in (self.to_server, self.read, self.write, self.written):
            if stream is not None:
                with suppress(RuntimeError):  # whoever waits there has ended with its loop
                    stream.close()

    def _close(self, reason: str) -> None:
        self._reason = reason
        self._received.put_nowait(None)

    def hang_up(self) -> None:
        """Close the server's side; called from any thread."""
        self.host.call(self._hang_up)

    def _hang_up(self) -> None:
        if self.to_server is not None:
            self.to_server.close()
