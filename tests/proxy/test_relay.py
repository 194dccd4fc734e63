"""The relay: a command that is a server, and what becomes of it when either side ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from pytest_mst.proxy import relay
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.line_buffer import LineBuffer
from pytest_mst.proxy.relay_front import RelayCommand, RelayFront
from tests.proxy.setting import attempt, called, wild
from tests.proxy.ways_in import CLIENT, ENVELOPE, features, times_cancelled, until

pytestmark = pytest.mark.anyio
BOUND_S = 20
LONGEST_LINE_BYTES = 2**26
WRITE = {"name": "write_item", "arguments": {"id": "a"}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def hello() -> bytes:
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
    asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    return json.dumps(asked).encode() + b"\n"


class Running:
    """A relay as its client runs it."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process = process
        self._lines = BufferedByteReceiveStream(process.stdout)

    async def send(self, line: bytes) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(line)

    async def ask(self, key: int, method: str, params: dict[str, Any]) -> None:
        asked = {"id": key, "method": method, "params": {**params, "_meta": ENVELOPE}}
        await self.send(json.dumps({"jsonrpc": "2.0", **asked}).encode() + b"\n")

    async def answer(self) -> dict[str, Any]:
        line = await self._lines.receive_until(b"\n", LONGEST_LINE_BYTES)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def leave(self) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def words(self) -> str:
        assert self.process.stderr is not None
        said = b""
        async for chunk in self.process.stderr:
            said += chunk
        return said.decode()


@asynccontextmanager
async def running(command: RelayCommand, **env: str) -> AsyncIterator[Running]:
    """Start a relay with nothing in its environment but what it is given."""
    async with await anyio.open_process(
        [command.command, *command.args], env={**command.env, **env}
    ) as process:
        try:
            yield Running(process)
        finally:
            if process.returncode is None:
                process.kill()


async def test_a_command_tells_nothing_to_who_can_see_its_arguments() -> None:
    async with attempt(wild()) as boundary:
        command = await boundary.command("wild")
        again = await boundary.command("wild")
        with pytest.raises(KeyError):
            await boundary.command("nobody")
    token = command.env[relay.TOKEN]
    assert again == command
    assert len(token) >= 43  # 256 bits, six of them a character
    assert token not in repr(command)
    assert token not in repr(command.env)
    assert token not in " ".join([command.command, *command.args])
    assert command.env[relay.ADDRESS].startswith("127.0.0.1:")


async def test_a_command_can_be_started_several_times_one_after_the_other_and_at_once() -> None:
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary:
            command = await boundary.command("wild")
            async with running(command) as probing:  # as some clients do before they mean it
                await probing.ask(1, "server/discover", {})
                await probing.answer()
                await probing.leave()
                assert await probing.process.wait() == relay.CLIENT_LEFT
            async with running(command) as one, running(command) as two:
                for client in (one, two):
                    await client.ask(1, "tools/call", WRITE)
                    assert "result" in await client.answer()
    assert [entry.seq for entry in boundary.entries] == [0, 1]


async def test_the_relay_ends_when_its_client_leaves_and_says_nothing() -> None:
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary, running(await boundary.command("wild")) as client:
            await client.leave()
            assert await client.process.wait() == relay.CLIENT_LEFT
            assert await client.words() == ""


async def test_the_relay_ends_when_its_attempt_does_and_says_so(log: Path) -> None:
    with anyio.fail_after(BOUND_S):
        async with Hub() as hub:
            opening = attempt(features(log), hub=hub)
            boundary = await opening.__aenter__()
            command = await boundary.command("features")
            async with running(command) as client:
                await client.ask(1, "tools/call", {"name": "wait"})
                await until(log, "tools/call")
                await opening.__aexit__(None, None, None)
                assert await client.process.wait() == relay.PROXY_LEFT
                said = await client.words()
            async with running(command) as late:
                assert await late.process.wait() == relay.PROXY_LEFT
                said_late = await late.words()
            await until(log, "notifications/cancelled")
    assert said == "pytest-mst relay: the proxy ended the connection: the attempt has ended\n"
    assert said_late.startswith("pytest-mst relay: this attempt has ended")
    assert said_late.count("\n") == 1


