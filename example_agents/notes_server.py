"""A desk of notes, in memory: what the example agents act on."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

server = MCPServer("notes", version="1.0.0")
NOTES = {"offsite": "The offsite is in Lisbon.", "lunch": "Lunch is at noon."}


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def find_notes(word: str) -> str:
    """Find the notes that have a word in their title or their text."""
    found = [f"{title}: {text}" for title, text in NOTES.items() if word in f"{title} {text}"]
    return "\n".join(found) or "nothing found"


@server.tool(annotations=ToolAnnotations(read_only_hint=False, destructive_hint=True))
def delete_note(title: str) -> str:
    """Delete the note of a title."""
    return "deleted" if NOTES.pop(title, None) is not None else "there is no such note"


if __name__ == "__main__":
    server.run()
