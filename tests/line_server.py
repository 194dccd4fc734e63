"""The loop of test servers over stdio; of the standard library only, so that they start at once."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from tests.witness import executed

Tools = list[dict[str, Any]]


def bear_witness_unless_read(name: str, tools: Tools) -> None:
    """Bear witness to a call that was carried out, of a tool that does not say it only reads."""
    listed = {one["name"]: one for one in tools}
    hints = listed.get(name, {}).get("annotations") or {}
    if hints.get("readOnlyHint") is not True:
        executed(name)


def serve(name: str, answer: Callable[[str, dict[str, Any]], dict[str, Any]]) -> None:
    """Answer requests in the era with a handshake, a line each, until there are no more.

    Args:
        name: what the server calls itself.
        answer: gives the result of a request, by its method and parameters.

    """
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        method, params = message["method"], message.get("params") or {}
        if method == "initialize":
            result = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        else:
            result = answer(method, params)
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()
