"""Server objects in the process of the tests, and what they were asked to do."""

from __future__ import annotations

import threading
import time
from typing import Any

from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from tests.witness import executed

READ = ToolAnnotations(read_only_hint=True)


class Calls:
    """What a server was asked to do."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.released = threading.Event()


def make_server() -> tuple[MCPServer, Calls]:
    """Make a server of the SDK's high-level kind."""
    calls = Calls()
    made = MCPServer("shelf", version="2")

    @made.tool(annotations=READ)
    def look(name: str) -> str:
        """Look something up."""
        calls.names.append("look")
        return f"found {name}"

    @made.tool()
    def put(name: str, count: int = 1) -> dict[str, int]:
        """Put something on the shelf."""
        calls.names.append("put")
        executed("put")
        return {name: count}

    @made.tool(annotations=READ)
    async def block() -> str:
        """Block the event loop until released."""
        calls.released.wait(30)
        return "released"

    @made.tool(annotations=READ)
    async def leave() -> str:
        """End the whole interpreter, as a careless tool would."""
        raise SystemExit(5)

    return made, calls


def make_low_level() -> Server[Any]:
    """Make a server of the SDK's low-level kind."""

    async def list_tools(_ctx: Any, _params: Any) -> ListToolsResult:
        schema = {"type": "object"}
        return ListToolsResult(tools=[Tool(name="look", input_schema=schema, annotations=READ)])

    async def call_tool(_ctx: Any, params: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=params.name)])

    return Server("low", on_list_tools=list_tools, on_call_tool=call_tool)


server, server_calls = make_server()
low_level = make_low_level()
not_a_server = time
