"""An MCP server over stdio that uses every feature of the protocol. Hand-written: it starts fast.

Run as a program: `python features.py --log FILE [--legacy]`; it speaks both eras if not told so.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODERN = "2026-07-28"
ENVELOPE = "io.modelcontextprotocol/protocolVersion"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
READS = ["ask", "need", "wait", "work", "say", "change", "touch", "echo", "fail", "refuse"]
ELICIT = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}


def listed(name: str, *, read: bool) -> dict[str, Any]:
    return {
        "name": name,
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": read},
        "x-unknown": {"kept": None},
    }


TOOLS = [*(listed(name, read=True) for name in READS), listed("write_item", read=False)]


def bear_witness(tool: str) -> None:
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.witness import executed

    executed(tool)


class Features:
    """Answers one message after the other; some calls are answered later, some never."""

    def __init__(self, log: Path, *, legacy: bool) -> None:
        self.log = log
        self.legacy = legacy
        self.modern = False
        self.asking: dict[Any, Any] = {}
        """Which call each question to the client belongs to."""
        self.listening: list[Any] = []
        self.subscribed: list[str] = []

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()

    def answer(self, key: Any, result: dict[str, Any]) -> None:
        stamp = {"resultType": "complete"} if self.modern else {}
        self.send({"id": key, "result": {**stamp, **result}})

    def text(self, key: Any, text: str) -> None:
        self.answer(key, {"content": [{"type": "text", "text": text}]})

    def take(self, line: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(line.rstrip() + b"\n")
        message = json.loads(line)
        method, key = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if method is None:
            call = self.asking.pop(key)
            self.text(call, json.dumps(message.get("result") or message.get("error")))
        elif key is not None:
            self.modern = ENVELOPE in (params.get("_meta") or {})
            self.asked(key, method, params)

    def asked(self, key: Any, method: str, params: dict[str, Any]) -> None:
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        capabilities["resources"] = {"subscribe": True}
        match method:
            case "server/discover" if not self.legacy:
                offered = {"supportedVersions": [MODERN], "capabilities": capabilities}
                self.answer(key, {**offered, "ttlMs": 0, "cacheScope": "private"})
            case "initialize":
                info = {"serverInfo": {"name": "features", "version": "1"}, "x-unknown": None}
                revision = {"protocolVersion": params["protocolVersion"]}
                self.answer(key, {**revision, "capabilities": capabilities, **info})
            case "tools/list":
                cached = {"ttlMs": 0, "cacheScope": "private"} if self.modern else {}
                self.answer(key, {"tools": TOOLS, "x-page": None, **cached})
            case "tools/call":
                self.called(key, params["name"], params.get("arguments") or {}, params)
            case "resources/subscribe":
                self.subscribed.append(params["uri"])
                self.answer(key, {})
            case "subscriptions/listen":
                self.listening.append(key)
                told = {"notifications": params["notifications"]}
                self.tell("subscriptions/acknowledged", told, [key])
            case _:
                error = {"code": -32601, "message": "Method not found"}
                self.send({"id": key, "error": error})

    def tell(self, what: str, params: dict[str, Any], listening: list[Any]) -> None:
        """Notify: each of who listens, in the newer era; everybody, in the older one."""
        for key in listening:
            given = {**params, "_meta": {SUBSCRIPTION: key}}
            self.send({"method": f"notifications/{what}", "params": given})
        if not self.modern:
            self.send({"method": f"notifications/{what}", "params": params})

    def called(self, key: Any, name: str, given: dict[str, Any], params: dict[str, Any]) -> None:
        if name not in READS:
            bear_witness(name)
        do: Callable[..., None] | None = getattr(self, f"tool_{name}", None)
        if do is None:
            self.text(key, f"{name} executed")
        else:
            do(key, given, params)

    def tool_ask(self, key: Any, given: dict[str, Any], _: object) -> None:
        self.asking[f"q{key}"] = key
        self.send({"id": f"q{key}", **given})

    def tool_need(self, key: Any, _: object, params: dict[str, Any]) -> None:
        if "inputResponses" in params:
            self.text(key, json.dumps([params["inputResponses"], params["requestState"]]))
            return
        need = {"resultType": "input_required", "inputRequests": {"who": ELICIT}}
        self.answer(key, {**need, "requestState": "s1"})

    def tool_wait(self, *_: object) -> None:
        """Never answer; who waits has to cancel."""

    def tool_work(self, key: Any, _: object, params: dict[str, Any]) -> None:
        token = (params.get("_meta") or {}).get("progressToken")
        for step in (1, 2):
            told = {"progressToken": token, "progress": step, "total": 2, "x": None}
            self.send({"method": "notifications/progress", "params": told})
        self.text(key, "worked")

    def tool_say(self, key: Any, *_: object) -> None:
        told = {"level": "info", "data": {"kept": None}}
        self.send({"method": "notifications/message", "params": told})
        self.text(key, "said")

    def tool_change(self, key: Any, *_: object) -> None:
        self.tell("tools/list_changed", {}, self.listening)
        self.text(key, "changed")

    def tool_touch(self, key: Any, given: dict[str, Any], _: object) -> None:
        self.tell("resources/updated", {"uri": given["uri"]}, self.listening)
        self.text(key, "touched")

    def tool_echo(self, key: Any, given: dict[str, Any], _: object) -> None:
        self.answer(key, {"content": [], "structuredContent": given, "x-unknown": [None]})

    def tool_fail(self, key: Any, *_: object) -> None:
        self.answer(key, {"content": [{"type": "text", "text": "no"}], "isError": True})

    def tool_refuse(self, key: Any, *_: object) -> None:
        error = {"code": -32050, "message": "not today", "data": {"why": None}}
        self.send({"id": key, "error": error})


def main() -> None:
    arguments = sys.argv[1:]
    log = Path(arguments[arguments.index("--log") + 1])
    server = Features(log, legacy="--legacy" in arguments)
    for line in sys.stdin.buffer:
        server.take(line)


if __name__ == "__main__":
    main()
