"""What came to a boundary for one of its servers, whatever the client says of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Seen:
    """What an attempt's client did with one server, as the boundary saw it; it grows."""

    way_in: bool = False
    """Whether it was given an address, a command or a transport for it."""
    connected: bool = False
    """Whether it came: an MCP handshake that was answered, or a call."""
    listed: bool = False
    """Whether it was told the server's tools."""
    calls: int = 0
    """How many tool calls of its were taken."""
