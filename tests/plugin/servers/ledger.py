"""A ledger in SQLite over MCP and stdio, of the standard library alone, so that it starts at once.

`python -IS ledger.py DATABASE [late=N] [closed=FILE]`: with `late`, what was added is found from
the Nth read of its marker on, as in a store that applies writes later; `purge` is an error while
the file `closed` is there. Its entries are in the database, so that every process of it sees the
same. A call of `stall` rings at `LEDGER_BELL`, a port, and is never answered; so does
an `add` that is to wait until it is told; `refuse` answers with an error, `reject` with a protocol
error.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

ANY = {"type": "object"}
READ = {"readOnlyHint": True}
WRITE = {"readOnlyHint": False}
TOOLS: list[dict[str, Any]] = [
    {"name": "find", "inputSchema": ANY, "annotations": READ},
    {"name": "stall", "inputSchema": ANY, "annotations": READ},
    {"name": "refuse_read", "inputSchema": ANY, "annotations": READ},
    {"name": "end_client", "inputSchema": ANY, "annotations": READ},
    {"name": "add", "inputSchema": ANY, "annotations": WRITE},
    {"name": "purge", "inputSchema": ANY, "annotations": WRITE},
    {"name": "refuse", "inputSchema": ANY, "annotations": WRITE},
    {"name": "reject", "inputSchema": ANY, "annotations": WRITE},
    {"name": "die", "inputSchema": ANY, "annotations": WRITE},
]
RUNG: list[socket.socket] = []


def bear_witness(tool: str) -> None:
    sys.path.append(f"{os.path.dirname(__file__)}/../../..")  # noqa: PTH120 - pathlib is slow
    from tests.witness import executed

    executed(tool)


class Ledger:
    """The entries, each with its marker; and who called what, in order."""

    def __init__(self, path: str, late: int, closed: str) -> None:
        self._late = late
        self._closed = closed
        self._db = sqlite3.connect(path, timeout=20, isolation_level=None)
        self._db.execute("CREATE TABLE IF NOT EXISTS entry (marker TEXT, text TEXT)")
        self._db.execute("CREATE TABLE IF NOT EXISTS call (tool TEXT, marker TEXT)")

    def note(self, tool: str, marker: str) -> None:
        self._db.execute("INSERT INTO call VALUES (?, ?)", (tool, marker))

    @property
    def is_open(self) -> bool:
        return not os.path.exists(self._closed)  # noqa: PTH110 - pathlib is slow

    def add(self, marker: str, text: str) -> None:
        self._db.execute("INSERT INTO entry VALUES (?, ?)", (marker, text))

    def purge(self, marker: str) -> None:
        self._db.execute("DELETE FROM entry WHERE marker = ?", (marker,))

    def find(self, marker: str) -> list[dict[str, str]]:
        reads = self._db.execute(
            "SELECT count(*) FROM call WHERE tool = 'find' AND marker = ?", (marker,)
        ).fetchone()[0]
        if reads < self._late:
            return []
        rows = self._db.execute("SELECT marker, text FROM entry WHERE marker = ?", (marker,))
        return [{"marker": marker, "text": text} for marker, text in rows]


def ring() -> None:
    if port := os.environ.get("LEDGER_BELL"):
        import socket

        RUNG.append(socket.create_connection(("127.0.0.1", int(port)), timeout=10))


def add(ledger: Ledger, marker: str, arguments: dict[str, Any]) -> None:
    if arguments.get("when_told"):
        ring()
        RUNG[-1].recv(1)
    ledger.add(marker, str(arguments.get("text", "")))


def say(message_id: object, **outcome: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message_id, **outcome}) + "\n")
    sys.stdout.flush()


def text(value: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}], **more}


def call(ledger: Ledger, message_id: object, tool: str, arguments: dict[str, Any]) -> None:
    marker = str(arguments.get("marker", ""))
    ledger.note(tool, marker)
    if all(one["name"] != tool or one["annotations"] != READ for one in TOOLS):
        bear_witness(tool)
    match tool:
        case "add":
            add(ledger, marker, arguments)
            say(message_id, result=text("added"))
        case "purge" if ledger.is_open:
            ledger.purge(marker)
            say(message_id, result=text("purged"))
        case "find":
            found = {"entries": ledger.find(marker)}
            say(message_id, result=text(json.dumps(found), structuredContent=found))
        case "stall":
            ring()
        case "reject":
            say(message_id, error={"code": -32602, "message": "not like this"})
        case "end_client":
            os.kill(os.getppid(), signal.SIGKILL)
        case "die":
            os.write(2, b"the ledger burns\n")
            os._exit(5)
        case _:
            say(message_id, result=text("the ledger is closed", isError=True))


def answer(ledger: Ledger, message: dict[str, Any]) -> None:
    message_id, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "ledger", "version": "1"},
            }
            say(message_id, result=result)
        case "tools/list":
            say(message_id, result={"tools": TOOLS})
        case "tools/call":
            call(ledger, message_id, params["name"], params.get("arguments") or {})
        case _ if message_id is not None:
            say(message_id, error={"code": -32601, "message": "Method not found"})
        case _:
            pass


def main(path: str, words: list[str]) -> None:
    said = dict(word.split("=", 1) for word in words)
    ledger = Ledger(path, int(said.get("late", 0)), said.get("closed", ""))
    for line in sys.stdin:
        if line.strip():
            answer(ledger, json.loads(line))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
