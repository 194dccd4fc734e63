"""A program that is started here: what it gets of ours, and its certain end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import anyio
from anyio.abc import Process

SAFE_ENVIRONMENT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What a program gets of our environment unasked; the set of the MCP SDKs (client/stdio)."""

TERM_GRACE_S = 2.0
"""How long a program may take to end after SIGTERM."""
KILL_GRACE_S = 2.0
_POLL_S = 0.005

_DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this program has ended")
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
try:
    os.execv(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error}")
"""
"""Becomes the program; the kernel kills it when the thread that started it ends (Linux, prctl 2:
PR_SET_PDEATHSIG), so that it outlives no test run that was killed."""

_TAKE_GROUP_ALONG = """
import ctypes, os, signal, sys
prctl = ctypes.CDLL(None).prctl
signal.signal(signal.SIGHUP, lambda *_: os.killpg(0, signal.SIGKILL))
prctl(1, signal.SIGHUP)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this program has ended")
signal.signal(signal.SIGTERM, lambda *_: None)
leader, program = os.getpid(), os.fork()
if not program:
    prctl(1, signal.SIGKILL)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if os.getppid() != leader:
        os._exit(1)
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        os.write(2, f"{sys.argv[2]}: {error}\\n".encode(errors="replace"))
        os._exit(1)
status = os.waitpid(program, 0)[1]
if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(leader, number)
os._exit(os.WEXITSTATUS(status))
"""
"""Leads the program's group and ends as the program does; when the thread that started it ends,
the whole group is killed: the program, and the children that it would leave behind."""


_WITHOUT_COERCION = """
import os
os.environ.pop("LC_CTYPE", None)
"""
"""Takes back what Python sets where the locale is C (PEP 538): a program gets what it was given."""


class CannotStartError(Exception):
    """A program cannot be started: `cannot be started: ` and why, with what to do about it."""

    def __init__(self, why: str, errno: int | None = None) -> None:
        """Build the message.

        Args:
            why: in words.
            errno: what the system said, where it was the system that would not.

        """
        super().__init__(f"cannot be started: {why}")
        self.errno = errno


@dataclass(frozen=True, slots=True)
class Command:
    """A program to start; secrets are already resolved."""

    program: str
    """`python` is the running interpreter."""
    args: Sequence[str]
    env: Mapping[str, str] = field(repr=False)
    """Added to what it gets of ours; may hold keys."""
    cwd: Path
    inherit_env: bool = False
    """Whether it gets the whole environment, not only a safe part of it."""

    @property
    def environment(self) -> dict[str, str]:
        """What it gets as its environment."""
        kept = os.environ if self.inherit_env else SAFE_ENVIRONMENT
        return {name: os.environ[name] for name in kept if name in os.environ} | dict(self.env)

    def found(self) -> str:
        """Find the program before anything is started, so that a wrong name is told as one.

        Raises:
            CannotStartError: there is no such program, or no such working folder.

        """
        if not self.cwd.is_dir():
            reason = f"its working folder {str(self.cwd)!r} is not a folder; set cwd"
            raise CannotStartError(reason)
        if self.program == "python":
            return sys.executable
        if os.sep in self.program:
            path = self.cwd / self.program
            if os.access(path, os.X_OK) and path.is_file():
                return str(path)
            wrong = "is not executable" if path.exists() else "does not exist"
            reason = f"{str(path)!r} {wrong}; set command"
            raise CannotStartError(reason)
        found = shutil.which(self.program, path=self.environment.get("PATH", os.defpath))
        if found is None:
            reason = (
                f"there is no program {self.program!r} on PATH;"
                " install it, or set command to its path"
            )
            raise CannotStartError(reason)
        return found


class Child:
    """A process of ours, in a group of its own."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @classmethod
    async def start(
        cls,
        command: Command,
        *,
        stdin: int = subprocess.PIPE,
        stdout: int = subprocess.PIPE,
        stderr: int,
        takes_group_along: bool = False,
    ) -> Self:
        """Start a program.

        Args:
            command: the program.
            stdin: its standard input: a descriptor, or what `subprocess` has for one.
            stdout: its standard output, as above.
            stderr: its standard error, as above.
            takes_group_along: whether also its children are ended when this process is killed;
                it costs a small process of ours. Linux only.

        Raises:
            CannotStartError: it cannot be started.

        """
        words = [command.found(), *command.args]
        if sys.platform == "linux":
            shim = _TAKE_GROUP_ALONG if takes_group_along else _DIE_WITH_PARENT
            if "LC_CTYPE" not in command.environment:
                shim = _WITHOUT_COERCION + shim
            words = [sys.executable, "-I", "-S", "-c", shim, str(os.getpid()), *words]
        try:
            process = await anyio.open_process(
                words,
                cwd=command.cwd,
                env=command.environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            why = f"{command.program}: {error.strerror}"
            raise CannotStartError(why, error.errno) from error
        return cls(process)

    @property
    def exit_code(self) -> int | None:
        """Its exit status; negative: the signal it was ended by; `None` while it runs."""
        return self.process.returncode

    @property
    def how_it_ended(self) -> str | None:
        """Its end in words; `None` while it runs."""
        code = self.exit_code
        if code is None:
            return None
        return f"was ended by {_signal_name(-code)}" if code < 0 else f"exited with status {code}"

    async def ended(self) -> None:
        """Wait for the process itself to end, whoever still holds its streams."""
        if self.process.returncode is not None:
            return
        if sys.platform != "linux":
            while self.process.returncode is None:  # noqa: ASYNC110  nobody sets an event
                await anyio.sleep(10 * _POLL_S)
            return
        try:
            fd = os.pidfd_open(self.process.pid)
        except ProcessLookupError:
            return
        try:
            await anyio.wait_readable(fd)
        finally:
            os.close(fd)

    async def ended_within(self, within_s: float) -> bool:
        """Wait for its end, at most so long, and tell whether it has come."""
        with anyio.move_on_after(within_s):
            await self.ended()
            return True
        return False

    async def status_within(self, within_s: float) -> bool:
        """Wait for the exit status, which comes a little after the end."""
        with anyio.move_on_after(within_s):
            while self.process.returncode is None:  # noqa: ASYNC110  nobody sets an event
                await anyio.sleep(_POLL_S)
        return self.process.returncode is not None

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the process and all that is left of its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    async def end(self, grace_s: float) -> None:
        """End the process and whatever is left of its group; every wait is bounded.

        Args:
            grace_s: how long to wait for it to end by itself first.

        """
        if not await self.ended_within(grace_s):
            self.signal_group(signal.SIGTERM)
            await self.ended_within(TERM_GRACE_S)
        self.signal_group(signal.SIGKILL)
        await self.status_within(KILL_GRACE_S)


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
