"""An agent of the OpenAI Agents SDK, as a program: `openai_agent.py MCP_CONFIG MODEL < input`."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStreamableHttp


async def main(servers: dict[str, Any], model: str, text: str) -> None:
    """Act on the input, and print the answer."""
    set_tracing_disabled(disabled=True)
    async with AsyncExitStack() as stack:
        connected = [
            await stack.enter_async_context(
                MCPServerStreamableHttp(params={"url": server["url"]}, name=name)
            )
            for name, server in servers.items()
        ]
        agent = Agent(
            name="clerk",
            instructions="You keep the notes.",
            model=model,
            mcp_servers=connected,
        )
        print((await Runner.run(agent, text)).final_output)


config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
asyncio.run(main(config["mcpServers"], sys.argv[2], sys.stdin.read()))
