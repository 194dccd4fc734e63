"""The way in for clients that can only start a command: a relay to a socket on loopback.

Behind the relay there is what a server over stdio would speak, one JSON-RPC message a line.
"""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskGroup

from pytest_mst.proxy import relay
from pytest_mst.proxy.relay_wire import CHUNK_BYTES, RelayWire
from pytest_mst.proxy.sdk_import import import_sdk
from pytest_mst.proxy.secret_text import SecretText

if TYPE_CHECKING:
    from pytest_mst.proxy.sdk import Answering

_LOG = logging.getLogger(__name__)
_TOKEN_BYTES = 32
_LONGEST_TOKEN_BYTES = 256
_TOKEN_GRACE_S = 10.0
"""How long whoever connects may take to show a token."""
_WELCOME = b"\n"
_LAST_WORDS_S = 1.0
"""How long the last answers may take to be read once a session has ended."""


@dataclass(frozen=True, slots=True)
class RelayCommand:
    """A command that speaks MCP over its standard streams, for clients that start their servers.

    It may be started several times, also at once: each time it is a session of its own.
    """

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """To be added to the client's own. It lets whoever knows it in, and so it is not in `args`,
    which other users of the machine can see."""


class RelayFront:
    """A listener on loopback, started when it is first needed; it lets in who shows a token."""

    def __init__(self, tasks: TaskGroup) -> None:
        """Make a front that is not yet started.

        Args:
            tasks: what the sessions live in.

        """
        self._tasks = tasks
        self._mounts: dict[bytes, RelayMount] = {}
        self._listener: Listener[SocketStream] | None = None
        self._starting = anyio.Lock()
        self._listening = anyio.CancelScope()
        self._stopped = anyio.Event()

    async def mount(
        self, open_session: Callable[[], Answering], *, handshake_only: bool
    ) -> RelayMount:
        """Give one server of one attempt a command of its own.

        Args:
            open_session: makes whoever answers one client's session.
            handshake_only: the server behind knows the older era only.

        """
        await import_sdk()
        port = await self._started()
        token = SecretText(secrets.token_urlsafe(_TOKEN_BYTES), shown="[token]")
        key = token.encode()
        command = RelayCommand(
            sys.executable,
            ("-I", "-S", str(Path(relay.__file__))),
            {relay.ADDRESS: f"127.0.0.1:{port}", relay.TOKEN: token},
        )
        mount = RelayMount(
            command, open_session, lambda: self._forget(key), handshake_only=handshake_only
        )
        self._mounts[key] = mount
        return mount

    async def stop(self) -> None:
        """Stop listening; every command has been closed by whoever asked for it."""
        if self._listener is not None:
            self._listening.cancel()
            await self._stopped.wait()

    async def _started(self) -> int:
        async with self._starting:
            if self._listener is None:
                self._listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
                self._tasks.start_soon(self._listen, self._listener)
            port: int = self._listener.extra(SocketAttribute.local_port)
            return port

    async def _listen(self, listener: Listener[SocketStream]) -> None:
        try:
            async with listener:
                with self._listening:
                    await listener.serve(self._let_in)
        finally:
            self._stopped.set()

    def _forget(self, key: bytes) -> None:
        self._mounts.pop(key, None)

    async def _let_in(self, stream: SocketStream) -> None:
        async with stream:
            try:
                token, rest = await _token_of(stream)
                mount = self._mounts.get(token)
                if mount is not None:
                    await mount.serve(stream, rest)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
                return  # the client has left
            except Exception:  # noqa: BLE001  the request boundary: what one client's session
                # runs into ends that session, and nobody else's.
                _LOG.exception("a session through a relay has broken")


class RelayMount:
    """One command: one server of one attempt, until the attempt ends."""

    def __init__(
        self,
        command: RelayCommand,
        open_session: Callable[[], Answering],
        forget: Callable[[], None],
        *,
        handshake_only: bool,
    ) -> None:
        self.command = command
        self._open_session = open_session
        self._forget = forget
        self._handshake_only = handshake_only
        self._under_way: dict[anyio.CancelScope, anyio.Event] = {}

    async def serve(self, stream: SocketStream, began_with: bytes) -> None:
        """Serve one client's session until it or the attempt ends."""
        session, gone = self._open_session(), anyio.Event()
        with anyio.CancelScope() as cut:
            self._under_way[cut] = gone
            try:
                await stream.send(_WELCOME)
                await self._serve(session, RelayWire(stream, began_with))
            finally:
                try:
                    with anyio.CancelScope(shield=True):
                        await session.close()
                finally:
                    del self._under_way[cut]
                    gone.set()

    async def _serve(self, session: Answering, wire: RelayWire) -> None:
        from pytest_mst.proxy.sdk import RawServer

        server = RawServer(session.answer, session.hear)
        arriving, read = anyio.create_memory_object_stream[Any](0)
        write, leaving = anyio.create_memory_object_stream[Any](0)
        reading = anyio.CancelScope()

        async def take() -> None:
            with reading:
                await wire.take(arriving)

        async def give() -> None:
            await wire.give(leaving)
            tasks.cancel_scope.cancel()  # nobody takes answers any more, or none is to come

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            tasks.start_soon(give)
            async with write, read:
                await server.serve(read, write, handshake_only=self._handshake_only)
            reading.cancel()
            tasks.cancel_scope.deadline = anyio.current_time() + _LAST_WORDS_S

    async def close(self) -> None:
        """Let nobody in any more, end the sessions, and wait until nothing is left of them."""
        self._forget()
        under_way = dict(self._under_way)
        for cut in under_way:
            cut.cancel()
        for gone in under_way.values():
            await gone.wait()


async def _token_of(stream: SocketStream) -> tuple[bytes, bytes]:
    """Read the first line; give it with what came after it."""
    begun = b""
    with anyio.move_on_after(_TOKEN_GRACE_S):
        while b"\n" not in begun and len(begun) <= _LONGEST_TOKEN_BYTES:
            begun += await stream.receive(CHUNK_BYTES)
    token, _, rest = begun.partition(b"\n")
    return token, rest
