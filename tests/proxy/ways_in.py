"""The ways into a boundary, as real clients take them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.relay_front import RelayCommand
from pytest_mst.proxy.sdk import as_dict, as_session_message
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.proxy.setting import SERVERS, received, stdio

FRONTS = ("memory", "http", "relay")
MODERN = "2026-07-28"
CLIENT = {"name": "raw", "version": "1"}
ENVELOPE: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def streams_through(boundary: Boundary, front: str, label: str) -> AsyncIterator[Any]:
    """Open one way in, as the streams that a client reads and writes."""
    match front:
        case "memory":
            async with boundary.transport(label) as streams:
                yield streams
        case "http":
            url = await boundary.url(label)
            # Certificates are read for 30 ms; there is nothing here to certify.
            async with (
                httpx2.AsyncClient(timeout=httpx2.Timeout(30), verify=False) as client,
                streamable_http_client(url, http_client=client, max_sse_event_size=None) as streams,
            ):
                yield streams
        case _:
            command = await boundary.command(label)
            with open("/dev/null", "w") as errlog:  # noqa: ASYNC230, PTH123
                async with stdio_client(parameters(command), errlog=errlog) as streams:
                    yield streams


def parameters(command: RelayCommand) -> StdioServerParameters:
    return StdioServerParameters(
        command=command.command, args=list(command.args), env=dict(command.env)
    )


def client_through(
    boundary: Boundary, front: str, mode: Any, label: str = "features", **callbacks: Any
) -> Client:
    """Make a client of the SDK's that comes in one way."""
    return Client(streams_through(boundary, front, label), mode=mode, **callbacks)


class Raw:
    """A client that sends and sees nothing but raw messages."""

    def __init__(self, streams: Any, *, modern: bool) -> None:
        self._read, self._write = streams
        self._modern = modern
        self.notifications: list[dict[str, Any]] = []

    async def start(self) -> None:
        if self._modern:
            await self.ask("d", "server/discover", {})
            return
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
        await self.ask("i", "initialize", hello)
        await self.tell("notifications/initialized")

    async def ask(self, key: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
        await self.send(key, method, params)
        return await self.answer()

    async def send(self, key: Any, method: str, params: dict[str, Any]) -> None:
        given = dict(params)
        headers = {"mcp-protocol-version": "2025-06-18"} if method != "initialize" else {}
        if self._modern:
            given["_meta"] = {**given.get("_meta", {}), **ENVELOPE}
            headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
            headers |= {"mcp-name": given["name"]} if "name" in given else {}
        request = {"jsonrpc": "2.0", "id": key, "method": method, "params": given}
        await self._write.send(as_session_message(request, headers))

    async def answer(self) -> dict[str, Any]:
        while True:
            message = as_dict(await self._read.receive())
            assert message is not None
            if "id" in message and "method" not in message:
                return message
            self.notifications.append(message)

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        await self._write.send(as_session_message(message))


@asynccontextmanager
async def raw_through(
    boundary: Boundary, front: str, *, modern: bool, label: str = "features"
) -> AsyncIterator[Raw]:
    async with streams_through(boundary, front, label) as streams:
        client = Raw(streams, modern=modern)
        await client.start()
        yield client


def features(log: Path, *flags: str) -> UpstreamSpec:
    """Specify the server that uses every feature, and where it logs what reaches it."""
    program = str(SERVERS / "features.py")
    return stdio("features", "python", program, "--log", str(log), *flags)


async def until(log: Path, method: str) -> None:
    """Wait until a server has got a message; the test's own bound ends the wait."""
    while method not in methods_in(log):  # noqa: ASYNC110  another process writes the log
        await anyio.sleep(0.01)


def methods_in(log: Path) -> list[Any]:
    return [one.get("method") for one in received(log)] if log.exists() else []


def times_cancelled(log: Path) -> int:
    """Count how often a server was told that nobody waits for its first call."""
    messages = received(log)
    call = next(one for one in messages if one.get("method") == "tools/call")
    told = [one["params"] for one in messages if one.get("method") == "notifications/cancelled"]
    return [one["requestId"] for one in told].count(call["id"])