async def test_a_relay_whose_proxy_is_gone_says_so_in_one_line() -> None:
    async with attempt(wild()) as boundary:
        command = await boundary.command("wild")
    with anyio.fail_after(BOUND_S):
        async with running(command) as client:
            assert await client.process.wait() == relay.PROXY_LEFT
            said = await client.words()
    assert said.startswith(f"pytest-mst relay: nobody answers at {command.env[relay.ADDRESS]}")
    assert said.count("\n") == 1
    assert command.env[relay.TOKEN] not in said


@pytest.mark.parametrize("token", ["", "guess", "x" * 10_000])
async def test_a_wrong_token_is_not_let_in(token: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary:
            host, _, port = (await boundary.command("wild")).env[relay.ADDRESS].partition(":")
            async with await anyio.connect_tcp(host, int(port)) as stream:
                await stream.send(token.encode() + b"\n{}\n")
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()


@pytest.mark.parametrize("missing", [relay.ADDRESS, relay.TOKEN])
def test_a_relay_that_nobody_gave_an_address_says_what_it_needs(missing: str) -> None:
    env = {relay.ADDRESS: "127.0.0.1:1", relay.TOKEN: "t"}
    del env[missing]
    ended = subprocess.run(
        [sys.executable, "-I", "-S", relay.__file__], env=env, capture_output=True, check=False
    )
    assert ended.returncode == relay.NOT_STARTED_BY_US
    assert ended.stderr.count(b"\n") == 1
    assert missing.encode() in ended.stderr


def test_the_relay_imports_nothing_but_what_carries_bytes() -> None:
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "importtime", relay.__file__],
        env={},
        capture_output=True,
        check=False,
    )
    imported = {line.split(b"|")[-1].strip() for line in ended.stderr.splitlines() if b"|" in line}
    assert b"socket" in imported
    assert not imported & {b"mcp", b"pytest_mst", b"asyncio", b"threading", b"json", b"site"}


async def test_a_relay_that_is_killed_in_a_call_leaves_nothing_under_way(log: Path) -> None:
    with anyio.fail_after(BOUND_S):
        async with attempt(features(log)) as boundary:
            command = await boundary.command("features")
            async with running(command) as client:
                await client.ask(1, "tools/call", {"name": "wait"})
                await until(log, "tools/call")
                os.kill(client.process.pid, signal.SIGKILL)
                await until(log, "notifications/cancelled")
            async with running(command) as again:
                await again.ask(1, "tools/call", {"name": "echo", "arguments": {"a": 1}})
                answer = await again.answer()
    assert times_cancelled(log) == 1
    assert answer["result"]["structuredContent"] == {"a": 1}


