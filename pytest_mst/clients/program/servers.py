"""How a program reaches an attempt's servers: by URL, or by starting a relay."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pytest_mst.clients.client import ClientRequest
from pytest_mst.providers.endpoint import origin_of

Connect: TypeAlias = Literal["url", "relay"]
CONNECTS: tuple[Connect, ...] = ("url", "relay")


@dataclass(frozen=True, slots=True)
class UrlServer:
    """A server over streamable HTTP on loopback."""

    url: str = field(repr=False)
    """Whoever knows it is let in."""


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that the client starts, over its standard streams."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)


ProgramServer: TypeAlias = UrlServer | CommandServer


async def servers_of(request: ClientRequest, connect: Connect) -> dict[str, ProgramServer]:
    """Return the way to each server of an attempt, by label, in their order."""
    found: dict[str, ProgramServer] = {}
    for label in request.tools.servers:
        if connect == "url":
            url = str(await request.session.url(label))
            request.trace.hidden |= {url: without_path(url), urlsplit(url).path: "/..."}
            found[label] = UrlServer(url)
        else:
            relay = await request.session.command(label)
            given = {name: str(value) for name, value in relay.env.items()}
            request.trace.hidden |= dict.fromkeys(filter(None, given.values()), "...")
            found[label] = CommandServer(relay.command, tuple(relay.args), given)
    return found


def without_path(url: str) -> str:
    """Return an address as it is shown: whoever knows its path is let in."""
    return f"{origin_of(url)}/..."


def mcp_servers(servers: Mapping[str, ProgramServer]) -> dict[str, dict[str, Any]]:
    """Return what most clients read under `mcpServers`."""
    return {label: _entry(server) for label, server in servers.items()}


def _entry(server: ProgramServer) -> dict[str, Any]:
    match server:
        case UrlServer(url=url):
            return {"type": "http", "url": url}
        case CommandServer(command=command, args=args, env=env):
            return {"type": "stdio", "command": command, "args": list(args), "env": dict(env)}


def plain_names(labels: Sequence[str]) -> dict[str, str]:
    """Return a name for each label that every client takes for a server, by label.

    It is the label itself where that is of letters, digits and single underscores and dashes;
    clients put names together with tools by two underscores.
    """
    names: dict[str, str] = {}
    for label in labels:
        plain = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]", "_", label)).strip("_") or "server"
        name, number = plain, 2
        while name in names.values():
            name, number = f"{plain}-{number}", number + 1
        names[label] = name
    return names
