"""An MCP server over stdio that misbehaves when told to. Hand-written, so that it starts fast.

Run as a program: `python wild.py [--log FILE] [--exit-on-start 3] ...`; it speaks both eras.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
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
    *(tool(name, READ) for name in ("fail", "refuse", "progress", "start_daemon", "to_stderr")),
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


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log")
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
    parser.add_argument("--hang-on-list", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    return parser.parse_args()


class Server:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.modern = False
        count = given.tools
        self.tools = TOOLS if count is None else [tool(f"tool_{n}", READ) for n in range(count)]

    def log(self, line: bytes) -> None:
        if self.given.log:
            with open(self.given.log, "ab") as file:  # noqa: PTH123  starts fast
                file.write(line.rstrip(b"\r\n") + b"\n")

    def send(self, message: dict[str, Any]) -> None:
        if self.modern and "result" in message:
            message["result"] = {"resultType": "complete", **message["result"]}
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def answer(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        self.modern = "io.modelcontextprotocol/protocolVersion" in (params.get("_meta") or {})
        if method is None or "id" not in message:
            return
        match method:
            case "initialize":
                result = self.hello(params)
            case "server/discover":
                if self.given.exit_on_probe:
                    os._exit(1)
                if self.given.ignore_probe:
                    return
                if self.given.era == "legacy":
                    self.refuse(message, -32601, "Method not found")
                    return
                info = {"io.modelcontextprotocol/serverInfo": {"name": "wild", "version": "1"}}
                result = {
                    "supportedVersions": [MODERN],
                    "capabilities": {"tools": {}},
                    "_meta": info,
                    **CACHE,
                }
            case "tools/list":
                if self.given.hang_on_list:
                    return
                result = self.listed(params.get("cursor"))
            case "tools/call":
                self.call(message, params)
                return
            case "resources/read":
                result = {"contents": [], "x-unknown": None}
            case _:
                self.refuse(message, -32601, "Method not found")
                return
        self.send({"id": message["id"], "result": result})

    def hello(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocolVersion": self.given.revision or params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "wild", "version": "1"},
            "instructions": "Be wild.",
            "x-unknown": {"kept": None},
        }

    def listed(self, cursor: str | None) -> dict[str, Any]:
        if self.given.endless:
            return {"tools": self.tools[:1], "nextCursor": "x"}
        start = int(cursor or 0)
        end = start + self.given.page
        page: dict[str, Any] = {"tools": self.tools[start:end], "x-page": start}
        page |= CACHE if self.modern else {}
        if end < len(self.tools):
            page["nextCursor"] = str(end)
        return page

    def refuse(self, message: dict[str, Any], code: int, text: str, data: object = None) -> None:
        error = {"code": code, "message": text} | ({} if data is None else {"data": data})
        self.send({"id": message["id"], "error": error})

    def say(self, message: dict[str, Any], text: str, **more: Any) -> None:
        content = [{"type": "text", "text": text}]
        self.send({"id": message["id"], "result": {"content": content, **more}})

    def call(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        key, given = json.dumps(message["id"]).encode(), params.get("arguments")
        match params["name"]:
            case "read_item":
                self.say(message, json.dumps(given), seen=params)
            case "pid":
                self.say(message, str(os.getpid()))
            case "die":
                print("boom: told to die", file=sys.stderr, flush=True)
                os._exit(3)
            case "die_idle":
                self.say(message, "bye")
                os._exit(4)
            case "half":
                self.raw(b'{"jsonrpc": "2.0", "id": ' + key)
                os._exit(0)
            case "slow":
                time.sleep(given["seconds"])
                self.say(message, "slept")
            case "junk":
                self.raw(b"\n   \nnot json\n[1]\n")
                self.raw(b'{"jsonrpc":"2.0","id":' + key + b',"result":{"content":[]}}\r\n')
            case "bad_bytes":
                self.raw(
                    b'{"jsonrpc":"2.0","id":' + key + b',"result":{"content":'
                    b'[{"type":"text","text":"a\xffb"}]}}\n'
                )
            case "surrogate":
                self.say(message, "\ud83d")
            case "big_int":
                self.say(message, "1", structuredContent={"id": 1915883588174806058})
            case "big_line":
                self.say(message, "x" * 5_000_000)
            case "to_stderr":
                print(json.dumps(given), file=sys.stderr, flush=True)
                self.say(message, "said")
            case "fail":
                self.say(
                    message, "it is down", isError=True, structuredContent={"error": {"code": "X"}}
                )
            case "refuse":
                self.refuse(message, -32050, "not today", {"why": None})
            case "same_code":
                self.refuse(message, -32000, "Connection closed")
            case "progress":
                token = (params.get("_meta") or {}).get("progressToken")
                for done in (1, 2):
                    told = {"progressToken": token, "progress": done, "x-unknown": done}
                    self.send({"method": "notifications/progress", "params": told})
                self.say(message, "done")
            case "log":
                told = {"level": "info", "data": {"kept": None}}
                self.send({"method": "notifications/message", "params": told})
                self.say(message, "logged")
            case "start_daemon":
                self.tools = [*self.tools, *DAEMON_TOOLS]
                self.send({"method": "notifications/tools/list_changed"})
                self.say(message, "started")
            case "ask_client":
                self.send({"id": "q", "method": "roots/list"})
                self.say(message, sys.stdin.buffer.readline().decode())
            case name:
                self.say(message, f"{name} executed")


def main() -> None:
    given = options()
    if given.exit_on_start is not None:
        print("boom: cannot start", file=sys.stderr)
        sys.exit(given.exit_on_start)
    if given.stubborn:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if given.noise_bytes:
        sys.stderr.write("e" * given.noise_bytes + "\nlast line\n")
        sys.stderr.flush()
    server = Server(given)
    if given.banner:
        server.raw(b"My server v1.2\n")
    if given.hang_on_start:
        time.sleep(600)
    for line in sys.stdin.buffer:
        server.log(line)
        server.answer(json.loads(line))
    if given.stubborn:
        time.sleep(600)


if __name__ == "__main__":
    main()
