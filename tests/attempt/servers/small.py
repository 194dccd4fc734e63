"""A small MCP server over stdio, of the standard library only, so that it starts at once.

Run as a program: `python small.py [--reads-only] [--exit-on-start CODE] [--meet FOLDER COUNT]`; it
speaks the era with a handshake.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

READ = {"readOnlyHint": True}
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def tool(name: str, annotations: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    listed: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}, **more}
    if annotations is not None:
        listed["annotations"] = annotations
    return listed


READS = [tool(name, READ) for name in ("read_note", "slow", "fail", "refuse", "die")]
WRITES = [
    tool("write_note", {"readOnlyHint": False}, inputSchema=NOTE),
    tool("purge"),
    tool("write_slowly"),
]


def bear_witness(tool: str) -> None:
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.witness import executed

    executed(tool)


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(key: object, text: str, **more: Any) -> None:
    send({"id": key, "result": {"content": [{"type": "text", "text": text}], **more}})


def call(key: object, name: str, given: dict[str, Any]) -> None:
    if all(one["name"] != name for one in READS):
        bear_witness(name)
    match name:
        case "read_note":
            say(key, given.get("text", "the note"))
        case "slow" | "write_slowly":
            time.sleep(given["seconds"])
            say(key, "slept")
        case "fail":
            say(key, "it is down", isError=True)
        case "refuse":
            send({"id": key, "error": {"code": -32050, "message": "not today"}})
        case "die":
            sys.stderr.write("boom: told to die\n")
            sys.stderr.flush()
            os._exit(3)
        case _:
            say(key, f"{name} executed")


def answer(message: dict[str, Any], tools: list[dict[str, Any]]) -> None:
    params = message.get("params") or {}
    key = message.get("id")
    match message.get("method"):
        case "initialize":
            hello = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "7"},
            }
            send({"id": key, "result": hello})
        case "tools/list":
            send({"id": key, "result": {"tools": tools}})
        case "tools/call":
            call(key, params["name"], params.get("arguments") or {})
        case _:
            if key is not None:
                send({"id": key, "error": {"code": -32601, "message": "Method not found"}})


def meet(folder: Path, count: int) -> None:
    """Wait, within a bound, until as many servers as this have come to a folder."""
    (folder / str(os.getpid())).touch()
    give_up_at = time.monotonic() + 10
    while len(list(folder.iterdir())) < count and time.monotonic() < give_up_at:
        time.sleep(0.01)
    if len(list(folder.iterdir())) < count:
        sys.exit("nobody came")


def main(flags: list[str]) -> None:
    if "--exit-on-start" in flags:
        sys.stderr.write("boom: cannot start\n")
        sys.exit(int(flags[flags.index("--exit-on-start") + 1]))
    if "--meet" in flags:
        folder, count = flags[flags.index("--meet") + 1 :][:2]
        meet(Path(folder), int(count))
    tools = READS if "--reads-only" in flags else [*READS, *WRITES]
    for line in sys.stdin:
        answer(json.loads(line), tools)


if __name__ == "__main__":
    main(sys.argv[1:])
