"""An MCP server over stdio that lists the tools it is given, of the standard library alone.

`python -IS listed.py TOOLS [LATER]`: each is JSON text, a list of tools; the first listing that it
is asked for has the one, and every other the other. Each call that reaches it is written down as
a line of JSON where `DESK_LOG` says.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def bear_witness(tool: str) -> None:
    sys.path.append(f"{os.path.dirname(__file__)}/../../..")  # noqa: PTH120 - pathlib is slow
    from tests.witness import executed

    executed(tool)


def result(message: dict[str, Any], listings: list[list[dict[str, Any]]]) -> dict[str, Any]:
    params = message.get("params") or {}
    match message["method"]:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "listed", "version": "1"},
            }
        case "tools/list":
            return {"tools": listings.pop(0) if len(listings) > 1 else listings[0]}
        case "tools/call":
            with open(os.environ["DESK_LOG"], "a", encoding="utf-8") as log:  # noqa: PTH123 - quick
                log.write(json.dumps({"call": params["name"]}) + "\n")
            listed = {one["name"]: one for one in listings[0]}
            hints = listed.get(params["name"], {}).get("annotations") or {}
            if hints.get("readOnlyHint") is not True:
                bear_witness(params["name"])
            return {"content": [{"type": "text", "text": f"{params['name']} done"}]}
        case _:
            return {}


def main(listings: list[list[dict[str, Any]]]) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result(message, listings)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main([json.loads(tools) for tools in sys.argv[1:]])
