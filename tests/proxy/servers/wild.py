"""An MCP server over stdio that misbehaves when told to. Hand-written, so that it starts fast.

Run as a program: `python wild.py [--log FILE] [--exit-on-start 3] ...`; it speaks both eras.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
CACHE = {"ttlMs": 0, "cacheScope": "private"}
READ = {"readOnlyHint": True}


def tool(name: str, annotations: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    listed: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}}
    if annotations is not None:
        listed["annotations"] = annotations
    return listed | more


ITEM = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["id"],
}
RECORD = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "created": {"type": "boolean"}},
    "required": ["id", "created"],
}
TOOLS = [
    *(tool(name, READ) for name in ("read_item", "pid", "die", "die_idle", "half", "slow")),
    *(tool(name, READ) for name in ("junk", "bad_bytes", "surrogate", "big_int", "big_line")),
    tool("fail", READ, outputSchema=RECORD),
    *(tool(name, READ) for name in ("refuse", "progress", "start_daemon", "to_stderr")),
    *(tool(name, READ) for name in ("same_code", "ask_client", "log")),
    tool("write_item", {"readOnlyHint": False, "destructiveHint": True}, inputSchema=ITEM),
    tool("make_record", inputSchema=ITEM, outputSchema=RECORD),
    tool(
        "odd",
        {"readOnlyHint": False},
        title="Odd",
        icons=[{"src": "data:,"}],
        execution={"taskSupport": "forbidden"},
        _meta={"a": None},
        **{"x-unknown": [1, None]},
    ),
]
DAEMON_TOOLS = [tool("list_x", READ), tool("create_x")]


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path)
    parser.add_argument("--era", choices=["both", "legacy"], default="both")
    parser.add_argument("--exit-on-start", type=int)
    parser.add_argument("--hang-on-start", action="store_true")
    parser.add_argument("--exit-on-probe", action="store_true")
    parser.add_argument("--ignore-probe", action="store_true")
    parser.add_argument("--revision")
    parser.add_argument("--banner", action="store_true")
    parser.add_argument("--noise-bytes", type=int, default=0)
    parser.add_argument("--page", type=int, default=100)
    parser.add_argument("--tools", type=int)
    parser.add_argument("--endless", action="store_true")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--restless", action="store_true")
    parser.add_argument("--hang-on-relist", action="store_true")
    parser.add_argument("--slow-relist", type=float, default=0)
    parser.add_argument("--hang-on-list", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    parser.add_argument("--ask-when-met", action="store_true")
    return parser.parse_args(arguments)


def bear_witness(tool: str) -> None:
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.witness import executed

    executed(tool)


def complain(words: str) -> None:
    sys.stderr.write(words + "\n")
    sys.stderr.flush()


class RefusedError(Exception):
    """An answer that is a JSON-RPC error."""

    def __init__(self, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **more}


class Wire:
    """How messages leave the server."""

    def __init__(self) -> None:
        self.modern = False

    def raw(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def send(self, message: dict[str, Any]) -> None:
        if self.modern and "result" in message:
            message["result"] = {"resultType": "complete", **message["result"]}
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def die(self, status: int) -> None:
        os._exit(status)


class Tools:
    """What each tool does: gives its result, or `None` where it has answered by itself."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.listed = TOOLS

    def call(self, key: Any, params: dict[str, Any]) -> dict[str, Any] | None:
        name = params["name"]
        if not any(one["name"] == name and one.get("annotations") == READ for one in self.listed):
            bear_witness(name)
        do: Callable[..., Any] = getattr(self, name, lambda *_: f"{name} executed")
        done = do(params, json.dumps(key).encode())
        if isinstance(done, str):
            return {"content": [{"type": "text", "text": done}]}
        return done if done is None or isinstance(done, dict) else None

    def read_item(self, params: dict[str, Any], _key: bytes) -> dict[str, Any]:
        text = json.dumps(params.get("arguments"))
        return {"content": [{"type": "text", "text": text}], "seen": params}

    def pid(self, *_: Any) -> str:
        return str(os.getpid())

    def die(self, *_: Any) -> None:
        complain("boom: told to die")
        self.wire.die(3)

    def die_idle(self, _params: dict[str, Any], key: bytes) -> None:
        self.wire.raw(b'{"jsonrpc":"2.0","id":' + key + b',"result":{"content":[]}}\n')
        self.wire.die(4)

    def half(self, _params: dict[str, Any], key: bytes) -> None:
        self.wire.raw(b'{"jsonrpc": "2.0", "id": ' + key)
        self.wire.die(0)

    def slow(self, params: dict[str, Any], _key: bytes) -> str:
        time.sleep(params["arguments"]["seconds"])
        return "slept"

    def junk(self, _params: dict[str, Any], key: bytes) -> None:
        self.wire.raw(b"\n   \nnot json\n[1]\n")
        self.wire.raw(b'{"jsonrpc":"2.0","id":' + key + b',"result":{"content":[]}}\r\n')

    def bad_bytes(self, _params: dict[str, Any], key: bytes) -> None:
        content = b'[{"type":"text","text":"a\xffb"}]'
        self.wire.raw(
            b'{"jsonrpc":"2.0","id":' + key + b',"result":{"content":' + content + b"}}\n"
        )

    def surrogate(self, *_: Any) -> str:
        return "\ud83d"

    def big_int(self, *_: Any) -> dict[str, Any]:
        return {"content": [], "structuredContent": {"id": 1915883588174806058}}

    def big_line(self, *_: Any) -> str:
        return "x" * 5_000_000

    def to_stderr(self, params: dict[str, Any], _key: bytes) -> str:
        complain(json.dumps(params["arguments"]))
        return "said"

    def fail(self, *_: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": "it is down"}]
        return {"content": content, "isError": True, "structuredContent": {"error": {"code": "X"}}}

    def refuse(self, *_: Any) -> None:
        raise RefusedError(-32050, "not today", data={"why": None})

    def same_code(self, *_: Any) -> None:
        raise RefusedError(-32000, "Connection closed")

    def progress(self, params: dict[str, Any], _key: bytes) -> str:
        token = (params.get("_meta") or {}).get("progressToken")
        for done in (1, 2):
            told = {"progressToken": token, "progress": done, "x-unknown": done}
            self.wire.send({"method": "notifications/progress", "params": told})
        return "done"

    def log(self, *_: Any) -> str:
        told = {"level": "info", "data": {"kept": None}}
        self.wire.send({"method": "notifications/message", "params": told})
        return "logged"

    def start_daemon(self, *_: Any) -> str:
        self.listed = [*self.listed, *DAEMON_TOOLS]
        self.wire.send({"method": "notifications/tools/list_changed"})
        return "started"

    def ask_client(self, *_: Any) -> str:
        self.wire.send({"id": "q", "method": "roots/list"})
        return sys.stdin.buffer.readline().decode()


class Server:
    """Answers one message after the other."""

    def __init__(self, given: argparse.Namespace, wire: Wire) -> None:
        self.given = given
        self.wire = wire
        self.tools = Tools(wire)
        if given.tools is not None:
            self.tools.listed = [tool(f"tool_{n}", READ) for n in range(given.tools)]
        if given.twice:
            self.tools.listed = [tool("read_item"), *TOOLS]

    @property
    def changed(self) -> bool:
        return self.tools.listed[-len(DAEMON_TOOLS) :] == DAEMON_TOOLS

    def take(self, line: bytes) -> None:
        if self.given.log:
            with self.given.log.open("ab") as file:
                file.write(line.rstrip(b"\r\n") + b"\n")
        message = json.loads(line)
        if self.given.ask_when_met and message.get("method") == "notifications/initialized":
            self.wire.send({"id": "when met", "method": "roots/list"})
        if "method" not in message or "id" not in message:
            return
        params = message.get("params") or {}
        self.wire.modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        try:
            result = self.answer(message, params)
        except RefusedError as refused:
            self.wire.send({"id": message["id"], "error": refused.error})
            return
        if result is not None:
            self.wire.send({"id": message["id"], "result": result})

    def answer(self, message: dict[str, Any], params: dict[str, Any]) -> dict[str, Any] | None:
        match message["method"]:
            case "initialize":
                return self.hello(params)
            case "server/discover":
                return self.discovered()
            case "tools/list":
                if self.given.hang_on_list or (self.given.hang_on_relist and self.changed):
                    return None
                if self.changed:
                    time.sleep(self.given.slow_relist)
                return self.page(params.get("cursor"))
            case "tools/call":
                return self.tools.call(message["id"], params)
            case "resources/read":
                return {"contents": [], "x-unknown": None}
            case _:
                raise RefusedError(-32601, "Method not found")

    def discovered(self) -> dict[str, Any] | None:
        if self.given.exit_on_probe:
            self.wire.die(1)
        if self.given.ignore_probe:
            return None
        if self.given.era == "legacy":
            raise RefusedError(-32601, "Method not found")
        info = {"io.modelcontextprotocol/serverInfo": {"name": "wild", "version": "1"}}
        offered: dict[str, Any] = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
        return {**offered, "_meta": info, **CACHE}

    def hello(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocolVersion": self.given.revision or params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "wild", "version": "1"},
            "instructions": "Be wild.",
            "x-unknown": {"kept": None},
        }

    def page(self, cursor: str | None) -> dict[str, Any]:
        listed = self.tools.listed
        if self.given.restless:
            self.wire.send({"method": "notifications/tools/list_changed"})
        if self.given.endless:
            return {"tools": listed[:1], "nextCursor": "x"}
        start = int(cursor or 0)
        end = start + self.given.page
        page: dict[str, Any] = {"tools": listed[start:end], "x-page": start}
        page |= CACHE if self.wire.modern else {}
        if end < len(listed):
            page["nextCursor"] = str(end)
        return page


def main() -> None:
    given = options()
    if given.exit_on_start is not None:
        complain("boom: cannot start")
        sys.exit(given.exit_on_start)
    if given.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if given.noise_bytes:
        complain("e" * given.noise_bytes + "\nlast line")
    server = Server(given, Wire())
    if given.banner:
        server.wire.raw(b"My server v1.2\n")
    if given.hang_on_start:
        time.sleep(600)
    for line in sys.stdin.buffer:
        server.take(line)
    if given.stubborn:
        time.sleep(600)


if __name__ == "__main__":
    main()
