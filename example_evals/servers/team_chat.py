"""A small team chat as an MCP server: channels, messages, people. In memory, over stdio.

Its tools are what the proxy has to tell apart: reads that say so, writes with and without an
`outputSchema`, and one tool that says nothing of itself.
"""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False)

CHANNELS = {"#team": "Day to day", "#releases": "What goes out, and when"}
MESSAGES: dict[str, list[dict[str, str]]] = {
    "#team": [
        {"author": "ada", "text": "Release 2.4 is out."},
        {"author": "lin", "text": "The search rework moves to Thursday."},
    ],
    "#releases": [{"author": "ada", "text": "2.4: faster sync, dark mode."}],
}

server = MCPServer("team-chat", version="1.0.0")


class Posted(BaseModel):
    """What posting a message returns."""

    ok: bool
    ts: str
    channel: str


@server.tool(annotations=READS)
def list_channels() -> str:
    """List the channels."""
    return "\n".join(f"{name}: {topic}" for name, topic in CHANNELS.items())


@server.tool(annotations=READS)
def read_messages(channel: str) -> str:
    """Read a channel's messages, oldest first."""
    return "\n".join(f"{one['author']}: {one['text']}" for one in MESSAGES.get(channel, []))


@server.tool(annotations=WRITES)
def post_message(channel: str, text: str) -> Posted:
    """Post a message in a channel."""
    MESSAGES.setdefault(channel, []).append({"author": "agent", "text": text})
    return Posted(ok=True, ts=f"{len(MESSAGES[channel])}.000", channel=channel)


@server.tool(annotations=WRITES, structured_output=False)
def create_channel(name: str, topic: str = "") -> str:
    """Create a channel."""
    CHANNELS[name] = topic
    return f"created {name}"


@server.tool(
    annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True),
    structured_output=False,
)
def archive_channel(name: str) -> str:
    """Archive a channel with all its messages."""
    del CHANNELS[name]
    return f"archived {name}"


@server.tool()
def remind(person: str, text: str) -> dict[str, Any]:
    """Send a reminder. Says nothing of itself, so it is held as a write."""
    return {"person": person, "text": text}


if __name__ == "__main__":
    server.run("stdio")
