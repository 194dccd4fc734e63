"""Running a client's program to its end: its lines as they come, and its certain end."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from pytest_mst.domain.ending import Broke, Ending, InfrastructureError, Scope
from pytest_mst.local.child import CannotStartError, Child, Command

LINE_LIMIT_BYTES = 64 * 2**20
"""What no line of a client's can be longer than; the rest of it is left out."""
TAIL_LIMIT_CHARS = 8_000
"""How much is kept of the end of what a program says on standard error."""

_FOR_NOW = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What the system says when it has no room for another program just now."""
_LAST_WORDS_S = 1.0
"""How long the rest of the output of a program that has ended may take to be read: a child that
it left behind may hold its streams open."""

OnLine: TypeAlias = Callable[[str], None]
"""Takes one line of standard output, without its end."""
Watch: TypeAlias = Callable[[], Awaitable[Ending]]
"""Waits for a reason of ours to end the program, and returns the ending that it means."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a program ended."""

    exit_code: int | None
    """Negative: the signal that it was ended by."""
    how: str
    """Its end in words: `exited with status 1`."""
    stderr: str
    """The end of what it said on standard error, for people."""
    killed: Ending | None = None
    """What we ended it for, where that is how it ended: the first that is asked for an ending."""


async def run_program(
    command: Command,
    on_line: OnLine,
    *,
    stdin: bytes | None = None,
    watches: Sequence[Watch] = (),
    hidden: Mapping[str, str] = MappingProxyType({}),
) -> Ran:
    """Run a program to its end.

    Whatever happens (it ends, a watch ends it, we are cancelled), it ends with all that is left
    of its group, and each whole line that it wrote before has been taken.

    Args:
        command: the program.
        on_line: takes each line of its standard output as it comes; also the last one, where
            that has no end.
        stdin: what it reads; nothing by default, as from an empty file.
        watches: reasons of ours to end it before it does so itself.
        hidden: what is taken out of all that it says, and what is put in its place.

    Raises:
        InfrastructureError: it cannot be started (client-app, of variant scope; not retryable,
            not accepted).

    """
    try:
        child = await Child.start(
            command,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stderr=subprocess.PIPE,
            takes_group_along=True,
        )
    except CannotStartError as error:
        raise cannot_start(command.program, error) from error

    def shown(text: str) -> str:
        for secret, instead in hidden.items():
            text = text.replace(secret, instead)
        return text

    ran = await _Running(child, lambda line: on_line(shown(line))).to_its_end(stdin, watches)
    return replace(ran, stderr=shown(ran.stderr)[-TAIL_LIMIT_CHARS:])


def cannot_start(program: str, error: CannotStartError) -> InfrastructureError:
    """Return what it means for an attempt that its client's program cannot be started."""
    if error.errno == errno.E2BIG:
        return InfrastructureError(
            Broke.SETUP,
            "the input, or what else the client's program is given as arguments and variables, is "
            "longer than the system takes: give it on stdin",
            retryable=False,
            scope=Scope.CASE,
            accepted=False,
        )
    if error.errno in _FOR_NOW:
        reason = f"the client's program {program!r} {error}: the machine is busy"
        return InfrastructureError(Broke.CLIENT_APP, reason, accepted=False)
    return InfrastructureError(
        Broke.CLIENT_APP,
        f"the client's program {program!r} {error}",
        retryable=False,
        scope=Scope.VARIANT,
        accepted=False,
    )


class _Running:
    """A program under way."""

    def __init__(self, child: Child, on_line: OnLine) -> None:
        self._child = child
        self._lines = _Lines(on_line)
        self._tail = b""
        self._killed: Ending | None = None

    async def to_its_end(self, stdin: bytes | None, watches: Sequence[Watch]) -> Ran:
        process = self._child.process
        async with anyio.create_task_group() as tasks:
            out = _Reader(process.stdout, self._lines.take)
            err = _Reader(process.stderr, self._keep_tail)
            tasks.start_soon(out.read)
            tasks.start_soon(err.read)
            try:
                await self._watched(stdin, watches)
            finally:
                with anyio.CancelScope(shield=True):
                    await self._child.end(0.0)
                    with anyio.move_on_after(_LAST_WORDS_S):
                        await out.done.wait()
                        await err.done.wait()
                    out.kept.cancel()
                    err.kept.cancel()
                    await out.done.wait()
                    self._lines.end()
                    await process.aclose()
        return Ran(
            exit_code=self._child.exit_code,
            how=self._child.how_it_ended or "did not end",
            stderr=self._tail.decode(errors="replace"),
            killed=self._killed,
        )

    async def _watched(self, stdin: bytes | None, watches: Sequence[Watch]) -> None:
        """Wait until it has ended, or is to be ended."""
        async with anyio.create_task_group() as tasks:
            if stdin is not None and self._child.process.stdin is not None:
                tasks.start_soon(_feed, self._child.process.stdin, stdin)
            for watch in watches:
                tasks.start_soon(self._watch, watch, tasks.cancel_scope)
            await self._child.ended()
            tasks.cancel_scope.cancel()

    async def _watch(self, watch: Watch, others: anyio.CancelScope) -> None:
        ending = await watch()
        if self._killed is None:
            self._killed = ending
        others.cancel()

    def _keep_tail(self, chunk: bytes) -> None:
        self._tail = (self._tail + chunk)[-4 * TAIL_LIMIT_CHARS :]


class _Reader:
    """Reads a stream to its end, also while what it belongs to is cancelled."""

    def __init__(self, stream: ByteReceiveStream | None, take: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._take = take
        self.kept = anyio.CancelScope(shield=True)
        self.done = anyio.Event()

    async def read(self) -> None:
        with self.kept:
            try:
                if self._stream is not None:
                    async for chunk in self._stream:
                        self._take(chunk)
            finally:
                self.done.set()


class _Lines:
    """Puts lines together, none longer than the limit."""

    def __init__(self, on_line: OnLine) -> None:
        self._on_line = on_line
        self._parts: list[bytes] = []
        self._length = 0

    def take(self, chunk: bytes) -> None:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            self._give()
        self._add(rest)

    def end(self) -> None:
        if self._length:
            self._give()

    def _add(self, part: bytes) -> None:
        part = part[: LINE_LIMIT_BYTES - self._length]
        self._parts.append(part)
        self._length += len(part)

    def _give(self) -> None:
        line = b"".join(self._parts)
        self._parts.clear()
        self._length = 0
        self._on_line(line.removesuffix(b"\r").decode(errors="replace"))


async def _feed(stream: ByteSendStream, given: bytes) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await stream.send(given)
    await stream.aclose()
