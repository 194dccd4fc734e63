"""A server started as a process: its standard streams as a pipe, and its end known and certain."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from pytest_mst.domain.eval_config import StdioServer
from pytest_mst.local.child import KILL_GRACE_S, CannotStartError, Child, Command
from pytest_mst.proxy.pipe import (
    Message,
    Pipe,
    PipeClosedError,
    PipeEnding,
    decode,
    encode,
)
from pytest_mst.proxy.server_log import ServerLog
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec

_EXIT_GRACE_S = 2.0
"""How long a server may take to end once its standard input is closed (MCP, shutdown)."""
_STATUS_GRACE_S = 0.5
"""How long the exit status may take once the output has ended, and the other way round."""

_CHUNK_BYTES = 65536
_LINE_LIMIT_BYTES = 256 * 2**20
_UNREADABLE_LINES = 20
_UNREADABLE_CHARS = 200


@asynccontextmanager
async def open_process(
    spec: UpstreamSpec, config: StdioServer, log: ServerLog
) -> AsyncIterator[Pipe]:
    """Start a server and give its standard streams; on leaving, it and its group are gone.

    Args:
        spec: the server.
        config: how it is started.
        log: where its standard error goes, opened and closed here.

    Raises:
        ServerUnavailableError: the command cannot be started.

    """
    command = Command(
        program=config.command,
        args=config.args,
        env=config.env,
        cwd=spec.base_dir / (config.cwd or "."),
        inherit_env=config.inherit_env,
    )
    with log:
        try:
            child = await Child.start(command, stderr=log.fd)
        except CannotStartError as error:
            raise ServerUnavailableError(spec.label, "spawn", str(error)) from error
        pipe = _ProcessPipe(child, log)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pipe.watch)
                try:
                    yield pipe
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await pipe.close()


class _ProcessPipe(Pipe):
    """Newline-delimited JSON over a process's standard streams."""

    def __init__(self, child: Child, log: ServerLog) -> None:
        process = child.process
        if process.stdin is None or process.stdout is None:
            msg = "the process was started without its standard streams"
            raise RuntimeError(msg)
        self._child = child
        self._stdin: ByteSendStream = process.stdin
        self._stdout: ByteReceiveStream = process.stdout
        self._log = log
        self._ready: deque[Message] = deque()
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._unreadable: list[str] = []
        self._ending: PipeEnding | None = None
        """What was known when the pipe was closed; the log is closed after it."""

    async def send(self, message: Message) -> None:
        line = encode(message) + b"\n"
        try:
            await self._stdin.send(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise PipeClosedError from error

    async def receive(self) -> Message:
        while not self._ready:
            try:
                chunk = await self._stdout.receive(_CHUNK_BYTES)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._child.status_within(_STATUS_GRACE_S)
                raise PipeClosedError from None
            self._feed(chunk)
        return self._ready.popleft()

    def _feed(self, chunk: bytes) -> None:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._partial.append(end)
            self._line(b"".join(self._partial))
            self._partial.clear()
            self._partial_bytes = 0
        self._partial.append(rest)
        self._partial_bytes += len(rest)
        if self._partial_bytes > _LINE_LIMIT_BYTES:
            self._junk(b"".join(self._partial)[:_UNREADABLE_CHARS], "line too long")
            self._partial.clear()
            self._partial_bytes = 0

    def _line(self, line: bytes) -> None:
        if not line.strip():
            return
        messages, problem = decode(line)
        self._ready.extend(messages)
        if problem is not None:
            self._junk(line, problem)

    def _junk(self, line: bytes, problem: str) -> None:
        text = line[:_UNREADABLE_CHARS].decode(errors="replace").strip()
        if len(self._unreadable) < _UNREADABLE_LINES:
            self._unreadable.append(text)
        self._log.note(f"{problem}: {text}")

    async def watch(self) -> None:
        """End the output once the process has ended, also where a child of its holds it open."""
        await self._child.ended()
        await anyio.sleep(_STATUS_GRACE_S)
        await self._stdout.aclose()

    def ending(self) -> PipeEnding:
        if self._ending is not None:
            return self._ending
        reason = self._child.how_it_ended or "closed its standard output and goes on running"
        return PipeEnding(reason, self._child.exit_code, self._log.tail(), tuple(self._unreadable))

    async def close(self) -> None:
        """End the process and whatever is left of its group; every wait is bounded."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._stdin.aclose()
        await self._child.end(_EXIT_GRACE_S)
        with anyio.move_on_after(KILL_GRACE_S):
            await self._stdout.aclose()
            await self._child.process.aclose()
        self._ending = self.ending()
