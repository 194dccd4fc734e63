"""A relay's socket as the streams that the SDK serves: one JSON-RPC message a line, both ways."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import SocketStream

from pytest_mst.proxy.line_buffer import LineBuffer
from pytest_mst.proxy.pipe import Message, UnsendableError, decode, encode

CHUNK_BYTES = 2**18

_LAST_WORDS_S = 1.0
"""How long what was asked last may take to be answered once the client asks no more."""
_NEVER_ANSWERED = "subscriptions/listen"


class RelayWire:
    """What one client sends and is sent.

    A client that closes its end at once after a question, as a shell script does, still gets its
    answer, as it would from a server that reads one line after the other.
    """

    def __init__(self, stream: SocketStream, began_with: bytes) -> None:
        """Take over a socket.

        Args:
            stream: the socket.
            began_with: what has been read of it already.

        """
        self._stream = stream
        self._began_with = began_with
        self._unanswered: set[object] = set()
        self._answered = anyio.Event()

    async def take(self, arriving: Any) -> None:
        """Read the client's messages until it sends no more and has its answers."""
        async with arriving:
            try:
                await self._read_all(arriving)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the client is gone, or the session is
            with anyio.move_on_after(_LAST_WORDS_S):
                while self._unanswered:
                    await self._answered.wait()

    async def _read_all(self, arriving: Any) -> None:
        lines = LineBuffer()
        chunk = self._began_with
        while True:
            for line in lines.feed(chunk):
                await self._hand_over(line, arriving)
            try:
                chunk = await self._stream.receive(CHUNK_BYTES)
            except anyio.EndOfStream:
                await self._hand_over(lines.rest(), arriving)
                return

    async def _hand_over(self, line: bytes, arriving: Any) -> None:
        for item in self._items(line):
            await arriving.send(item)

    def _items(self, line: bytes) -> list[Any]:
        """Read one line: its messages, or what is wrong with it."""
        from pytest_mst.proxy.sdk import as_session_message

        messages, problem = decode(line)
        if not messages:
            return [ValueError(problem)] if line.strip() else []
        items: list[Any] = []
        for message in messages:
            try:
                items.append(as_session_message(message))
            except ValueError as error:
                items.append(error)
            else:
                self._note(message)
        return items

    def _note(self, message: Message) -> None:
        match message:
            case {
                "method": "notifications/cancelled",
                "params": {"requestId": int() | str() as key},
            }:
                self._unanswered.discard(key)
            case {"method": str(method), "id": int() | str() as key} if method != _NEVER_ANSWERED:
                self._unanswered.add(key)
            case _:
                return

    async def give(self, leaving: Any) -> None:
        """Write our messages until there are no more, or nobody reads them."""
        from pytest_mst.proxy.sdk import as_dict

        async with leaving:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for item in leaving:
                    message = as_dict(item)
                    if message is not None:
                        await self._write(message)

    async def _write(self, message: Message) -> None:
        with suppress(UnsendableError):
            await self._stream.send(encode(message) + b"\n")
        if "method" not in message:
            self._unanswered.discard(message.get("id"))
            self._answered.set()
            self._answered = anyio.Event()
