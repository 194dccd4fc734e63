"""One attempt's ways in for clients that want an MCP session; which one is used decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TypeAlias

import anyio

from pytest_mst.proxy.gate import Gate
from pytest_mst.proxy.http_front import HttpFront, HttpMount
from pytest_mst.proxy.relay_front import RelayCommand, RelayFront, RelayMount
from pytest_mst.proxy.session_front import Session, TransportStreams, session_transport

SessionMaker: TypeAlias = Callable[[Gate], Session]
"""Makes the session of one client with the server behind a gate."""


class Fronts:
    """The ways in of one attempt; each address is made when it is first asked for."""

    def __init__(self, make_session: SessionMaker, http: HttpFront, relay: RelayFront) -> None:
        self._make_session = make_session
        self._http = http
        self._relay = relay
        self._urls: dict[Gate, HttpMount] = {}
        self._commands: dict[Gate, RelayMount] = {}
        self._making = anyio.Lock()
        self._closed = False

    def transport(self, gate: Gate) -> AbstractAsyncContextManager[TransportStreams]:
        """Give an in-memory transport."""
        return session_transport(self._make_session, gate)

    async def url(self, gate: Gate) -> str:
        """Give the address of streamable HTTP, the same for the whole attempt."""
        async with self._making:
            self._check_open()
            mount = self._urls.get(gate)
            if mount is None:
                mount = await self._http.mount(partial(self._make_session, gate))
                self._urls[gate] = mount
            return mount.url

    async def command(self, gate: Gate) -> RelayCommand:
        """Give the command of a relay, the same for the whole attempt."""
        async with self._making:
            self._check_open()
            mount = self._commands.get(gate)
            if mount is None:
                mount = await self._relay.mount(
                    partial(self._make_session, gate),
                    handshake_only=not gate.upstream.agreement.is_modern,
                )
                self._commands[gate] = mount
            return mount.command

    async def close(self) -> None:
        """Let nobody in any more, and end the sessions that came in from outside the process."""
        async with self._making:
            self._closed = True
            for url in self._urls.values():
                await url.close()
            for command in self._commands.values():
                await command.close()

    def _check_open(self) -> None:
        if self._closed:
            msg = "the attempt has ended; its servers have no address any more"
            raise RuntimeError(msg)
