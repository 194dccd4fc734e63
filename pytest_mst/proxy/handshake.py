"""Agreeing on a protocol revision with a server: the modern era, or the older handshake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from pytest_mst.proxy.json_rpc import Params, Peer, PeerGoneError, RpcError

HANDSHAKE_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions reached by `initialize`, oldest first (mcp_types.version 2.3)."""
MODERN_REVISIONS = ("2026-07-28",)
"""Revisions without a handshake: every request carries its envelope (mcp_types.version 2.3)."""
LATEST_HANDSHAKE = HANDSHAKE_REVISIONS[-1]
LATEST_MODERN = MODERN_REVISIONS[-1]

REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

CLIENT_INFO = {"name": "pytest-mst", "version": "0"}

_SILENCE_S = 10.0
"""How long a server may ignore the probe before the handshake is tried beside it. Slow starters
answer late; servers of the older era are to answer with an error at once."""


class HandshakeError(Exception):
    """No protocol revision could be agreed on."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What a server said when it was met."""

    revision: str
    hello: Mapping[str, Any]
    """The raw result of `server/discover` or `initialize`."""

    @property
    def is_modern(self) -> bool:
        """Whether each request carries its own envelope."""
        return self.revision in MODERN_REVISIONS

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The server's name and version, as far as it tells them."""
        meta = self.hello.get("_meta")
        stamped = meta.get(SERVER_KEY) if isinstance(meta, Mapping) else None
        info = self.hello.get("serverInfo") or stamped
        return info if isinstance(info, Mapping) else {}

    def params(self, params: Params | None = None) -> Params | None:
        """Give the proxy's own request parameters the envelope that the revision asks for."""
        if not self.is_modern:
            return params
        return with_envelope(params, self.revision)


def with_envelope(params: Params | None, revision: str) -> Params:
    """Add the envelope that each request of the modern era carries."""
    given = params or {}
    envelope = {REVISION_KEY: revision, CLIENT_KEY: CLIENT_INFO, CAPABILITIES_KEY: {}}
    return {**given, "_meta": {**(given.get("_meta") or {}), **envelope}}


async def discover(peer: Peer, revision: str = LATEST_MODERN) -> Agreement:
    """Ask for a modern revision; by itself it waits for ever.

    Raises:
        RpcError: the server does not know the method, or refused.
        HandshakeError: it does not speak the revision.

    """
    hello = await peer.request(
        "server/discover", with_envelope(None, revision), timeout_s=None, cancellable=False
    )
    spoken = hello.get("supportedVersions")
    if not isinstance(spoken, list) or revision not in spoken:
        msg = f"was asked for protocol {revision} and speaks {spoken!r}"
        raise HandshakeError(msg)
    return Agreement(revision, hello)


async def initialize(peer: Peer, revision: str, params: Params | None = None) -> Agreement:
    """Make the handshake; by itself it waits for ever.

    Args:
        peer: the connection.
        revision: the protocol revision to ask for.
        params: a client's own parameters, passed on as they are.

    Raises:
        RpcError: the server refused.
        HandshakeError: the answer names no protocol revision.

    """
    asked = params or {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": CLIENT_INFO,
    }
    hello = await peer.request("initialize", asked, timeout_s=None, cancellable=False)
    agreed = hello.get("protocolVersion")
    if not isinstance(agreed, str):
        msg = f"answered the handshake without a protocolVersion: {hello!r:.200}"
        raise HandshakeError(msg)
    await peer.notify("notifications/initialized")
    return Agreement(agreed, hello)


async def agree(peer: Peer, protocol: str) -> Agreement:
    """Agree on a revision the way the config asks for; by itself it waits for ever.

    Args:
        peer: the connection.
        protocol: `auto`, `legacy` or a revision.

    Raises:
        RpcError: the server refused.
        HandshakeError: no revision could be agreed on.
        PeerGoneError: the connection ended.

    """
    if protocol == "auto":
        return await _probe(peer)
    if protocol == "legacy":
        return await initialize(peer, LATEST_HANDSHAKE)
    if protocol in MODERN_REVISIONS:
        return await discover(peer, protocol)
    agreed = await initialize(peer, protocol)
    if agreed.revision != protocol:
        msg = (
            f"was asked for protocol {protocol} and answered {agreed.revision};"
            " set protocol to auto, legacy or a revision it speaks"
        )
        raise HandshakeError(msg)
    return agreed


async def _probe(peer: Peer) -> Agreement:
    """Try the modern era first, on the same connection the handshake after it.

    A server that does not answer the probe may be starting slowly or may ignore what it does not
    know, so after a while both questions stand, and the first good answer counts.
    """
    found: list[Agreement] = []
    refused: list[RpcError | HandshakeError | PeerGoneError] = []
    not_modern = anyio.Event()

    async with anyio.create_task_group() as tasks:

        async def modern() -> None:
            try:
                found.append(await discover(peer))
                tasks.cancel_scope.cancel()
            except (RpcError, HandshakeError, PeerGoneError):
                not_modern.set()

        async def older() -> None:
            with anyio.move_on_after(_SILENCE_S):
                await not_modern.wait()
            try:
                found.append(await initialize(peer, LATEST_HANDSHAKE))
                tasks.cancel_scope.cancel()
            except (RpcError, HandshakeError, PeerGoneError) as error:
                refused.append(error)

        tasks.start_soon(modern)
        tasks.start_soon(older)
    if found:
        return found[0]
    raise refused[0]
