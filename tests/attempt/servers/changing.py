"""An MCP server over stdio whose tools change: they are read from a file at each listing.

Run as a program: `python changing.py FOLDER`. `FOLDER/tools.json` holds the tools; each listing
and each call adds a line to `FOLDER/log`. Of the standard library only, so that it starts at once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any


def bear_witness(tool: str) -> None:
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.witness import executed

    executed(tool)


def answer(message: dict[str, Any], folder: Path) -> dict[str, Any]:
    params = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "changing", "version": "1"},
            }
        case "tools/list":
            note(folder, "list")
            return {"tools": json.loads((folder / "tools.json").read_text())}
        case "tools/call":
            note(folder, params["name"])
            listed = {one["name"]: one for one in json.loads((folder / "tools.json").read_text())}
            hints = listed.get(params["name"], {}).get("annotations") or {}
            if hints.get("readOnlyHint") is not True:
                bear_witness(params["name"])
            if params["name"] == "die":
                os._exit(3)
            return {"content": [{"type": "text", "text": f"{params['name']} executed"}]}
        case _:
            return {}


def note(folder: Path, what: str) -> None:
    with (folder / "log").open("a") as log:
        log.write(f"{what}\n")


def main(folder: Path) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message, folder)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
