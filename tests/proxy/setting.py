"""A setting for a test: the wild server, a hub, an attempt's boundary, and what was recorded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pytest_mst.domain.eval_config import HttpServer, PythonServer, StdioServer
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import AttemptServer, Isolation, UpstreamSpec

SERVERS = Path(__file__).parent / "servers"


def wild(
    *arguments: str, label: str = "wild", log: Path | None = None, **config: Any
) -> UpstreamSpec:
    """Specify a server that misbehaves as told."""
    logged = () if log is None else ("--log", str(log))
    args = [str(SERVERS / "wild.py"), *logged, *arguments]
    given = {"transport": "stdio", "command": "python", "args": args, **config}
    return UpstreamSpec(label, StdioServer.model_validate(given), SERVERS)


def stdio(
    label: str, command: str, *args: str, base_dir: Path = SERVERS, **config: Any
) -> UpstreamSpec:
    given = {"transport": "stdio", "command": command, "args": list(args), **config}
    return UpstreamSpec(label, StdioServer.model_validate(given), base_dir)


def http(url: str, label: str = "web", **config: Any) -> UpstreamSpec:
    given = {"transport": "http", "serverUrl": url, **config}
    return UpstreamSpec(label, HttpServer.model_validate(given), SERVERS)


def python(
    name: str, server_object: object | None = None, label: str = "object", **config: Any
) -> UpstreamSpec:
    given = {"transport": "python", "object": name, **config}
    return UpstreamSpec(
        label, PythonServer.model_validate(given), SERVERS, server_object=server_object
    )


@asynccontextmanager
async def attempt(
    *specs: UpstreamSpec,
    mode: WriteMode = WriteMode.PLANNED,
    isolation: Isolation = "variant",
    hub: Hub | None = None,
    sink: Callable[[WriteEntry], None] | None = None,
    trial_id: str = "t1",
) -> AsyncIterator[Boundary]:
    """Open one attempt's boundary, in a hub of its own where none is given."""
    servers = {spec.label: AttemptServer(spec, mode, isolation) for spec in specs}
    stored: list[WriteEntry] = []
    if hub is not None:
        async with hub.open_attempt(servers, sink or stored.append, trial_id=trial_id) as boundary:
            yield boundary
        return
    async with (
        Hub() as own,
        own.open_attempt(servers, sink or stored.append, trial_id=trial_id) as boundary,
    ):
        yield boundary


def received(log: Path) -> list[dict[str, Any]]:
    """Read what a server has logged: every message that reached it."""
    return [json.loads(line) for line in log.read_bytes().splitlines()]


def called(log: Path) -> list[str]:
    """Name the tools whose calls reached a server."""
    return [one["params"]["name"] for one in received(log) if one.get("method") == "tools/call"]


def text(result: Any) -> str:
    """Give the text of a tool's result."""
    return str(result["content"][0]["text"])
