"""A small MCP server on the standard library alone, so that its own cost hides nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = [
    {
        "name": "look_up",
        "inputSchema": {"type": "object", "properties": {"key": {"type": "string"}}},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "put",
        "inputSchema": {
            "type": "object",
            "properties": {"key": {"type": "string"}, "value": {"type": "string"}},
            "required": ["key", "value"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"stored": {"type": "boolean"}, "id": {"type": "string"}},
            "required": ["stored", "id"],
        },
        "annotations": {"readOnlyHint": False},
    },
]


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; `None` for a method that there is not."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "desk", "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            size = int((params.get("arguments") or {}).get("size", 0))
            return {"content": [{"type": "text", "text": "found" + "x" * size}]}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    """Answer requests, a line each, until there are no more."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = result_of(message["method"], message.get("params") or {})
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            answer["result"] = result
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
