"""The way in for programs that are not in our process: streamable HTTP on loopback."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pytest_mst.proxy.sdk_import import import_sdk
from pytest_mst.proxy.secret_text import SecretText

if TYPE_CHECKING:
    from pytest_mst.local.web_server import WebServer
    from pytest_mst.proxy.sdk import Answering, HttpSessions

Scope: TypeAlias = Mapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]

_TOKEN_BYTES = 32
_BODY_LIMIT_BYTES = 256 * 2**20
_OUR_NAMES = ("127.0.0.1", "localhost")
_LOOPBACK_ORIGIN = re.compile(
    r"[a-z][a-z0-9+.-]*://(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.IGNORECASE
)
"""As browsers write the origin of a page of this machine, of whatever kind."""
_LAST_WORDS_S = 1.0
"""How long a client may take to read that its request was cut short."""


class HttpFront:
    """One server on loopback, started when it is first needed; without a token nothing is there.

    Whoever knows an address is let in, so that no address is ever logged or stored. A page in a
    browser that guesses the port is refused by its `Host` or `Origin` before it can guess more.
    """

    def __init__(self, tasks: TaskGroup) -> None:
        """Make a front that is not yet started.

        Args:
            tasks: what the sessions live in, whoever asked for them.

        """
        self._tasks = tasks
        self._mounts: dict[str, HttpMount] = {}
        self._server: WebServer | None = None
        self._starting = anyio.Lock()
        self._hosts: frozenset[str] = frozenset()

    async def mount(self, open_session: Callable[[], Answering]) -> HttpMount:
        """Give one server of one attempt an address of its own.

        Args:
            open_session: makes whoever answers one client's session.

        """
        await import_sdk()
        from pytest_mst.proxy.sdk import HttpSessions

        port = await self._started()
        path = f"/t/{secrets.token_urlsafe(_TOKEN_BYTES)}/mcp"
        origin = f"http://127.0.0.1:{port}"
        url = SecretText(f"{origin}{path}", shown=f"{origin}/t/[token]/mcp")
        sessions = HttpSessions(open_session, _BODY_LIMIT_BYTES)
        mount = HttpMount(url, sessions, lambda: self._forget(path))
        await self._tasks.start(mount.live)
        self._mounts[path] = mount
        return mount

    async def stop(self) -> None:
        """Stop listening; every address has been closed by whoever asked for it."""
        if self._server is None:
            return
        from pytest_mst.proxy.sdk import end_sse_watcher

        await self._server.stop()
        await end_sse_watcher()

    async def _started(self) -> int:
        async with self._starting:
            if self._server is None:
                from pytest_mst.local.web_server import WebServer

                server = WebServer(self._serve)
                await server.start()
                self._hosts = frozenset(f"{name}:{server.port}" for name in _OUR_NAMES)
                self._server = server
            return self._server.port

    def _forget(self, path: str) -> None:
        self._mounts.pop(path, None)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        reply = _Reply(send)
        if headers.get(b"host", "").lower() not in self._hosts:
            await reply.refuse(HTTPStatus.MISDIRECTED_REQUEST)
        elif not _is_loopback(headers.get(b"origin")):
            await reply.refuse(HTTPStatus.FORBIDDEN)
        elif (mount := self._mounts.get(scope["path"])) is None:
            await reply.refuse(HTTPStatus.NOT_FOUND)
        else:
            await mount.handle(scope, receive, reply)


class HttpMount:
    """One address: one server of one attempt, until the attempt ends."""

    def __init__(self, url: str, sessions: HttpSessions, forget: Callable[[], None]) -> None:
        self.url = url
        """Lets whoever knows it in; to be given to the client and to nobody else."""
        self._sessions = sessions
        self._forget = forget
        self._under_way: set[anyio.CancelScope] = set()
        self._idle = anyio.Event()
        self._over = anyio.Event()
        self._gone = anyio.Event()

    async def live(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Hold the sessions open until `close`."""
        try:
            async with self._sessions.run():
                task_status.started()
                await self._over.wait()
        finally:
            self._gone.set()

    async def handle(self, scope: Scope, receive: Receive, reply: _Reply) -> None:
        """Answer one request; where the attempt ends first, with the end."""
        with anyio.CancelScope() as cut:
            self._under_way.add(cut)
            try:
                request = _Request(receive)
                if await request.is_whole(_BODY_LIMIT_BYTES):
                    await self._sessions.handle(scope, request.receive, reply.send)
                elif not request.client_left:
                    await reply.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            finally:
                self._under_way.discard(cut)
                if self._over.is_set() and not self._under_way:
                    self._idle.set()
        if cut.cancelled_caught:
            await reply.cut_short()

    async def close(self) -> None:
        """Let nobody in any more, end what is under way, and wait until nothing is left."""
        self._forget()
        self._over.set()
        for cut in tuple(self._under_way):
            cut.cancel()
        if self._under_way:
            await self._idle.wait()
        await self._gone.wait()


@dataclass(slots=True)
class _Request:
    """The body of one request, taken in before anybody looks at it.

    To the SDK a client that leaves in the middle of its request is an error to be logged.
    """

    from_client: Receive
    client_left: bool = False
    _body: bytes | None = None

    async def is_whole(self, limit_bytes: int) -> bool:
        """Take the body in; tell whether all of it came and is no longer than it may be."""
        chunks: list[bytes] = []
        taken, more = 0, True
        while more:
            message = await self.from_client()
            if message["type"] != "http.request":
                self.client_left = True
                return False
            chunks.append(message.get("body", b""))
            taken += len(chunks[-1])
            if taken > limit_bytes:
                return False
            more = message.get("more_body", False)
        self._body = b"".join(chunks)
        return True

    async def receive(self) -> Mapping[str, Any]:
        """Give the body, and then whatever comes from the client."""
        if self._body is None:
            return await self.from_client()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


@dataclass(slots=True)
class _Reply:
    """What is sent in answer to one request, and how far it has come."""

    to_client: Send
    begun: bool = False
    complete: bool = False

    async def send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
        elif not message.get("more_body", False):
            self.complete = True
        await self.to_client(message)

    async def refuse(self, status: HTTPStatus) -> None:
        """Answer with a status, always in the same words."""
        body = status.phrase.encode()
        headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def cut_short(self) -> None:
        """End an answer that will not come, so that its client does not wait for it."""
        with anyio.move_on_after(_LAST_WORDS_S, shield=True):
            if not self.begun:
                await self.refuse(HTTPStatus.NOT_FOUND)
            elif not self.complete:
                await self.send({"type": "http.response.body", "body": b""})


def _is_loopback(origin: str | None) -> bool:
    """Tell whether a request comes from a page of this machine, or from no page at all."""
    return origin is None or _LOOPBACK_ORIGIN.fullmatch(origin) is not None
