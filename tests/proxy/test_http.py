"""Servers over streamable HTTP."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from mcp import Client

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.unavailable import BrokenPart, ServerUnavailableError
from tests.proxy.servers.objects import Calls
from tests.proxy.setting import attempt, http, text
from tests.proxy.ways_in import raw_through
from tests.proxy.web import good_server, told_server

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("protocol", ["auto", "legacy"])
TOKEN = "tok-3f9a-secret"


@pytest.fixture(scope="module")
def good() -> Iterator[tuple[str, Calls, list[dict[str, str]]]]:
    with good_server() as served:
        yield served


@pytest.fixture(scope="module")
def told() -> Iterator[str]:
    with told_server() as address:
        yield address


@ERAS
@pytest.mark.parametrize("mode", [WriteMode.PLANNED, WriteMode.SIMULATED])
async def test_reads_reach_the_server_and_writes_do_not(
    good: tuple[str, Calls, list[dict[str, str]]], protocol: str, mode: WriteMode
) -> None:
    url, calls, _ = good
    calls.names.clear()
    with anyio.fail_after(20):
        async with attempt(http(url, protocol=protocol), mode=mode) as boundary:
            assert text(await boundary.call_tool("web", "look", {"name": "x"})) == "found x"
            await boundary.call_tool("web", "put", {"name": "x"})
            wrong = await boundary.call_tool("web", "put", {"nam": "x"})
            with pytest.raises(ToolCallError):
                await boundary.call_tool("web", "nope", {})
            async with Client(boundary.transport("web"), mode=protocol) as client:
                await client.call_tool("put", {"name": "y"})
                await client.call_tool("look", {"name": "y"})
    assert wrong["isError"] is True
    assert calls.names == ["look", "look"]
    assert [entry.refused for entry in boundary.entries] == [
        None,
        "invalid-arguments",
        "unknown-tool",
        None,
    ]


@ERAS
async def test_headers_and_the_token_are_sent(
    good: tuple[str, Calls, list[dict[str, str]]],
    protocol: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, _, headers = good
    headers.clear()
    monkeypatch.setenv("MST_TEST_TOKEN", TOKEN)
    auth = {"accessTokenEnv": "MST_TEST_TOKEN"}
    async with attempt(
        http(url, protocol=protocol, headers={"x-team": "a"}, auth=auth)
    ) as boundary:
        await boundary.call_tool("web", "look", {"name": "x"})
    posts = [one for one in headers if one.get("content-type") == "application/json"]
    assert {one.get("x-team") for one in posts} == {"a"}
    assert {one.get("authorization") for one in posts} == {f"Bearer {TOKEN}"}
    revision = "2026-07-28" if protocol == "auto" else "2025-11-25"
    assert posts[-1]["mcp-protocol-version"] == revision
    assert posts[-1].get("mcp-name") == ("look" if protocol == "auto" else None)


@ERAS
@pytest.mark.parametrize(
    ("path", "broke", "words"),
    [
        ("401", "connect", "401 Unauthorized"),
        ("403", "connect", "accessTokenEnv"),
        ("404", "connect", "serverUrl"),
        ("500", "connect", "500"),
        ("html", "handshake", "content type"),
        ("hang", "hang", "connectTimeoutMs"),
        ("cut", "connect", "ended the connection: RemoteProtocolError"),
    ],
)
async def test_what_is_wrong_with_an_address_is_told_without_its_secrets(
    told: str, protocol: str, path: str, broke: BrokenPart, words: str
) -> None:
    spec = http(
        f"{told}/{path}?key={TOKEN}",
        protocol=protocol,
        headers={"authorization": f"Bearer {TOKEN}"},
        connectTimeoutMs=800 if path == "hang" else 10_000,
    )
    with anyio.fail_after(15):
        async with Hub() as hub:
            with pytest.raises(ServerUnavailableError) as caught:
                await hub.list_tools(spec)
    error = caught.value
    assert error.broke == broke
    assert words in str(error)
    assert TOKEN not in str(error)
    assert TOKEN not in str(error.as_failure().failure)


async def test_an_address_where_nobody_listens_is_told_as_one() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/mcp"
        with anyio.fail_after(10):
            async with Hub() as hub:
                with pytest.raises(ServerUnavailableError, match="is it running") as caught:
                    await hub.list_tools(http(url))
    assert caught.value.broke == "connect"


@ERAS
async def test_a_connection_that_ends_in_a_call_is_that_calls_doing_and_is_opened_again(
    told: str, protocol: str
) -> None:
    spec = http(f"{told}/wild", protocol=protocol)
    with anyio.fail_after(20):
        async with (
            Hub() as hub,
            attempt(spec, hub=hub) as culprit,
            attempt(spec, hub=hub) as bystander,
        ):
            for boundary in (culprit, bystander):
                await boundary.call_tool("web", "read_item", {"id": "a"})
            with pytest.raises(ServerGoneError, match="ended the connection"):
                await culprit.call_tool("web", "die", {})
            assert text(await culprit.call_tool("web", "read_item", {"id": "b"})) == '{"id": "b"}'
    assert culprit.lost is None
    assert bystander.lost is not None
    assert bystander.lost.failure.retryable


async def test_a_server_that_was_gone_before_a_call_is_nobodys_doing() -> None:
    served = told_server()
    spec = http(f"{served.__enter__()}/wild")
    with anyio.fail_after(20):
        async with Hub() as hub, attempt(spec, hub=hub) as one, attempt(spec, hub=hub) as two:
            for boundary in (one, two):
                await boundary.call_tool("web", "read_item", {})
            await anyio.to_thread.run_sync(served.__exit__, None, None, None)
            with pytest.raises(InfrastructureError) as caught:
                await one.call_tool("web", "read_item", {})
            assert two.lost is not None
    assert caught.value.failure.retryable


async def test_a_token_that_is_not_set_is_told_by_its_variables_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MST_TEST_TOKEN", raising=False)
    spec = http("http://127.0.0.1:1/mcp", auth={"accessTokenEnv": "MST_TEST_TOKEN"})
    async with Hub() as hub:
        with pytest.raises(ServerUnavailableError, match="MST_TEST_TOKEN is not set"):
            await hub.list_tools(spec)


async def test_no_proxy_of_the_environment_stands_before_what_is_on_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody_answers:
        proxy = f"http://127.0.0.1:{nobody_answers.getsockname()[1]}"
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        with good_server() as (url, _, _), anyio.fail_after(20):
            async with Hub() as hub:
                assert "look" in (await hub.list_tools(http(url, connectTimeoutMs=5000))).tools


@ERAS
async def test_text_that_is_half_a_character_ends_no_connection(
    good: tuple[str, Calls, list[dict[str, str]]], protocol: str
) -> None:
    with anyio.fail_after(20):
        async with attempt(http(good[0], protocol=protocol)) as boundary:
            with pytest.raises(ToolCallError, match="cannot be sent") as caught:
                await boundary.call_tool("web", "look", {"name": "\ud83d"})
            assert text(await boundary.call_tool("web", "look", {"name": "x"})) == "found x"
    assert type(caught.value) is ToolCallError


@pytest.mark.parametrize("revision", [["x"], "a\r\nb: c", 5], ids=repr)
async def test_what_a_client_says_where_its_revision_should_be_ends_no_connection(
    good: tuple[str, Calls, list[dict[str, str]]], revision: Any
) -> None:
    url, _, headers = good
    meta = {"io.modelcontextprotocol/protocolVersion": revision}
    call = {"name": "look", "arguments": {"name": "x"}, "_meta": meta}
    with anyio.fail_after(20):
        async with (
            attempt(http(url, protocol="legacy")) as boundary,
            raw_through(boundary, "memory", modern=False, label="web") as client,
        ):
            headers.clear()
            answer = await client.ask(1, "tools/call", call)
    assert text(answer["result"]) == "found x"
    assert "2025-06-18" in {one.get("mcp-protocol-version") for one in headers}
