"""A notebook as an MCP server object: it is not started, it is used in the process of the run."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

NOTES = {"offsite": "Lisbon, 12 to 14 May.", "release": "2.4 is out, 2.5 in June."}

server = MCPServer("notes", version="1.0.0")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def find_notes(word: str) -> str:
    """Find notes that have a word in their title or text."""
    found = [
        f"{title}: {text}" for title, text in NOTES.items() if word.lower() in f"{title} {text}"
    ]
    return "\n".join(found) or "no such note"


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def delete_note(title: str) -> str:
    """Delete a note for good."""
    return f"deleted: {NOTES.pop(title)}"
