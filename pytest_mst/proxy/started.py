"""Programs that the run starts, for servers spoken to over HTTP: ready before anybody asks them.

A program is started once, however many servers name it, and stopped with its whole group. It is
not started again when it ends: its servers are then gone, as one that the run does not start is.
"""

from __future__ import annotations

import errno
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urlsplit

import anyio
from anyio.abc import TaskGroup

from pytest_mst.domain.eval_config import HttpServer, StartedProcess
from pytest_mst.domain.json_value import content_hash
from pytest_mst.local.child import CannotStartError, Child, Command
from pytest_mst.proxy.server_log import ServerLog
from pytest_mst.proxy.unavailable import BrokenPart, ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec

_SAME_MACHINE = {"localhost": "127.0.0.1", "::1": "127.0.0.1"}
_FIRST_WAIT_S = 0.02
_LONGEST_WAIT_S = 0.25
"""Between two looks at whether a program is ready; each wait is twice the one before."""
_ANSWER_WITHIN_S = 2.0
_STATUS_GRACE_S = 0.5
_FLUSH_S = 1.0
"""How often what it has written is copied into the run's folder."""
_FIRST_UNREADY_STATUS = 500


def start_of(spec: UpstreamSpec) -> StartedProcess | None:
    """Return how the program is started that a server is served by; `None` where we start none."""
    return spec.config.start if isinstance(spec.config, HttpServer) else None


def program_identity(spec: UpstreamSpec) -> str:
    """Return what is equal for the servers of one program: all that it is started with.

    Holds a hash only, no secret. How long to wait for it is no part of it.
    """
    start = start_of(spec)
    if start is None:
        return ""
    return content_hash(
        [
            start.command,
            list(start.args),
            start.env,
            str(spec.base_dir / (start.cwd or ".")),
            start.ready_url,
        ]
    )


@dataclass(eq=False, slots=True)
class _Program:
    """One program, from before its start until nothing is left of it."""

    spec: UpstreamSpec
    start: StartedProcess
    addresses: Sequence[str]
    """Where nothing may answer before it is started: a stranger would be taken for it."""
    log: ServerLog = field(default_factory=ServerLog)
    settled: anyio.Event = field(default_factory=anyio.Event)
    """Set when it is ready, and when it is known that it will not be."""
    gone: anyio.Event = field(default_factory=anyio.Event)
    is_ready: bool = False
    failure: ServerUnavailableError | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    async def serve(self) -> None:
        """Start the program and keep it until the scope is cancelled; then end it."""
        try:
            with self.log, self.scope:
                try:
                    await self._run()
                except ServerUnavailableError as error:
                    self.failure = error
                finally:
                    self.settled.set()
                await anyio.sleep_forever()  # what it said is still to be copied
        finally:
            self.settled.set()
            self.gone.set()

    async def _run(self) -> None:
        for url in self.addresses:
            if await _answer(url) is None:
                raise self._is_taken(url, "something else answers")
        with ExitStack() as claims:
            for address, url in {address_of(url): url for url in self.addresses}.items():
                if not claims.enter_context(_claimed(address)):
                    raise self._is_taken(url, "another session has something started")
            await self._keep_started()

    def _is_taken(self, url: str, by: str) -> ServerUnavailableError:
        reason = (
            f"is not started: {by} at {_origin(url)} already;"
            " stop that, or give this one an address of its own"
        )
        return self._unavailable(reason, "spawn")

    async def _keep_started(self) -> None:
        try:
            child = await Child.start(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self.log.fd,
                stderr=self.log.fd,
                takes_group_along=True,
            )
        except CannotStartError as error:
            raise ServerUnavailableError(self.spec.label, "spawn", str(error)) from error
        try:
            await self._until_ready(child)
            self.is_ready = True
            self.settled.set()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell_of_end, child)
                tasks.start_soon(self._copy_log)
        finally:
            with anyio.CancelScope(shield=True):
                await child.end(grace_s=0)

    @property
    def _command(self) -> Command:
        return Command(
            program=self.start.command,
            args=self.start.args,
            env=self.start.env,
            cwd=self.spec.base_dir / (self.start.cwd or "."),
        )

    async def _until_ready(self, child: Child) -> None:
        """Wait until its address answers; its end, if that comes first, is noticed at once.

        Raises:
            ServerUnavailableError: it has ended, or does not answer in time.

        """
        answered, last = False, "it was not asked yet"
        with anyio.move_on_after(self.start.timeout_ms / 1000):
            async with anyio.create_task_group() as tasks:

                async def stop_asking() -> None:
                    await child.ended()
                    tasks.cancel_scope.cancel()

                tasks.start_soon(stop_asking)
                wait_s = _FIRST_WAIT_S
                while (problem := await _answer(self.start.ready_url)) is not None:
                    last = problem
                    await anyio.sleep(wait_s)
                    wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
                answered = True
                tasks.cancel_scope.cancel()
        if answered:
            return
        await child.status_within(_STATUS_GRACE_S)
        if child.exit_code is not None:
            reason = f"{child.how_it_ended} before it was ready"
            raise self._unavailable(reason, "exit", child)
        origin = _origin(self.start.ready_url)
        limit = f"within {self.start.timeout_ms} ms (start.timeoutMs)"
        reason = f"was not ready at {origin} {limit}: {last}"
        raise self._unavailable(reason, "hang", child)

    async def _tell_of_end(self, child: Child) -> None:
        """Write into the log that it ended though nobody ended it."""
        await child.ended()
        await child.status_within(_STATUS_GRACE_S)
        self.log.note(f"{child.how_it_ended}; the run goes on without it", "start")
        self.log.flush(whole=True)

    async def _copy_log(self) -> None:
        while True:
            await anyio.sleep(_FLUSH_S)
            self.log.flush()

    def _unavailable(
        self, reason: str, broke: BrokenPart, child: Child | None = None
    ) -> ServerUnavailableError:
        tail = self.log.tail()
        last = tail.rsplit("\n", 1)[-1]
        return ServerUnavailableError(
            self.spec.label,
            broke,
            reason + (f"; it said: {last}" if last else ""),
            exit_code=child.exit_code if child is not None else None,
            stderr_tail=tail,
        )


