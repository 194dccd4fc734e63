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

sys.path.append(str(Path(__file__).parents[3]))

from tests.line_server import bear_witness_unless_read, serve

FOLDER = Path(sys.argv[1])


def tools() -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((FOLDER / "tools.json").read_text())
    return listed


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "tools/list":
            note("list")
            return {"tools": tools()}
        case "tools/call":
            note(params["name"])
            bear_witness_unless_read(params["name"], tools())
            if params["name"] == "die":
                os._exit(3)
            return {"content": [{"type": "text", "text": f"{params['name']} executed"}]}
        case _:
            return {}


def note(what: str) -> None:
    with (FOLDER / "log").open("a") as log:
        log.write(f"{what}\n")


if __name__ == "__main__":
    serve("changing", answer)
