"""An agent of LangChain, as a program: `langchain_agent.py MCP_CONFIG MODEL < input`.

It prints one JSON object with its answer and its tool calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main(servers: dict[str, Any], model: str, text: str) -> None:
    """Act on the input, and print the answer."""
    tools = await MultiServerMCPClient(
        {
            name: {"transport": "streamable_http", "url": server["url"]}
            for name, server in servers.items()
        }
    ).get_tools()
    agent = create_agent(
        ChatOpenAI(model=model, base_url=os.environ["OPENAI_BASE_URL"]),
        tools,
        system_prompt="You keep the notes.",
    )
    done = await agent.ainvoke({"messages": [{"role": "user", "content": text}]})
    messages = done["messages"]
    calls = [call for message in messages for call in getattr(message, "tool_calls", [])]
    print(json.dumps({"answer": messages[-1].text, "calls": calls}))


config = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
asyncio.run(main(config["mcpServers"], sys.argv[2], sys.stdin.read()))