@pytest.mark.parametrize("tool", ["write_item", "read_item"])
async def test_a_client_that_asks_and_leaves_at_once_still_gets_its_answer(tool: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary, running(await boundary.command("wild")) as client:
            await client.ask(1, "tools/call", {"name": tool, "arguments": {"id": "a"}})
            await client.leave()
            answer = await client.answer()
            assert await client.process.wait() == relay.CLIENT_LEFT
    assert "result" in answer
    assert [call.tool for call in boundary.calls] == [tool]


async def test_a_last_line_without_an_end_counts_and_half_a_message_does_not() -> None:
    asked = {"id": 1, "method": "tools/call", "params": {**WRITE, "_meta": ENVELOPE}}
    line = json.dumps({"jsonrpc": "2.0", **asked}).encode()
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary:
            for sent in (line, line[:-1]):
                async with running(await boundary.command("wild")) as client:
                    await client.send(sent)
                    await client.leave()
                    if sent == line:
                        assert "result" in await client.answer()
                    assert await client.process.wait() == relay.CLIENT_LEFT
    assert [call.tool for call in boundary.calls] == ["write_item"]


async def test_a_client_that_comes_in_as_the_attempt_ends_is_not_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed = anyio.Event()
    with anyio.fail_after(BOUND_S):
        async with attempt(wild()) as boundary, anyio.create_task_group() as tasks:
            command = await boundary.command("wild")
            host, port = command.env[relay.ADDRESS].split(":")

            async def close() -> None:
                await boundary._ways_in.close()
                closed.set()

            async with await anyio.connect_tcp(host, int(port)) as client:
                send = type(client).send

                async def held(stream: SocketStream, data: bytes) -> None:
                    if data == b"\n":  # the welcome
                        tasks.start_soon(close)
                        with anyio.move_on_after(0.1):
                            await closed.wait()
                    await send(stream, data)

                monkeypatch.setattr(type(client), "send", held)
                await client.send(command.env[relay.TOKEN].encode() + b"\n" + hello())
                with pytest.raises(anyio.EndOfStream):
                    await client.receive()


async def test_a_client_that_leaves_what_is_never_answered_is_not_waited_for_long(
    log: Path,
) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            attempt(features(log)) as boundary,
            running(await boundary.command("features")) as client,
        ):
            await client.ask(1, "tools/call", {"name": "wait"})
            await until(log, "tools/call")
            await client.leave()
            assert await client.process.wait() == relay.CLIENT_LEFT
            await until(log, "notifications/cancelled")
    assert times_cancelled(log) == 1


async def test_a_client_that_no_longer_reads_ends_its_relay(log: Path) -> None:
    reads, writes = os.pipe()
    with anyio.fail_after(BOUND_S):
        async with attempt(features(log)) as boundary:
            command = await boundary.command("features")
            async with await anyio.open_process(
                [command.command, *command.args], env=command.env, stdout=writes
            ) as process:
                os.close(writes)
                os.close(reads)
                assert process.stdin is not None
                call = {"name": "echo", "_meta": ENVELOPE}
                asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
                await process.stdin.send(json.dumps(asked).encode() + b"\n")
                assert await process.wait() == relay.CLIENT_LEFT


class _BrokenError(Exception):
    pass


async def test_what_breaks_one_session_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Any:
        raise _BrokenError

    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as tasks:
            front = RelayFront(tasks)
            for _ in range(2):
                mount = await front.mount(broken, handshake_only=False)
                async with running(mount.command) as client:
                    assert await client.process.wait() == relay.PROXY_LEFT
                await mount.close()
            await front.stop()
    assert [one.exc_info[0] for one in caplog.records if one.exc_info] == [_BrokenError] * 2


async def test_lines_that_are_no_messages_harm_nobody(log: Path) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            attempt(wild(log=log)) as boundary,
            running(await boundary.command("wild")) as client,
        ):
            await client.send(b"\n  \nnot json\n[1]\n\xff\xfe\n")
            await client.ask(7, "tools/call", {"name": "read_item", "arguments": {"id": "\ud83d"}})
            answer = await client.answer()
    assert answer["id"] == 7
    assert called(log) == ["read_item"]


async def test_very_long_lines_pass(log: Path) -> None:
    text = "x" * 20_000_000
    with anyio.fail_after(BOUND_S):
        async with (
            attempt(features(log)) as boundary,
            running(await boundary.command("features")) as client,
        ):
            params = {"name": "echo", "arguments": {"text": text}}

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.ask, 1, "tools/call", params)
                answer = await client.answer()
    assert answer["result"]["structuredContent"]["text"] == text


def test_lines_are_put_together_however_they_are_cut() -> None:
    text = b"one\n\ntwo two\nthree"
    for size in range(1, len(text) + 1):
        lines = LineBuffer()
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        assert [line for chunk in chunks for line in lines.feed(chunk)] == [b"one", b"", b"two two"]
