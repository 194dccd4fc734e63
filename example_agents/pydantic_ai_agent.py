"""An agent of pydantic-ai, in pytest's own process; its tools are the eval's servers'."""

from __future__ import annotations

import functools
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from mcp import Client

from pytest_mst import ClientRequest, model_errors

if TYPE_CHECKING:
    from pydantic_ai import Tool


async def clerk(request: ClientRequest) -> str:
    """Act on the input, and answer."""
    from pydantic_ai import Agent

    async with AsyncExitStack() as stack:
        tools: list[Tool[None]] = []
        for label in request.tools.servers:
            server = await stack.enter_async_context(Client(request.session.transport(label)))
            tools += await tools_of(server)
        agent = Agent(request.model, instructions="You keep the notes.", tools=tools)
        await stack.enter_async_context(agent)  # so that its connections end with the attempt
        with model_errors(request):
            return (await agent.run(request.input)).output


async def tools_of(server: Client) -> list[Tool[None]]:
    """Return a server's tools as the framework takes them."""
    from pydantic_ai import Tool

    return [
        Tool.from_schema(
            functools.partial(call, server, listed.name),
            name=listed.name,
            description=listed.description,
            json_schema=listed.input_schema,
        )
        for listed in (await server.list_tools()).tools
    ]


async def call(server: Client, tool: str, **arguments: Any) -> str:
    """Call a tool, and return what it says: to the model a failure is an answer, too."""
    result = await server.call_tool(tool, arguments)
    said = "\n".join(block.text for block in result.content if block.type == "text")
    return f"failed: {said}" if result.is_error else said
