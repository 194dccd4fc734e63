"""Ways to a server on which nothing is read into models: what comes is kept as text.

A message is a JSON object; of one that came, each member is kept as the text it had. Over a pipe
and over HTTP that is what was on the wire. The in-memory front hands over objects, so that there
it is the text that `json.dumps` makes of them, and what is compared with it is read and written
anew by the same `json`: the order of keys, kinds of numbers and every character still count.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream

from pytest_mst.proxy.sdk import as_session_message

Message = dict[str, Any]
Members = Mapping[str, str]
"""The members of a message by name, each as the JSON text that it is."""

MODERN = "2026-07-28"
_LONGEST_LINE = 64 * 2**20


def members(text: str) -> Members:
    """Cut a JSON object into its members, their text untouched."""
    found: dict[str, str] = {}
    decoder = json.JSONDecoder()
    at = text.index("{") + 1
    while True:
        at = _past_blanks(text, at)
        name, at = decoder.raw_decode(text, at)
        start = _past_blanks(text, text.index(":", at) + 1)
        _, at = decoder.raw_decode(text, start)
        found[name] = text[start:at]
        at = _past_blanks(text, at)
        if text[at] == "}":
            return found
        at += 1


def _past_blanks(text: str, at: int) -> int:
    while text[at].isspace():
        at += 1
    return at


def written_anew(text: str) -> str:
    """Give a JSON text as `json` writes what it reads."""
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


class Line(ABC):
    """A connection on which a client speaks."""

    keeps_bytes = True
    """Whether what is received is what was on the wire, byte for byte."""

    @abstractmethod
    async def send(self, message: Message) -> None:
        """Send one message."""

    @abstractmethod
    async def receive(self) -> str:
        """Wait for the next message, whatever it is."""


class _PipeLine(Line):
    """Newline-delimited messages over a process's standard streams."""

    def __init__(self, stdin: ByteSendStream, stdout: ByteReceiveStream) -> None:
        self._stdin = stdin
        self._stdout = BufferedByteReceiveStream(stdout)

    async def send(self, message: Message) -> None:
        await self._stdin.send(json.dumps(message).encode() + b"\n")

    async def receive(self) -> str:
        line = await self._stdout.receive_until(b"\n", _LONGEST_LINE)
        return line.decode()


@asynccontextmanager
async def pipe_line(
    command: Sequence[str], env: Mapping[str, str], cwd: Path
) -> AsyncIterator[Line]:
    """Start a program and speak with it over its standard streams."""
    with (cwd / "stderr.txt").open("ab") as stderr:
        process = await anyio.open_process(command, env=env, cwd=cwd, stderr=stderr)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        yield _PipeLine(process.stdin, process.stdout)
    finally:
        with anyio.CancelScope(shield=True):
            await process.stdin.aclose()  # type: ignore[union-attr]  # asserted above
            with anyio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            await process.aclose()


class MemoryLine(Line):
    """The SDK's streams in this process."""

    keeps_bytes = False

    def __init__(self, streams: Any) -> None:
        self._read, self._write = streams

    async def send(self, message: Message) -> None:
        await self._write.send(as_session_message(message))

    async def receive(self) -> str:
        came = await self._read.receive()
        assert not isinstance(came, Exception)
        plain = came.message.model_dump(by_alias=True, exclude_unset=True)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


class _HttpLine(Line):
    """Streamable HTTP: a POST for each message, and a stream for what no message asked for."""

    def __init__(self, url: str, client: httpx2.AsyncClient, tasks: Any) -> None:
        self._url = url
        self._client = client
        self._tasks = tasks
        self._headers = {"accept": "application/json, text/event-stream"}
        self._give, self._take = anyio.create_memory_object_stream[str](1000)

    def close(self) -> None:
        self._give.close()
        self._take.close()

    async def send(self, message: Message) -> None:
        if message.get("method") == "notifications/initialized":
            await self._post(message)
            self._tasks.start_soon(self._standing)
        elif "id" in message and "method" in message:
            self._tasks.start_soon(self._post, message)
        else:
            await self._post(message)

    async def receive(self) -> str:
        return await self._take.receive()

    async def _post(self, message: Message) -> None:
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        headers = dict(self._headers)
        if isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta:
            headers |= {"mcp-protocol-version": MODERN, "mcp-method": message["method"]}
            name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
            if isinstance(name, str) and name.isascii():
                headers["mcp-name"] = name
        body = json.dumps(message).encode()
        headers["content-type"] = "application/json"
        posted = self._client.stream("POST", self._url, content=body, headers=headers)
        async with posted as response:
            if session := response.headers.get("mcp-session-id"):
                self._headers["mcp-session-id"] = session
            await self._messages(response)

    async def _standing(self) -> None:
        headers = {**self._headers, "accept": "text/event-stream"}
        async with self._client.stream("GET", self._url, headers=headers) as response:
            await self._messages(response)

    async def _messages(self, response: httpx2.Response) -> None:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            if body := await response.aread():
                await self._give.send(body.decode())
            return
        pending = b""
        async for chunk in response.aiter_bytes():
            *lines, pending = (pending + chunk.replace(b"\r\n", b"\n")).split(b"\n")
            for line in lines:  # each event of the SDK's has its message on one line
                if line.startswith(b"data:") and line[5:].strip():
                    await self._give.send(line[5:].decode())


@asynccontextmanager
async def http_line(url: str) -> AsyncIterator[Line]:
    """Speak over streamable HTTP."""
    timeout = httpx2.Timeout(30)
    async with (
        httpx2.AsyncClient(timeout=timeout) as client,
        anyio.create_task_group() as tasks,
    ):
        line = _HttpLine(url, client, tasks)
        try:
            yield line
        finally:
            line.close()
            tasks.cancel_scope.cancel()
