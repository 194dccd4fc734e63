"""MCP sessions through the in-memory transport, compared with sessions without the proxy."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.types import ListRootsResult

from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.sdk import as_dict, as_session_message
from tests.proxy.setting import SERVERS, attempt, called, received, text, wild

pytestmark = pytest.mark.anyio
CLIENT_ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
SERVER_ERAS = pytest.mark.parametrize("era", ["both", "legacy"])

MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class RawClient:
    """A client that sends and sees nothing but raw messages."""

    def __init__(self, streams: Any, *, modern: bool) -> None:
        self._read, self._write = streams
        self._modern = modern
        self.notifications: list[dict[str, Any]] = []

    async def start(self) -> dict[str, Any]:
        if self._modern:
            return await self.ask("d", "server/discover", {})
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": ENVELOPE_CLIENT}
        answer = await self.ask("i", "initialize", hello)
        await self._write.send(
            as_session_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
        )
        return answer

    async def ask(self, key: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
        given = dict(params)
        if self._modern:
            given["_meta"] = {**given.get("_meta", {}), **ENVELOPE}
        request = {"jsonrpc": "2.0", "id": key, "method": method, "params": given}
        await self._write.send(as_session_message(request))
        while True:
            message = as_dict(await self._read.receive())
            assert message is not None
            if "id" in message:
                assert (message["id"], type(message["id"])) == (key, type(key))
                return message
            self.notifications.append(message)

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        notification = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._write.send(as_session_message(notification))


ENVELOPE_CLIENT = ENVELOPE["io.modelcontextprotocol/clientInfo"]


@asynccontextmanager
async def raw_client(
    boundary: Boundary, label: str = "wild", *, modern: bool
) -> AsyncIterator[RawClient]:
    async with boundary.transport(label) as streams:
        client = RawClient(streams, modern=modern)
        await client.start()
        yield client


@CLIENT_ERAS
@SERVER_ERAS
async def test_an_sdk_client_works_through_the_boundary(
    tmp_path: Path, mode: Any, era: str
) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(20):
        async with (
            attempt(wild("--era", era, log=log)) as boundary,
            Client(boundary.transport("wild"), mode=mode) as client,
        ):
            listed = await client.list_tools()
            read = await client.call_tool("read_item", {"id": "a"})
            write = await client.call_tool("make_record", {"id": "a"})
            wrong = await client.call_tool("write_item", {})
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("nobody_lists_this", {})
            version = client.protocol_version
    assert version == (MODERN if (mode, era) == ("auto", "both") else "2025-11-25")
    assert {"read_item", "make_record"} <= {tool.name for tool in listed.tools}
    assert not read.is_error
    assert write.structured_content == {"id": "", "created": False}
    assert wrong.is_error
    assert unknown.value.code == -32602
    assert called(log) == ["read_item"]
    assert [entry.refused for entry in boundary.entries] == [
        None,
        "invalid-arguments",
        "unknown-tool",
    ]
    assert [call.tool for call in boundary.calls] == [
        "read_item",
        "make_record",
        "write_item",
        "nobody_lists_this",
    ]


@asynccontextmanager
async def direct_client(*flags: str, modern: bool) -> AsyncIterator[RawClient]:
    """Open the same server without anything before it."""
    args = [str(SERVERS / "wild.py"), *flags]
    with open("/dev/null", "w") as errlog:  # noqa: ASYNC230, PTH123
        server = StdioServerParameters(command=sys.executable, args=args)
        async with stdio_client(server, errlog=errlog) as streams:
            client = RawClient(streams, modern=modern)
            await client.start()
            yield client


@pytest.mark.parametrize("modern", [True, False])
async def test_every_answer_is_what_the_server_itself_gives(*, modern: bool) -> None:
    asked: list[tuple[Any, str, dict[str, Any]]] = [
        ("1", "tools/list", {}),
        (1, "tools/list", {"cursor": "8"}),
        ("abc", "tools/call", {"name": "fail", "arguments": {}}),
        (0, "tools/call", {"name": "refuse"}),
        ("6f2c", "tools/call", {"name": "read_item", "arguments": {"a": None}, "x": {"y": None}}),
        (2, "resources/read", {"uri": "x://y"}),
        (3, "prompts/list", {}),
    ]
    answers: dict[str, list[dict[str, Any]]] = {"direct": [], "through": []}
    with anyio.fail_after(20):
        async with direct_client("--page", "8", modern=modern) as client:
            for one in asked:
                answers["direct"].append(await client.ask(*one))
        async with (
            attempt(wild("--page", "8")) as boundary,
            raw_client(boundary, modern=modern) as client,
        ):
            for one in asked:
                answers["through"].append(await client.ask(*one))
    assert answers["through"] == answers["direct"]


@pytest.mark.parametrize("modern", [True, False])
async def test_stopped_writes_keep_the_requests_id_and_say_what_the_era_wants(
    *, modern: bool
) -> None:
    with anyio.fail_after(20):
        async with attempt(wild()) as boundary, raw_client(boundary, modern=modern) as client:
            for key in ("1", 1, "abc", 0):
                answer = await client.ask(
                    key, "tools/call", {"name": "write_item", "arguments": {"id": "a"}}
                )
                assert ("resultType" in answer["result"]) is modern
                assert answer["result"] == boundary.entries[-1].reply
    assert len(boundary.entries) == 4


@pytest.mark.parametrize("given", [{}, {"arguments": None}, {"arguments": {}}])
async def test_absent_arguments_are_forwarded_as_sent(
    tmp_path: Path, given: dict[str, Any]
) -> None:
    log = tmp_path / "log"
    async with attempt(wild(log=log)) as boundary, raw_client(boundary, modern=False) as client:
        await client.ask(1, "tools/call", {"name": "read_item", **given})
        await client.ask(2, "tools/call", {"name": "odd", **given})
    (sent,) = (one["params"] for one in received(log) if one.get("method") == "tools/call")
    assert sent == {"name": "read_item", **given}
    assert boundary.entries[0].arguments == {}


@pytest.mark.parametrize(
    ("meta", "join_id"),
    [
        ({"claudecode/toolUseId": "toolu_1"}, "toolu_1"),
        ({"callId": "c1"}, "c1"),
        ({"callId": 7}, "7"),
        ({"other": "x"}, None),
    ],
)
async def test_a_clients_own_id_of_a_call_is_kept(
    meta: dict[str, Any], join_id: str | None
) -> None:
    async with attempt(wild()) as boundary, raw_client(boundary, modern=False) as client:
        await client.ask(
            1, "tools/call", {"name": "write_item", "arguments": {"id": "a"}, "_meta": meta}
        )
    assert boundary.entries[0].join_id == join_id
    assert boundary.calls[0].join_id == join_id


@pytest.mark.parametrize("modern", [True, False])
async def test_progress_comes_under_the_clients_own_token(*, modern: bool) -> None:
    with anyio.fail_after(20):
        async with attempt(wild()) as boundary, raw_client(boundary, modern=modern) as client:
            params = {"name": "progress", "_meta": {"progressToken": "mine"}}
            await client.ask(1, "tools/call", params)
    assert [one["params"] for one in client.notifications] == [
        {"progressToken": "mine", "progress": done, "x-unknown": done} for done in (1, 2)
    ]


async def test_a_cancelled_request_is_cancelled_at_the_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(20):
        async with (
            attempt(wild(log=log)) as boundary,
            Client(boundary.transport("wild"), mode="legacy") as client,
        ):
            with anyio.move_on_after(0.5):
                await client.call_tool("slow", {"seconds": 1})
            await client.call_tool("read_item", {})
    methods = [one["method"] for one in received(log) if "method" in one]
    assert methods.count("notifications/cancelled") == 1


async def test_a_changed_list_is_told_to_the_client() -> None:
    with anyio.fail_after(20):
        async with attempt(wild()) as boundary, raw_client(boundary, modern=False) as client:
            await client.ask(1, "tools/call", {"name": "start_daemon"})
            listed = await client.ask(2, "tools/list", {})
            await client.ask(3, "tools/call", {"name": "create_x"})
    methods = [one["method"] for one in client.notifications]
    assert methods == ["notifications/tools/list_changed"]
    assert listed["result"]["tools"][-1]["name"] == "create_x"
    assert [entry.tool for entry in boundary.entries] == ["create_x"]


@pytest.mark.parametrize("modern", [True, False])
async def test_log_lines_come_to_the_client_they_are_for(*, modern: bool) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/logLevel": "info"}} if modern else {}
    with anyio.fail_after(20):
        async with attempt(wild()) as boundary, raw_client(boundary, modern=modern) as client:
            await client.ask(1, "tools/call", {"name": "log", **meta})
    told = [one["params"] for one in client.notifications]
    assert told == [{"level": "info", "data": {"kept": None}}]


async def test_the_server_can_ask_a_client_that_declares_that_it_can_be_asked() -> None:
    async def roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    spec = wild()
    with anyio.fail_after(20):
        async with Hub() as hub, attempt(spec, hub=hub) as boundary:
            async with Client(
                boundary.transport("wild"), mode="legacy", list_roots_callback=roots
            ) as client:
                asked = await client.call_tool("ask_client", {})
                mine = await client.call_tool("pid", {})
            shared = await boundary.call_tool("wild", "pid", {})
    assert '"roots"' in asked.content[0].model_dump()["text"]
    assert mine.content[0].model_dump()["text"] != text(shared)


async def test_the_revision_a_client_asks_for_is_passed_through() -> None:
    spec = wild("--revision", "2024-11-05")
    with anyio.fail_after(5):
        async with (
            attempt(spec) as boundary,
            Client(boundary.transport("wild"), mode="legacy") as client,
        ):
            assert client.protocol_version == "2024-11-05"
            assert client.instructions == "Be wild."


@CLIENT_ERAS
async def test_a_server_that_dies_in_a_call_is_an_error_and_the_session_goes_on(mode: Any) -> None:
    with anyio.fail_after(20):
        async with (
            attempt(wild()) as boundary,
            Client(boundary.transport("wild"), mode=mode) as client,
        ):
            with pytest.raises(MCPError, match="status 3") as caught:
                await client.call_tool("die", {})
            again = await client.call_tool("read_item", {"id": "b"})
    assert caught.value.code == -32000
    assert not again.is_error
    assert boundary.lost is None


@pytest.mark.parametrize("isolation", ["attempt", "variant"])
async def test_sessions_and_calls_with_dicts_share_one_record(isolation: Any) -> None:
    with anyio.fail_after(20):
        async with (
            attempt(wild(), mode=WriteMode.SIMULATED, isolation=isolation) as boundary,
            Client(boundary.transport("wild")) as client,
        ):
            simulated = await client.call_tool("make_record", {"id": "a"})
            await boundary.call_tool("wild", "write_item", {"id": "b"})
    assert simulated.structured_content == {"id": "", "created": True}
    assert [(entry.seq, entry.tool) for entry in boundary.entries] == [
        (0, "make_record"),
        (1, "write_item"),
    ]


CALL = {"name": "write_item", "arguments": {"id": "a"}}


async def test_what_only_looks_like_a_call_reaches_no_guarded_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(20):
        async with (
            attempt(wild(log=log), isolation="attempt") as boundary,
            raw_client(boundary, modern=False) as client,
        ):
            await client.tell("tools/call", CALL)
            refused = await client.ask(1, "tools/Call", CALL)
            await client.ask(2, "tools/call", {"name": "read_item", "arguments": {"id": "b"}})
    assert refused["error"]["code"] == -32601
    assert refused["error"]["message"] == "Method not found"
    assert called(log) == ["read_item"]
    assert "tools/Call" not in [one.get("method") for one in received(log)]
    assert list(boundary.entries) == []


async def test_requests_that_nobody_knows_reach_an_unguarded_server(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(20):
        async with (
            attempt(wild(log=log), mode=WriteMode.UNGUARDED, isolation="attempt") as boundary,
            raw_client(boundary, modern=False) as client,
        ):
            await client.ask(1, "custom/thing", {"x": 1})
    (sent,) = (one for one in received(log) if one.get("method") == "custom/thing")
    assert sent["params"] == {"x": 1}
