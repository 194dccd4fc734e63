"""Streamable HTTP on loopback: who is let in, and what becomes of those who leave or stay."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client, MCPError

from pytest_mst.domain.write import WriteEntry
from pytest_mst.proxy import http_front
from pytest_mst.proxy.hub import Hub
from tests.proxy.setting import attempt, http, wild
from tests.proxy.ways_in import CLIENT, ENVELOPE, MODERN, features, times_cancelled, until
from tests.proxy.web import turning_server

pytestmark = pytest.mark.anyio
BOUND_S = 20
ACCEPT = {"accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}


def request(method: str, params: dict[str, Any], key: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def modern(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Give what a POST of the newer era needs, as keywords for `httpx2`."""
    headers = {**ACCEPT, "mcp-protocol-version": MODERN, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = params["name"]
    return {"headers": headers, "json": request(method, {**params, "_meta": ENVELOPE})}


@asynccontextmanager
async def browser() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=httpx2.Timeout(BOUND_S), verify=False) as client:
        yield client


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


async def test_each_attempt_and_server_has_one_address_that_nobody_can_guess() -> None:
    spec, other = wild(), wild(label="other")
    async with Hub() as hub, attempt(spec, other, hub=hub) as one, attempt(spec, hub=hub) as two:
        urls = [await one.url("wild"), await one.url("other"), await two.url("wild")]
        again = await one.url("wild")
        with pytest.raises(KeyError):
            await one.url("nobody")
    assert again == urls[0]
    assert repr(urls[0]).endswith("/t/[token]/mcp'")
    assert len({urlsplit(url).netloc for url in urls}) == 1
    assert all(url.startswith("http://127.0.0.1:") for url in urls)
    tokens = {urlsplit(url).path.removeprefix("/t/").removesuffix("/mcp") for url in urls}
    assert len(tokens) == 3
    assert all(len(token) >= 43 for token in tokens)  # 256 bits, six of them a character


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example:{port}"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"host": "127.0.0.1.evil.example:{port}"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
        ({"origin": "http://127.0.0.1@evil.example"}, 403),
        ({"origin": "http://evil.example\\@127.0.0.1"}, 403),
        ({"origin": "file://"}, 403),
        ({"host": "localhost:{port}"}, 200),
        ({"host": "LOCALHOST:{port}"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "http://[::1]:3000"}, 200),
        ({}, 200),
    ],
)
@pytest.mark.parametrize("known", [True, False])
async def test_only_loopback_gets_as_far_as_its_token(
    headers: dict[str, str], status: int, *, known: bool
) -> None:
    async with attempt(wild()) as boundary, browser() as client:
        url = await boundary.url("wild")
        port = urlsplit(url).port
        given = modern("tools/list", {})
        given["headers"] |= {name: value.format(port=port) for name, value in headers.items()}
        asked = url if known else f"http://127.0.0.1:{port}/t/unknown/mcp"
        answer = await client.post(asked, **given)
    assert answer.status_code == (status if known or status != 200 else 404)


async def test_a_token_that_never_was_and_one_that_has_ended_get_the_same_answer() -> None:
    given = modern("tools/list", {})
    async with Hub() as hub, browser() as client:
        async with attempt(wild(), hub=hub) as boundary:
            url = await boundary.url("wild")
            alive = await client.post(url, **given)
        ended = await client.post(url, **given)
        token = urlsplit(url).path.split("/")[2]
        never = await client.post(url.replace(token, token[::-1]), **given)
        with pytest.raises(RuntimeError, match="has ended"):
            await boundary.url("wild")
    assert alive.status_code == 200
    assert (ended.status_code, ended.content) == (404, b"Not Found")
    assert (never.status_code, never.content) == (404, b"Not Found")
    assert ended.headers == never.headers


@pytest.mark.parametrize("path", ["/", "/mcp", "/t", "/t/", "/docs", "{token}/", "{token}/.."])
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
async def test_nothing_else_is_there(path: str, method: str) -> None:
    async with attempt(wild()) as boundary, browser() as client:
        url = urlsplit(await boundary.url("wild"))
        asked = path.format(token=url.path)
        answer = await client.request(method, f"http://{url.netloc}{asked}")
    assert (answer.status_code, answer.content) == (404, b"Not Found")


