"""Tickets in queues, kept in SQLite, as an MCP server over stdio.

Usage: python tickets.py DATABASE. Every process of it that is given the same file sees the same
tickets, as with any server whose state is not its own.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

READS = ToolAnnotations(read_only_hint=True)
WRITES = ToolAnnotations(read_only_hint=False)
WAIT_S = 20.0

server = MCPServer("tickets", version="1.0.0")


class Ticket(BaseModel):
    """One ticket."""

    title: str
    state: str


class Queue(BaseModel):
    """The tickets of one queue, oldest first."""

    tickets: list[Ticket]


@contextmanager
def database() -> Iterator[sqlite3.Connection]:
    """Open the database for one call; what it wrote is there for others at its end."""
    with closing(sqlite3.connect(sys.argv[1], timeout=WAIT_S)) as opened, opened:
        opened.execute("CREATE TABLE IF NOT EXISTS ticket (queue TEXT, title TEXT, state TEXT)")
        yield opened


@server.tool(annotations=READS)
def list_tickets(queue: str) -> Queue:
    """List the tickets of a queue."""
    with database() as db:
        found = db.execute("SELECT title, state FROM ticket WHERE queue = ?", (queue,))
        return Queue(tickets=[Ticket(title=title, state=state) for title, state in found])


@server.tool(annotations=WRITES)
def open_ticket(queue: str, title: str) -> str:
    """Open a ticket."""
    with database() as db:
        db.execute("INSERT INTO ticket VALUES (?, ?, 'open')", (queue, title))
    return f"opened in {queue}: {title}"


@server.tool(annotations=WRITES)
def close_ticket(queue: str, title: str) -> str:
    """Close a ticket."""
    with database() as db:
        changed = db.execute(
            "UPDATE ticket SET state = 'closed' WHERE queue = ? AND title = ?", (queue, title)
        )
    return f"closed: {changed.rowcount}"


@server.tool(annotations=WRITES)
def drop_queue(queue: str) -> str:
    """Delete all tickets of a queue."""
    with database() as db:
        gone = db.execute("DELETE FROM ticket WHERE queue = ?", (queue,))
    return f"deleted: {gone.rowcount}"


if __name__ == "__main__":
    server.run()
