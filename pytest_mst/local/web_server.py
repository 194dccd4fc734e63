"""An ASGI application on loopback, in the event loop that is there already."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import uvicorn

Application: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

_KEEP_ALIVE_S = 3600
"""An agent may think for long between two calls; a connection costs nothing meanwhile."""
_FAREWELL_S = 2.0
"""How long the requests under way may take to end once the server stops."""
_BACKLOG = 512


class WebServer:
    """Serves an application on a port of its own.

    uvicorn does the HTTP. Its own main loop is left out, and with it the handlers of signals, the
    polling, and the log of its start and end.
    """

    def __init__(self, application: Application, *, tells_errors: bool = True) -> None:
        """Take an application.

        Args:
            application: what is served.
            tells_errors: whether what it raises is logged; else it only ends its connection.

        """
        config = uvicorn.Config(
            application,
            interface="asgi3",
            lifespan="off",
            ws="none",
            loop="none",
            log_config=None,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            backlog=_BACKLOG,
        )
        config.load()
        config.loaded_app = application  # at a low log level, what logs each request stands before
        config.http_protocol_class = _unlogged(
            config.http_protocol_class, tells_errors=tells_errors
        )
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._socket = _loopback_socket()

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        port: int = self._socket.getsockname()[1]
        return port

    async def start(self) -> None:
        """Begin to listen."""
        await self._server.startup(sockets=[self._socket])

    async def stop(self, *, farewell_s: float = _FAREWELL_S) -> None:
        """End every connection, and wait a bounded while for the requests under way.

        Args:
            farewell_s: how long.

        """
        state = self._server.server_state
        for listening in self._server.servers:
            listening.close()
        self._socket.close()
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            _, late = await asyncio.wait(state.tasks, timeout=farewell_s)
            for task in late:
                task.cancel()
        for connection in list(state.connections):
            connection.transport.abort()
        for listening in self._server.servers:
            await listening.wait_closed()


def _loopback_socket() -> socket.socket:
    # Named as TCP: asyncio sends small answers at once (TCP_NODELAY) only where it sees that.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.bind(("127.0.0.1", 0))
    return made


_SILENT = logging.Logger("pytest_mst.local.web_server", logging.CRITICAL + 1)


def _unlogged(protocol: Any, *, tells_errors: bool) -> Any:
    """Make a protocol that writes no access log: an address in it lets whoever reads it in."""

    class Unlogged(protocol):  # type: ignore[misc]  # uvicorn chooses the class when it runs
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.access_log = False
            if not tells_errors:
                self.logger = _SILENT

    return Unlogged