async def test_a_post_that_is_dropped_cancels_the_call_in_the_newer_era(log: Path) -> None:
    with anyio.fail_after(BOUND_S):
        async with attempt(features(log)) as boundary, browser() as client:
            url = await boundary.url("features")

            async def call() -> None:
                await client.post(url, **modern("tools/call", {"name": "wait"}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                await until(log, "tools/call")
                tasks.cancel_scope.cancel()
            await until(log, "notifications/cancelled")
            after = await client.post(url, **modern("tools/call", {"name": "echo"}))
    assert times_cancelled(log) == 1
    assert after.status_code == 200


def raw_post(url: str, given: dict[str, Any]) -> bytes:
    """Write a POST by hand, for those who do not wait for its answer."""
    body = json.dumps(given["json"]).encode()
    address = urlsplit(url)
    headers = {
        "host": address.netloc,
        "content-type": "application/json",
        "content-length": str(len(body)),
        **given["headers"],
    }
    lines = [f"POST {address.path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.parametrize("is_modern", [True, False])
async def test_a_write_whose_client_has_left_is_recorded_once(*, is_modern: bool) -> None:
    params = {"name": "write_item", "arguments": {"id": "a"}}
    recorded = anyio.Event()

    def record(_: WriteEntry) -> None:
        recorded.set()

    with anyio.fail_after(BOUND_S):
        async with attempt(wild(), sink=record) as boundary, browser() as client:
            url = await boundary.url("wild")
            given = modern("tools/call", params)
            if is_modern:
                await client.post(url, **modern("tools/list", {}))
            else:
                session = await opened_session(client, url)
                given = {"headers": {**ACCEPT, **session}, "json": request("tools/call", params)}
            stream = await anyio.connect_tcp("127.0.0.1", urlsplit(url).port or 0)
            await stream.send(raw_post(url, given))
            await stream.aclose()
            await recorded.wait()
    assert [entry.tool for entry in boundary.entries] == ["write_item"]
    assert [call.tool for call in boundary.calls] == ["write_item"]


@pytest.mark.parametrize("is_modern", [True, False])
async def test_a_client_that_leaves_in_the_middle_of_its_request_is_no_error(
    caplog: pytest.LogCaptureFixture, *, is_modern: bool
) -> None:
    params = {"name": "write_item", "arguments": {"id": "a" * 100_000}}
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary, browser() as client:
            url = await boundary.url("wild")
            given = modern("tools/call", params)
            if not is_modern:
                session = await opened_session(client, url)
                given = {"headers": {**ACCEPT, **session}, "json": request("tools/call", params)}
            stream = await anyio.connect_tcp("127.0.0.1", urlsplit(url).port or 0)
            await stream.send(raw_post(url, given)[:-10])
            await stream.aclose()
            after = await client.post(url, **modern("tools/list", {}))
    assert after.status_code == 200
    assert boundary.calls == []
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def test_a_request_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_front, "_BODY_LIMIT_BYTES", 10_000)
    call = {"name": "write_item", "arguments": {"id": "a" * 10_000}}
    async with attempt(wild()) as boundary, browser() as client:
        url = await boundary.url("wild")
        refused = await client.post(url, **modern("tools/call", call))
        after = await client.post(url, **modern("tools/list", {}))
    assert (refused.status_code, after.status_code) == (413, 200)
    assert boundary.calls == []


async def opened_session(client: httpx2.AsyncClient, url: str) -> dict[str, str]:
    """Make the older era's handshake; gives the headers of what follows."""
    hello = await client.post(url, headers=ACCEPT, json=request("initialize", HELLO))
    session = {
        "mcp-session-id": hello.headers["mcp-session-id"],
        "mcp-protocol-version": "2025-11-25",
    }
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await client.post(url, headers={**ACCEPT, **session}, json=told)
    return session


@pytest.mark.parametrize("is_modern", [True, False])
async def test_what_is_under_way_when_the_attempt_ends_gets_an_end(
    log: Path, *, is_modern: bool
) -> None:
    """The client neither closes its session nor leaves; nothing waits for it."""
    statuses: list[int] = []

    async def one(method: str, **given: Any) -> None:
        answer = await client.request(method, url, **given)
        statuses.append(answer.status_code)

    with anyio.fail_after(BOUND_S):
        async with Hub() as hub, browser() as client:
            async with anyio.create_task_group() as tasks, attempt(features(log), hub=hub) as open_:
                url = await open_.url("features")
                if is_modern:
                    call = modern("tools/call", {"name": "wait"})
                    listen = modern("subscriptions/listen", {"notifications": {}})
                    tasks.start_soon(lambda: one("POST", **call))
                    tasks.start_soon(lambda: one("POST", **listen))
                    await until(log, "subscriptions/listen")
                else:
                    headers = {**ACCEPT, **await opened_session(client, url)}
                    body = request("tools/call", {"name": "wait"}, 2)
                    tasks.start_soon(lambda: one("POST", headers=headers, json=body))
                    tasks.start_soon(lambda: one("GET", headers=headers))
                await until(log, "tools/call")
            await until(log, "notifications/cancelled")
    assert len(statuses) == 2
    assert set(statuses) <= {200, 404}  # an answer that had begun, or none


async def test_a_client_hears_that_its_session_has_ended_with_the_attempt() -> None:
    with anyio.fail_after(BOUND_S):
        async with Hub() as hub:
            opening = attempt(wild(), hub=hub)
            boundary = await opening.__aenter__()
            async with Client(await boundary.url("wild"), mode="auto") as client:
                await client.call_tool("read_item", {"id": "a"})
                await opening.__aexit__(None, None, None)
                with pytest.raises(MCPError):
                    await client.call_tool("read_item", {"id": "a"})
    assert len(boundary.calls) == 1


async def test_nothing_is_left_when_the_hub_ends(log: Path) -> None:
    before, tasks_before = set(threading.enumerate()), asyncio.all_tasks()
    with anyio.fail_after(BOUND_S):
        async with browser() as client:
            async with Hub() as hub, attempt(features(log), hub=hub) as boundary:
                url = await boundary.url("features")
                await boundary.command("features")
                session = await opened_session(client, url)  # and never closed
                body = request("tools/call", {"name": "echo"}, 2)
                await client.post(url, headers={**ACCEPT, **session}, json=body)
            with pytest.raises(httpx2.TransportError):
                await client.get(url)
    assert asyncio.all_tasks() <= tasks_before
    threads = {one.name.split("_")[0].split(" ")[0] for one in set(threading.enumerate()) - before}
    assert threads <= {"AnyIO", "asyncio"}  # workers of the event loop, kept for the next need


OF_THE_CLIENT = ("httpx2", "httpcore2", "mcp.client")


async def test_no_address_comes_into_any_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(1)
    for name in OF_THE_CLIENT:
        caplog.set_level(logging.CRITICAL, name)
    with anyio.fail_after(BOUND_S):
        async with Hub() as hub:
            async with attempt(wild(), hub=hub) as boundary:
                url = await boundary.url("wild")
                for era in ("auto", "legacy"):
                    async with Client(url, mode=era) as client:
                        await client.call_tool("write_item", {"id": "a"})
                async with browser() as bare:
                    await bare.post(url, content=b"{", headers=ACCEPT)
                shown = repr([boundary, boundary.entries, boundary.calls])
            async with browser() as bare:
                await bare.post(url)
    token = urlsplit(url).path.split("/")[2]
    assert token not in caplog.text
    assert token not in shown
    assert "uvicorn.access" not in {record.name for record in caplog.records}


SECRET = "tok-91c4-secret"


@pytest.mark.parametrize("fault", ["401", "500", "cut", "html"])
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_is_told_nothing_of_how_its_server_is_reached(fault: str, era: str) -> None:
    """The server lets us in, and later it does not any more."""
    told: list[str] = []
    with anyio.fail_after(BOUND_S), turning_server() as address:
        url = f"{address}/{fault}?key={SECRET}"
        spec = http(url, headers={"authorization": f"Bearer {SECRET}"})
        async with (
            attempt(spec) as boundary,
            Client(await boundary.url("web"), mode=era) as client,
        ):
            for _ in range(2):
                try:
                    told.append(str(await client.call_tool("read_item", {"id": "x"})))
                except MCPError as error:
                    told.append(f"{error} {error.error.data}")
    assert len(told) == 2
    assert not any(SECRET in one or "key=" in one for one in told), told


async def test_what_a_server_says_as_it_dies_is_told_without_secrets() -> None:
    plain = wild()
    spec = type(plain)(
        plain.label,
        plain.config,
        plain.base_dir,
        redact=lambda words: words.replace("told to die", "[redacted]"),
    )
    with anyio.fail_after(BOUND_S):
        async with (
            attempt(spec) as boundary,
            Client(await boundary.url("wild")) as client,
        ):
            with pytest.raises(MCPError) as caught:
                await client.call_tool("die", {})
    assert caught.value.error.data == "boom: [redacted]"
