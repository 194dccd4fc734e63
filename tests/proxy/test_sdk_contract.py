"""What the proxy relies on in the MCP SDK and the SDK does not promise: fails when it moves."""

from __future__ import annotations

import inspect
from typing import Any

import anyio
import mcp_types
import mcp_types.version
import pytest
from mcp.client.stdio import DEFAULT_INHERITED_ENV_VARS
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.runner import serve_dual_era_loop, serve_loop
from mcp.shared.message import ClientMessageMetadata
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from pytest_mst.local import child
from pytest_mst.proxy import handshake, json_rpc, session_front
from pytest_mst.proxy.sdk import (
    Inbound,
    RawServer,
    as_dict,
    as_session_message,
    low_level_server,
    memory_streams,
)

ENVELOPE = {
    handshake.REVISION_KEY: handshake.LATEST_MODERN,
    handshake.CLIENT_KEY: {"name": "c", "version": "1"},
    handshake.CAPABILITIES_KEY: {},
}


def test_our_words_of_the_protocol_are_the_sdks() -> None:
    assert handshake.HANDSHAKE_REVISIONS == mcp_types.version.HANDSHAKE_PROTOCOL_VERSIONS
    assert handshake.MODERN_REVISIONS == mcp_types.version.MODERN_PROTOCOL_VERSIONS
    assert handshake.REVISION_KEY == mcp_types.PROTOCOL_VERSION_META_KEY
    assert handshake.CLIENT_KEY == mcp_types.CLIENT_INFO_META_KEY
    assert handshake.CAPABILITIES_KEY == mcp_types.CLIENT_CAPABILITIES_META_KEY
    assert handshake.SERVER_KEY == mcp_types.SERVER_INFO_META_KEY
    assert session_front._LOG_LEVEL_KEY == mcp_types.LOG_LEVEL_META_KEY
    assert session_front._SUBSCRIPTION_KEY == SUBSCRIPTION_ID_META_KEY
    assert list(child.SAFE_ENVIRONMENT) == DEFAULT_INHERITED_ENV_VARS
    assert json_rpc.CONNECTION_CLOSED == mcp_types.CONNECTION_CLOSED
    assert json_rpc.REQUEST_TIMEOUT == mcp_types.REQUEST_TIMEOUT
    assert json_rpc.INVALID_PARAMS == mcp_types.INVALID_PARAMS
    assert json_rpc.METHOD_NOT_FOUND == mcp_types.METHOD_NOT_FOUND
    assert json_rpc.INTERNAL_ERROR == mcp_types.INTERNAL_ERROR


def test_the_names_that_are_used_are_where_they_were() -> None:
    assert isinstance(Server("s").middleware, list)
    high = MCPServer("s")
    assert low_level_server(high) is high._lowlevel_server
    assert low_level_server(object()) is None
    for loop in (serve_loop, serve_dual_era_loop):
        assert "lifespan_state" in inspect.signature(loop).parameters
    assert "max_sse_event_size" in inspect.signature(streamable_http_client).parameters
    assert ClientMessageMetadata(headers={"a": "b"}).headers == {"a": "b"}


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": "1", "method": "m", "params": {"a": None, "x": [1.5]}},
        {"jsonrpc": "2.0", "id": 1, "method": "m"},
        {"jsonrpc": "2.0", "method": "n", "params": {}},
        {"jsonrpc": "2.0", "id": 0, "result": {"a": None, "big": 2**63, "lone": "\ud83d"}},
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -1, "message": "no", "data": {"a": None}}},
        {"jsonrpc": "2.0", "id": 0, "error": {"code": -1, "message": "no"}},
    ],
)
def test_messages_pass_the_sdks_models_untouched(message: dict[str, Any]) -> None:
    assert as_dict(as_session_message(message)) == message


@pytest.mark.anyio
@pytest.mark.parametrize("modern", [True, False])
async def test_a_middleware_alone_answers_every_method_with_what_it_is_given(
    *, modern: bool
) -> None:
    heard: list[str] = []
    odd = {"x": None, "deep": {"y": None}, "big": 2**63}

    async def answer(inbound: Inbound) -> dict[str, Any]:
        assert inbound.is_modern is (modern and inbound.method != "initialize")
        if inbound.method == "tools/call":
            await inbound.notify("notifications/progress", {"a": None}, related=True)
            await inbound.notify("notifications/other", {"b": None}, related=False)
        return {"protocolVersion": "2025-06-18"} if inbound.method == "initialize" else odd

    async def hear(inbound: Inbound) -> None:
        heard.append(inbound.method)

    server = RawServer(answer, hear)
    params: dict[str, Any] = {"name": "t", "arguments": [None]}
    if modern:
        params["_meta"] = ENVELOPE
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": ENVELOPE[handshake.CLIENT_KEY],
    }
    sent: list[dict[str, Any]] = [
        {"id": "i", "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": params},
        {"id": "2", "method": "made/up", "params": params},
    ]
    got: list[Any] = []
    with anyio.fail_after(5):
        async with memory_streams() as (client, ours), anyio.create_task_group() as tasks:

            async def serve() -> None:
                await server.serve(*ours, handshake_only=not modern)

            tasks.start_soon(serve)
            for message in sent[2:] if modern else sent:
                await client[1].send(as_session_message({"jsonrpc": "2.0", **message}))
                while "id" in message:
                    got.append(as_dict(await client[0].receive()))
                    if "id" in got[-1]:
                        break
            tasks.cancel_scope.cancel()
    assert [one["result"] for one in got if one.get("id") in (1, "2")] == [odd, odd]
    # A notification's nulls are the SDK's to drop or to keep; ours are kept.
    told = [one["params"] for one in got if one.get("method") == "notifications/progress"]
    assert told == [{"a": None}]
    assert heard == ([] if modern else ["notifications/initialized"])
