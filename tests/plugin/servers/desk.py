"""A help desk over MCP and stdio, of the standard library alone, so that it starts at once.

`python -IS desk.py [silent|exit|junk|reads]`: a word makes it misbehave when it starts, or
list only what reads. With `DESK_LOG` set it writes a line of JSON for its start and for each
call that reaches it, so that a test can tell what did not. With `DESK_BELL`, a port, a call of
`stall` connects to it and keeps the connection until the process ends. A call of `end_client`
ends the process that started the server, at once and without a word.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

READ = {"readOnlyHint": True}
WRITE = {"readOnlyHint": False}
ANY = {"type": "object"}
TICKET = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
}
MADE = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "created": {"type": "boolean"}},
    "required": ["number", "created"],
}

READS: list[dict[str, Any]] = [
    {"name": name, "inputSchema": ANY, "annotations": READ}
    for name in ("find", "crash", "stall", "fail", "reject", "odd_text", "end_client", "moan")
]
MORE: dict[str, Any] = {"name": "archive", "inputSchema": ANY, "annotations": READ}
RUNG: list[object] = []
"""The connections to the bell, open for as long as this process lives."""
WRITES: list[dict[str, Any]] = [
    {"name": "post", "inputSchema": ANY, "annotations": WRITE},
    {"name": "open_ticket", "inputSchema": TICKET, "outputSchema": MADE, "annotations": WRITE},
    {"name": "tag", "inputSchema": ANY},
]


def bear_witness(tool: str) -> None:
    sys.path.append(f"{os.path.dirname(__file__)}/../../..")  # noqa: PTH120 - pathlib is slow
    from tests.witness import executed

    executed(tool)


def log(**line: object) -> None:
    if path := os.environ.get("DESK_LOG"):
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write(json.dumps({"pid": os.getpid(), **line}) + "\n")


def ring() -> None:
    if port := os.environ.get("DESK_BELL"):
        import socket

        RUNG.append(socket.create_connection(("127.0.0.1", int(port)), timeout=10))


def say(message_id: object, **outcome: object) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message_id, **outcome}) + "\n")
    sys.stdout.flush()


def text(value: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": value}], **more}


def call(message_id: object, tool: str, arguments: dict[str, Any]) -> None:
    log(call=tool, arguments=arguments)
    if all(one["name"] != tool for one in (*READS, MORE)):
        bear_witness(tool)
    match tool:
        case "crash":
            os.write(2, b"the desk fell over\n")
            os._exit(7)
        case "stall":
            ring()
        case "moan":
            os.write(2, f"{arguments['words']}\n".encode())
            say(message_id, result=text("moaned"))
        case "end_client":
            os.kill(os.getppid(), signal.SIGKILL)
        case "fail":
            why = arguments.get("why", "the desk is closed")
            say(message_id, result=text(why, isError=True))
        case "reject":
            why = arguments.get("why", "not at this desk")
            say(message_id, error={"code": -32602, "message": why})
        case "odd_text":
            say(message_id, result=text("half \ud83d, bell \x07, red \x1b[31m, end"))
        case "open_ticket":
            made = {"number": 7, "created": True}
            say(message_id, result=text(json.dumps(made), structuredContent=made))
        case _:
            say(message_id, result=text(f"{tool} {json.dumps(arguments)}"))


def answer(message: dict[str, Any], tools: list[dict[str, Any]]) -> None:
    message_id, params = message.get("id"), message.get("params") or {}
    match message.get("method"):
        case "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "desk", "version": "1"},
            }
            say(message_id, result=result)
        case "tools/list":
            say(message_id, result={"tools": tools})
        case "tools/call":
            call(message_id, params["name"], params.get("arguments") or {})
        case "ping":
            say(message_id, result={})
        case _ if message_id is not None:
            say(message_id, error={"code": -32601, "message": "Method not found"})
        case _:
            pass


def main(words: list[str]) -> None:
    words = [*words, *os.environ.get("DESK_WORDS", "").split()]
    log(started=words)
    if "exit" in words:
        os.write(2, b"no desk today\n")
        sys.exit(3)
    if "junk" in words:
        os.write(1, b"Welcome to the desk!\n" * 20)
        sys.exit(0)
    if "silent" in words:
        while True:
            time.sleep(60)
    tools = READS if "reads" in words else READS + WRITES
    if "more" in words:
        tools = [*tools[1:], {**tools[0], "description": "finds more"}, MORE]
    for line in sys.stdin:
        if line.strip():
            answer(json.loads(line), tools)


main(sys.argv[1:])
