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

sys.path.append(f"{os.path.dirname(__file__)}/../../..")  # noqa: PTH120 - pathlib is slow

from tests.line_server import bear_witness_unless_read, serve

LISTINGS: list[list[dict[str, Any]]] = [json.loads(tools) for tools in sys.argv[1:]]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "tools/list":
            return {"tools": LISTINGS.pop(0) if len(LISTINGS) > 1 else LISTINGS[0]}
        case "tools/call":
            with open(os.environ["DESK_LOG"], "a", encoding="utf-8") as log:  # noqa: PTH123 - quick
                log.write(json.dumps({"call": params["name"]}) + "\n")
            bear_witness_unless_read(params["name"], LISTINGS[0])
            return {"content": [{"type": "text", "text": f"{params['name']} done"}]}
        case _:
            return {}


if __name__ == "__main__":
    serve("listed", answer)
