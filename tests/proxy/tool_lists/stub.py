"""Serves a list of tools over stdio and writes down every call that reaches it.

Run as a program: `python -IS stub.py LIST LOG`. It does nothing, so that any list can be served;
it speaks the era with a handshake, and lists ten tools a page, so that no tool is on the first
page by luck.
"""

from __future__ import annotations

import json
import sys
from typing import Any, TextIO

PAGE = 10


def result_of(method: str, params: dict[str, Any], tools: list[Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "stub", "version": "1"},
            }
        case "tools/list":
            start = int(params.get("cursor", 0))
            more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(tools) else {}
            return {"tools": tools[start : start + PAGE], **more}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"executed {params['name']}"}]}
        case _:
            return None


def serve(tools: list[Any], log: TextIO) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if method == "tools/call":
            log.write(json.dumps(params) + "\n")
            log.flush()
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        result = result_of(method, params, tools)
        if result is None:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            answer["result"] = result
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with (
        open(sys.argv[1], encoding="utf-8") as listed,  # noqa: PTH123 - pathlib is slow to import
        open(sys.argv[2], "a", encoding="utf-8") as written,  # noqa: PTH123 - as above
    ):
        serve(json.load(listed), written)