class StartedPrograms:
    """The programs of one session. An async context manager; leaving it ends all of them."""

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None
        self._programs: dict[str, _Program] = {}

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End every program, side by side, and wait until nothing is left of them."""
        if self._tasks is None:
            return
        with anyio.CancelScope(shield=True):
            for program in self._programs.values():
                program.scope.cancel()
            for program in self._programs.values():
                await program.gone.wait()
        await self._tasks.__aexit__(None, None, None)

    def begin(self, specs: Sequence[UpstreamSpec]) -> None:
        """Begin to start the programs of these servers, each once, and return at once.

        Args:
            specs: servers. Those that the run starts no program for are none of our business.

        """
        if self._tasks is None:
            msg = "the programs are not entered: use `async with StartedPrograms() as programs`"
            raise RuntimeError(msg)
        for identity, own in _by_program(specs).items():
            if identity in self._programs:
                continue
            start = start_of(own[0])
            assert start is not None
            urls = [spec.config.server_url for spec in own if isinstance(spec.config, HttpServer)]
            addresses = tuple(dict.fromkeys([start.ready_url, *urls]))
            program = self._programs[identity] = _Program(own[0], start, addresses)
            self._tasks.start_soon(program.serve)

    async def ready(self, spec: UpstreamSpec) -> None:
        """Wait until the program of a server is ready; a no-op for a server that has none here.

        Raises:
            ServerUnavailableError: it cannot be started, ended before it was ready, or was not
                ready in time.

        """
        program = self._programs.get(program_identity(spec))
        if program is None:
            return
        await program.settled.wait()
        failure = program.failure
        if failure is not None:
            raise ServerUnavailableError(
                spec.label,
                failure.broke,
                failure.reason,
                exit_code=failure.exit_code,
                stderr_tail=failure.stderr_tail,
            )
        if not program.is_ready:
            raise ServerUnavailableError(spec.label, "spawn", "was stopped while it was started")

    async def keep_log(self, spec: UpstreamSpec) -> None:
        """Have all that the program of a server wrote, and writes, copied to its `log_path`."""
        program = self._programs.get(program_identity(spec))
        if program is not None and spec.log_path is not None:
            program.log.keep_in(spec.log_path, spec.redact, spec.longest_secret_bytes)


def _by_program(specs: Sequence[UpstreamSpec]) -> Mapping[str, list[UpstreamSpec]]:
    found: dict[str, list[UpstreamSpec]] = {}
    for spec in specs:
        if start_of(spec) is not None:
            found.setdefault(program_identity(spec), []).append(spec)
    return found


def address_of(url: str) -> tuple[str, int | None] | None:
    """Return the machine and the port of an HTTP address; `None` for what is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    host = _SAME_MACHINE.get(parts.hostname, parts.hostname)
    return host, port or (443 if parts.scheme == "https" else 80)


@contextmanager
def _claimed(address: tuple[str, int | None] | None) -> Iterator[bool]:
    """Keep other sessions from starting a program at an address; a no-op but on Linux.

    Of two that look at one moment both find nobody there, and the program of the one that is
    first to listen would be taken for the other's own. The claim ends with this process.

    Yields:
        Whether it is claimed; not, where another session has it.

    """
    if sys.platform != "linux":
        yield True
        return
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(f"\0pytest-mst starts {address}")  # a name that is no file
        except OSError as error:  # where there are no such names, nobody can be kept out
            yield error.errno != errno.EADDRINUSE
        else:
            yield True


async def _answer(url: str) -> str | None:
    """Ask for an address once.

    Returns:
        `None` when something answers there, whatever it says, as long as it does not say that it
        is not able to (a status of 500 and above); else what was found instead.

    """
    return await anyio.to_thread.run_sync(_asked, urlsplit(url), abandon_on_cancel=True)


def _asked(url: SplitResult) -> str | None:
    # No client that would ask a proxy of the environment for what is on this machine.
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=_ANSWER_WITHIN_S)
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        status = connection.getresponse().status
    except (OSError, HTTPException) as error:
        return f"there is no answer ({type(error).__name__})"
    finally:
        connection.close()
    return None if status < _FIRST_UNREADY_STATUS else f"the answer is {status}"


def _origin(url: str) -> str:
    """Return an address without its path, query and user: any of them may hold a token."""
    address = urlsplit(url)
    port = "" if address.port is None else f":{address.port}"
    return f"{address.scheme}://{address.hostname}{port}"
