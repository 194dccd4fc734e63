"""What the proxy adds to a call, as ratios: every way is asked in turn, in one run."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_mst.domain.eval_config import StdioServer
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import AttemptServer, UpstreamSpec

if TYPE_CHECKING:
    from mcp import Client

CALLS = 300
SERVER = """
import socket, sys, uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("desk")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(key: str) -> str:
    return "found"

@server.tool()
def put(key: str, value: str) -> str:
    return "stored"

if "http" not in sys.argv:
    server.run("stdio")
else:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = server.streamable_http_app()
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listening])
"""
"""One server on the SDK, over either transport, so that only the ways to it differ."""
READ = ("look_up", {"key": "a"})
WRITE = ("put", {"key": "a", "value": "b"})


@dataclass
class Way:
    """A client that is connected in one way, what it asks, and how long each answer took."""

    name: str
    client: Client
    call: tuple[str, dict[str, Any]] = READ
    took_ms: list[float] = field(default_factory=list)

    async def ask(self) -> None:
        """Call once, and note the time."""
        start = time.perf_counter()
        await self.client.call_tool(*self.call)
        self.took_ms.append((time.perf_counter() - start) * 1000)

    @property
    def median_ms(self) -> float:
        """How long an answer takes."""
        return statistics.median(self.took_ms)


@contextmanager
def _http_server(script: Path) -> Iterator[str]:
    """Serve over streamable HTTP in a process; gives its address."""
    command = [sys.executable, str(script), "http"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def _ways(folder: Path, era: str) -> AsyncIterator[Mapping[str, Way]]:
    """Connect a client in every way; `era` is the client's mode."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    script = folder / "server.py"
    script.write_text(SERVER)
    config = {"transport": "stdio", "command": "python", "args": [str(script)], "protocol": era}
    spec = UpstreamSpec("desk", StdioServer.model_validate(config), folder)
    started = StdioServerParameters(command=sys.executable, args=[str(script)])
    async with AsyncExitStack() as stack:

        async def connected(name: str, server: Any, call: Any = READ) -> Way:
            client = await stack.enter_async_context(Client(server, mode=era))
            return Way(name, client, call)

        hub = await stack.enter_async_context(Hub())
        servers = {"desk": AttemptServer(spec, WriteMode.PLANNED)}
        opened = hub.open_attempt(servers, lambda entry: None)
        boundary = await stack.enter_async_context(opened)
        errlog = stack.enter_context((folder / "stderr.txt").open("w"))
        direct_http = stack.enter_context(_http_server(script))
        address, relay = await boundary.url("desk"), await boundary.command("desk")
        through = StdioServerParameters(
            command=relay.command, args=list(relay.args), env=dict(relay.env)
        )
        ways = [
            await connected("direct stdio", stdio_client(started, errlog=errlog)),
            await connected("direct HTTP", direct_http),
            await connected("memory", boundary.transport("desk")),
            await connected("memory, stopped write", boundary.transport("desk"), WRITE),
            await connected("HTTP", address),
            await connected("HTTP, stopped write", address, WRITE),
            await connected("relay", stdio_client(through, errlog=errlog)),
            await connected("relay, stopped write", stdio_client(through, errlog=errlog), WRITE),
        ]
        yield {way.name: way for way in ways}


async def measure(era: str, calls: int = CALLS) -> dict[str, float]:
    """Ask in every way in turn.

    Args:
        era: `auto` for the modern one, `legacy` for the one with a handshake.
        calls: how often each way is asked.

    Returns:
        Milliseconds of the median answer, by the name of the way.

    """
    with tempfile.TemporaryDirectory(prefix="mst-benchmark-") as folder:
        async with _ways(Path(folder), era) as ways:
            for _ in range(calls):
                for way in ways.values():
                    await way.ask()
            return {name: way.median_ms for name, way in ways.items()}


RATIOS = (
    ("a read through the in-memory front", "memory", "direct stdio", "at most 2"),
    ("a read through the HTTP front", "HTTP", "direct HTTP", "at most 1.5"),
    ("a read through a relay", "relay", "direct stdio", "none"),
    ("a stopped write, in memory", "memory, stopped write", "memory", "below 1"),
    ("a stopped write, over HTTP", "HTTP, stopped write", "HTTP", "below 1"),
    ("a stopped write, through a relay", "relay, stopped write", "relay", "below 1"),
)
"""What, measured in which way, against which other one, and the mark."""


def described(medians_ms: Mapping[str, float]) -> Iterator[str]:
    """Describe what was measured, a line for each ratio."""
    for what, way, against, mark in RATIOS:
        ratio = medians_ms[way] / medians_ms[against]
        yield (
            f"{what}: {ratio:.2f} x {against} (mark {mark}); "
            f"{medians_ms[way]:.2f} ms against {medians_ms[against]:.2f} ms"
        )
