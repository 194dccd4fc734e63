"""What the HTTP front relies on in the SDK, `sse_starlette` and uvicorn: fails when it moves."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
import mcp_types
import pytest

from pytest_mst.local.web_server import WebServer
from pytest_mst.proxy import json_rpc
from pytest_mst.proxy.sdk import HttpSessions, Inbound, end_sse_watcher
from tests.proxy.ways_in import CLIENT, ENVELOPE, MODERN

pytestmark = pytest.mark.anyio
ACCEPT = {"accept": "application/json, text/event-stream"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
ODD = {"x": None, "deep": {"y": [None]}, "big": 2**70}


class Counted:
    """Answers a session, and keeps what it was asked."""

    made: list[Counted]

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = False
        self.made.append(self)

    async def answer(self, inbound: Inbound) -> Mapping[str, Any]:
        self.asked.append(inbound.method)
        return {"protocolVersion": "2025-06-18"} if inbound.method == "initialize" else ODD

    async def hear(self, inbound: Inbound) -> None:
        self.asked.append(inbound.method)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Counted]:
    made: list[Counted] = []
    monkeypatch.setattr(Counted, "made", made, raising=False)
    return made


def request(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def test_each_handshake_has_somebody_of_its_own_and_all_other_requests_share_one(
    made: list[Counted],
) -> None:
    sessions = HttpSessions(Counted, 1000)
    answers: list[httpx2.Response] = []
    with anyio.fail_after(10):
        async with (
            sessions.run(),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(sessions.handle)) as client,
        ):

            async def post(headers: dict[str, str], body: dict[str, Any]) -> httpx2.Response:
                answer = await client.post("http://x/", headers={**ACCEPT, **headers}, json=body)
                answers.append(answer)
                return answer

            ids = []
            for _ in range(2):
                hello = await post({}, request("initialize", HELLO))
                ids.append({"mcp-session-id": hello.headers["mcp-session-id"]})
                await post(ids[-1], {"jsonrpc": "2.0", "method": "notifications/initialized"})
                await post(ids[-1], request("made/up", {"a": None}))
            headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
            for _ in range(2):
                await post(headers, request("tools/list", {"_meta": ENVELOPE}))
            too_long = await post(headers, request("tools/list", {"long": "x" * 1000}))
            await client.delete("http://x/", headers=ids[0])
            with anyio.fail_after(5):
                while not made[1].closed:
                    await anyio.lowlevel.checkpoint()
            closed_by_its_client = [one.closed for one in made]
        closed_in_the_end = [one.closed for one in made]
    legacy = ["initialize", "notifications/initialized", "made/up"]
    assert [one.asked for one in made] == [["tools/list", "tools/list"], legacy, legacy]
    assert closed_by_its_client == [False, True, False]
    assert closed_in_the_end == [True, True, True]
    assert answers[-2].json()["result"] == ODD
    assert '"result":{"x":null,"deep":{"y":[null]}' in answers[2].text
    assert too_long.status_code == 413


async def test_the_task_that_a_stream_leaves_behind_can_be_ended(made: list[Counted]) -> None:
    before = asyncio.all_tasks()
    sessions = HttpSessions(Counted, 1000)
    with anyio.fail_after(10):
        async with (
            sessions.run(),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(sessions.handle)) as client,
        ):
            hello = request("initialize", HELLO)
            await client.post("http://x/", headers=ACCEPT, json=hello)
        await end_sse_watcher()
    assert asyncio.all_tasks() <= before
    assert made[0].closed


async def test_the_web_server_logs_no_request_and_leaves_signals_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.NOTSET + 1)
    caplog.set_level(logging.CRITICAL, "httpx2")
    caplog.set_level(logging.CRITICAL, "httpcore2")
    handlers = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    asked: list[str] = []

    async def application(scope: Any, _receive: Any, send: Any) -> None:
        asked.append(scope["path"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    server = WebServer(application)
    await server.start()
    async with httpx2.AsyncClient(verify=False) as client:
        answer = await client.get(f"http://127.0.0.1:{server.port}/secret-path")
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == handlers
    await server.stop()
    assert answer.status_code == 204
    assert asked == ["/secret-path"]
    assert "secret-path" not in caplog.text


async def test_small_answers_are_sent_at_once() -> None:
    """Without it each answer takes 40 ms longer."""
    without_delay: list[int] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        (connection,) = server._server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        without_delay.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    server = WebServer(application)
    await server.start()
    async with httpx2.AsyncClient(verify=False) as client:
        await client.get(f"http://127.0.0.1:{server.port}/")
    await server.stop()
    assert without_delay == [1]


def test_our_words_for_an_unknown_revision_are_the_sdks() -> None:
    assert mcp_types.UNSUPPORTED_PROTOCOL_VERSION == json_rpc.UNSUPPORTED_REVISION
