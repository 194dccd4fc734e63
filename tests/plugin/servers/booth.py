"""A server over streamable HTTP, made with the SDK as users make theirs, and with a child.

`python booth.py PORT [exit|deaf]`: it answers MCP at `/mcp` and a plain word at `/health`. With
`BOOTH_LOG` set it writes a line of JSON for its start, with the process ids of itself and of its
child, and for each call that reaches it. It says `BOOTH_WORDS` on its standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

READ = ToolAnnotations(read_only_hint=True)
booth = MCPServer("booth", version="1")


def log(**line: object) -> None:
    if path := os.environ.get("BOOTH_LOG"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def say(*words: object) -> None:
    sys.stderr.write(" ".join(map(str, words)) + "\n")
    sys.stderr.flush()


def authorization(context: Context) -> str:
    return (context.headers or {}).get("authorization", "none")


@booth.tool(annotations=READ)
def find(name: str = "") -> str:
    """Find something."""
    log(call="find")
    return f"found {name}"


@booth.tool()
def post(text: str = "") -> str:
    """Post something."""
    log(call="post")
    sys.path.append(str(Path(__file__).parents[3]))
    from tests.witness import executed

    executed("post")
    return f"posted {text}"


@booth.tool(annotations=READ)
def who_am_i(context: Context) -> str:
    """Say who asks, as a careless server does."""
    log(call="who_am_i")
    say("asked by", authorization(context))
    return f"you are {authorization(context)} and {(context.headers or {}).get('x-team')}"


@booth.tool(annotations=READ)
def fall_over(context: Context) -> str:
    """Fail, and say to whom."""
    log(call="fall_over")
    message = f"not for {authorization(context)}, nor with {os.environ.get('BOOTH_WORDS')}"
    raise ToolError(message)


@booth.tool(annotations=READ)
def close_down() -> str:
    """End the whole program."""
    log(call="close_down")
    os._exit(7)


async def health(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("well")


def main(port: str, *words: str) -> None:
    say(os.environ.get("BOOTH_WORDS", "open"))
    child = subprocess.Popen([sys.executable, "-IS", "-c", "import time; time.sleep(600)"])
    log(started=[os.getpid(), child.pid])
    if "exit" in words:
        say("no booth today", os.environ.get("BOOTH_WORDS", ""))
        sys.exit(3)
    if "deaf" in words:
        time.sleep(600)
    app = booth.streamable_http_app()
    app.routes.append(Route("/health", health))
    uvicorn.run(app, port=int(port), log_level="error")


main(*sys.argv[1:])
