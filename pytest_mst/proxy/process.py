"""A server started as a process: its standard streams as a pipe, and its end known and certain."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from pytest_mst.domain.eval_config import StdioServer
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

_SAFE_ENVIRONMENT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What a server gets of our environment unasked; the set of the MCP SDKs (client/stdio)."""

_EXIT_GRACE_S = 2.0
"""How long a server may take to end once its standard input is closed (MCP, shutdown)."""
_TERM_GRACE_S = 2.0
"""How long it may take after SIGTERM."""
_KILL_GRACE_S = 2.0
_STATUS_GRACE_S = 0.5
"""How long the exit status may take once the output has ended, and the other way round."""
_POLL_S = 0.005

_CHUNK_BYTES = 65536
_LINE_LIMIT_BYTES = 256 * 2**20
_UNREADABLE_LINES = 20
_UNREADABLE_CHARS = 200

_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this server has ended")
try:
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error}")
"""
"""Becomes the server; the kernel kills it when the thread that started it ends (Linux, prctl 2:
PR_SET_PDEATHSIG), so that it outlives no test run that was killed."""


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
    cwd = spec.base_dir / (config.cwd or ".")
    environment = _environment(config)
    command = [_find(spec, config, cwd, environment), *config.args]
    if sys.platform == "linux":
        shim = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]
        command = [*shim, *command]
    with log:
        try:
            process = await anyio.open_process(
                command, cwd=cwd, env=environment, stderr=log.fd, start_new_session=True
            )
        except OSError as error:
            reason = f"cannot be started: {config.command}: {error.strerror}"
            raise ServerUnavailableError(spec.label, "spawn", reason) from error
        pipe = _ProcessPipe(process, log)
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


def _environment(config: StdioServer) -> dict[str, str]:
    kept = os.environ if config.inherit_env else _SAFE_ENVIRONMENT
    return {name: os.environ[name] for name in kept if name in os.environ} | config.env


def _find(spec: UpstreamSpec, config: StdioServer, cwd: Path, environment: dict[str, str]) -> str:
    """Find the program before anything is started, so that a wrong name is told as one."""
    if not cwd.is_dir():
        reason = f"cannot be started: its working folder {str(cwd)!r} is not a folder; set cwd"
        raise ServerUnavailableError(spec.label, "spawn", reason)
    if config.command == "python":
        return sys.executable
    if os.sep in config.command:
        path = cwd / config.command
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
        wrong = "is not executable" if path.exists() else "does not exist"
        reason = f"cannot be started: {str(path)!r} {wrong}; set command"
        raise ServerUnavailableError(spec.label, "spawn", reason)
    found = shutil.which(config.command, path=environment.get("PATH", os.defpath))
    if found is None:
        reason = (
            f"cannot be started: there is no program {config.command!r} on PATH;"
            " install it, or set command to its path"
        )
        raise ServerUnavailableError(spec.label, "spawn", reason)
    return found


class _ProcessPipe(Pipe):
    """Newline-delimited JSON over a process's standard streams."""

    def __init__(self, process: Process, log: ServerLog) -> None:
        if process.stdin is None or process.stdout is None:
            msg = "the process was started without its standard streams"
            raise RuntimeError(msg)
        self._process = process
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
                await self._status(_STATUS_GRACE_S)
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
        await _ended(self._process)
        await anyio.sleep(_STATUS_GRACE_S)
        await self._stdout.aclose()

    async def _status(self, within_s: float) -> bool:
        """Wait for the exit status, which comes a little after the end of the output."""
        with anyio.move_on_after(within_s):
            while self._process.returncode is None:  # noqa: ASYNC110  nobody sets an event
                await anyio.sleep(_POLL_S)
        return self._process.returncode is not None

    def ending(self) -> PipeEnding:
        if self._ending is not None:
            return self._ending
        code = self._process.returncode
        if code is None:
            reason = "closed its standard output and goes on running"
        elif code < 0:
            reason = f"was ended by {_signal_name(-code)}"
        else:
            reason = f"exited with status {code}"
        return PipeEnding(reason, code, self._log.tail(), tuple(self._unreadable))

    async def close(self) -> None:
        """End the process and whatever is left of its group; every wait is bounded."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._stdin.aclose()
        if not await self._exited(_EXIT_GRACE_S):
            self._signal_group(signal.SIGTERM)
            await self._exited(_TERM_GRACE_S)
        self._signal_group(signal.SIGKILL)
        await self._status(_KILL_GRACE_S)
        with anyio.move_on_after(_KILL_GRACE_S):
            await self._stdout.aclose()
            await self._process.aclose()
        self._ending = self.ending()

    async def _exited(self, within_s: float) -> bool:
        with anyio.move_on_after(within_s):
            await _ended(self._process)
            return True
        return False

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _ended(process: Process) -> None:
    """Wait for the process itself to end, whoever still holds its streams."""
    if process.returncode is not None:
        return
    if sys.platform != "linux":
        while process.returncode is None:  # noqa: ASYNC110  nobody sets an event
            await anyio.sleep(10 * _POLL_S)
        return
    try:
        fd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(fd)
    finally:
        os.close(fd)


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
