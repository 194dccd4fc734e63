"""One connection to a server: opened, agreed on, listed, asked, and its end accounted for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeAlias

import anyio

from pytest_mst.domain.eval_config import HttpServer, PythonServer, StdioServer
from pytest_mst.proxy.death import CallOwner, Death, ServerDiedError, lost_to_another
from pytest_mst.proxy.handshake import Agreement, HandshakeError, agree
from pytest_mst.proxy.json_rpc import (
    METHOD_NOT_FOUND,
    OnProgress,
    Params,
    Peer,
    PeerGoneError,
    PeerHandlers,
    RequestTimeoutError,
    RpcError,
)
from pytest_mst.proxy.pipe import Pipe, PipeEnding
from pytest_mst.proxy.process import open_process
from pytest_mst.proxy.server_log import ServerLog
from pytest_mst.proxy.tool_pages import read_tools
from pytest_mst.proxy.unavailable import BrokenPart, ServerUnavailableError
from pytest_mst.proxy.upstream_spec import ServerListing, UpstreamSpec

Meet: TypeAlias = Callable[[Peer], Awaitable[Agreement]]
Listener: TypeAlias = Callable[[str, Params | None], Coroutine[None, None, None]]
Answerer: TypeAlias = Callable[[str, Params | None], Awaitable[Mapping[str, Any]]]

_FAREWELL_S = 3.0
"""How long a transport may take to say that the connection ends."""
_CLIENT_GRACE_S = 2.0
"""How long a question of the server's may wait for the handshake of the client that it is for."""
_LISTED_AGAIN = 2
"""How often a list is read again because it changed while it was read."""


class Upstream:
    """A connection to a server. It lives in one task, `serve`, whoever asked for it."""

    def __init__(
        self, spec: UpstreamSpec, meet: Meet | None = None, *, asks_client: bool = False
    ) -> None:
        """Make a connection that is not yet open.

        Args:
            spec: the server.
            meet: how a protocol revision is agreed on; as the config asks where it is not given.
            asks_client: it is opened for a client that can be asked, and is about to be there.

        """
        self.spec = spec
        self._meet_with = meet
        self._log = ServerLog()
        self.keep_log_for(spec)
        self._scope = anyio.CancelScope()
        self._peer: Peer | None = None
        self._pipe: Pipe | None = None
        self._agreement: Agreement | None = None
        self._listing: ServerListing | None = None
        self._listing_lock = anyio.Lock()
        self._lists_changed = 0
        self._in_flight: list[CallOwner] = []
        self._holders: set[CallOwner] = set()
        self._users: set[CallOwner] = set()
        self._sharers = 0
        self._stopping = False
        self._over = anyio.Event()
        self.opened = anyio.Event()
        """Set when the server can be asked, or when it is known that it cannot."""
        self.gone = anyio.Event()
        """Set when nothing is left of the connection."""
        self.failure: ServerUnavailableError | None = None
        self.exited_on_probe = False
        self.death: Death | None = None
        self.listeners: set[Listener] = set()
        """Hear of every notification of the server's, other than progress."""
        self.log_takers: list[object] = []
        """The requests in flight that asked for log lines; only of a single one is it certain."""
        self.answerer: Answerer | None = None
        """Answers the server's own requests; only where the connection is one attempt's own."""
        self._client_there = anyio.Event()
        if not asks_client:
            self._client_there.set()

    async def serve(self) -> None:
        """Open the connection and keep it until it ends or `stop` is called."""
        try:
            with self._scope:
                async with open_pipe(self.spec, self._log) as pipe:
                    self._pipe = pipe
                    await self._live(pipe)
        except ServerUnavailableError as error:
            self.failure = error
        except Exception as error:  # noqa: BLE001  the request boundary: whatever a transport
            # or a user's module throws ends this connection, and nobody else's scope.
            self._unexpected(error)
        finally:
            self.opened.set()
            self.gone.set()

    async def _live(self, pipe: Pipe) -> None:
        handlers = PeerHandlers(self._requested, self._notified, self._ended)
        peer = self._peer = Peer(pipe, handlers)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(peer.run)
            if await self._meet(peer, pipe):
                self.opened.set()
                tasks.start_soon(self._hear_of_changes, peer)
                await self._over.wait()
            tasks.cancel_scope.cancel()

    async def _meet(self, peer: Peer, pipe: Pipe) -> bool:
        try:
            with anyio.fail_after(self.spec.connect_timeout_s):
                if self._meet_with is None:
                    self._agreement = await agree(peer, self.spec.config.protocol)
                else:
                    self._agreement = await self._meet_with(peer)
        except TimeoutError:
            self.failure = self._silent("the handshake")
        except (RpcError, HandshakeError) as error:
            ending = pipe.ending()
            reason = ending.reason if ending.refused else f"refused the handshake: {error}"
            self.failure = self._unavailable("connect" if ending.refused else "handshake", reason)
        except PeerGoneError:
            self.failure = self._ended_before("it could be used")
            self.exited_on_probe = self.failure.broke == "exit"
        else:
            pipe.agreed_on(self._agreement.revision)
            return True
        return False

    def _unexpected(self, error: Exception) -> None:
        cause = _leaf(error)
        ending = self._pipe.ending() if self._pipe is not None else None
        if ending is not None and ending.refused:
            self.failure = self._unavailable("connect", ending.reason)
        elif isinstance(self.spec.config, PythonServer):
            reason = f"cannot be used: {type(cause).__name__}: {cause}"
            self.failure = self._unavailable("object", reason)
        else:
            # The words of a transport's error may hold an address, and that a token.
            what = "the connection" if ending is None else ending.reason
            self.failure = self._unavailable("connect", f"{what}: {type(cause).__name__}")

    @property
    def alive(self) -> bool:
        """Whether the server can be asked."""
        return (
            self.opened.is_set()
            and self._peer is not None
            and not self._peer.ended.is_set()
            and not self.gone.is_set()
            and not self._stopping
        )

    @property
    def agreement(self) -> Agreement:
        """What was agreed on; only once `opened` is set without a failure."""
        if self._agreement is None:
            msg = f"server {self.spec.label!r} is not open"
            raise RuntimeError(msg)
        return self._agreement

    @property
    def known_listing(self) -> ServerListing | None:
        """The tools as last listed; `None` once the server said that they changed."""
        return self._listing

    @property
    def unused(self) -> bool:
        """Whether no attempt has called through it, or holds it in order to."""
        return self._sharers == 0 and not self._holders

    def stop(self) -> None:
        """End the connection; `gone` is set once nothing is left of it."""
        self._stopping = True
        self._over.set()
        if not self.opened.is_set():
            self.failure = self._unavailable("connect", "was closed while it was opened")
            self._scope.cancel()
        self._scope.deadline = anyio.current_time() + _FAREWELL_S

    def hold(self, owner: CallOwner) -> None:
        """Take note of an attempt that shares the connection."""
        self._holders.add(owner)

    def leave(self, owner: CallOwner) -> None:
        """Forget an attempt that has ended."""
        self._holders.discard(owner)
        self._users.discard(owner)
        self._log.flush()

    def keep_log_for(self, spec: UpstreamSpec) -> None:
        """Have what the server writes to its standard error kept where a user of it wants it."""
        if spec.log_path is not None:
            self._log.keep_in(spec.log_path, spec.redact, spec.longest_secret_bytes)

    async def ask(
        self,
        owner: CallOwner,
        method: str,
        params: Params | None,
        *,
        timeout_s: float | None,
        on_progress: OnProgress | None = None,
        request_id: str | None = None,
    ) -> dict[str, Any]:
        """Send a request of an attempt's, its parameters as they are.

        Raises:
            RpcError: the server answered with an error.
            RequestTimeoutError: no answer in time.
            ServerDiedError: the connection ended before the answer came.

        """
        if owner not in self._users:
            self._users.add(owner)
            self._sharers += 1
        self._in_flight.append(owner)
        try:
            return await self._live_peer.request(
                method,
                params,
                timeout_s=timeout_s,
                on_progress=on_progress,
                request_id=request_id,
            )
        except PeerGoneError:
            raise ServerDiedError(self.death or self._death()) from None
        finally:
            self._in_flight.remove(owner)

    async def tell(self, method: str, params: Params | None) -> None:
        """Send a notification of a client's."""
        await self._live_peer.notify(method, params)

    async def listing(self, *, fresh: bool = False) -> ServerListing:
        """List the server's tools, all pages; kept until the server says that they changed.

        A list that changes whenever it is read is read anew for each call.

        Raises:
            ServerUnavailableError: they cannot be listed.

        """
        async with self._listing_lock:
            if self._listing is not None and not fresh:
                return self._listing
            seen, listing = self._lists_changed, await self._list()
            for _ in range(_LISTED_AGAIN):
                if seen == self._lists_changed:
                    break
                seen, listing = self._lists_changed, await self._list()
            if seen == self._lists_changed:
                self._listing = listing
            return listing

    async def _list(self) -> ServerListing:
        agreement, peer = self.agreement, self._live_peer
        try:
            tools = await read_tools(peer, agreement, self.spec.connect_timeout_s)
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise self._unlistable(error) from error
            tools = {}
        except RequestTimeoutError:
            asked = "tools/list"
            raise self._silent(asked) from None
        except PeerGoneError:
            point = "its tools were listed"
            raise self._ended_before(point) from None
        except ValueError as error:
            raise self._unlistable(error) from error
        if self._pipe is not None:
            self._pipe.listed(tools)
        info, instructions = agreement.server_info, agreement.hello.get("instructions")
        return ServerListing(
            label=self.spec.label,
            tools=tools,
            name=_text(info.get("name")),
            version=_text(info.get("version")),
            protocol=agreement.revision,
            instructions=_text(instructions),
        )

    async def _hear_of_changes(self, peer: Peer) -> None:
        """Ask to be told when the tools change, where the era wants that to be asked for."""
        capability = self.agreement.hello.get("capabilities", {}).get("tools")
        changes = isinstance(capability, Mapping) and capability.get("listChanged") is True
        if not self.agreement.is_modern or not changes:
            return
        params = self.agreement.params({"notifications": {"toolsListChanged": True}})
        with suppress(RpcError, PeerGoneError):
            await peer.request(
                "subscriptions/listen", params, timeout_s=None, request_id="mst-tools"
            )

    @property
    def _live_peer(self) -> Peer:
        if self._peer is None:
            msg = f"server {self.spec.label!r} is not open"
            raise RuntimeError(msg)
        return self._peer

    def client_is_there(self) -> None:
        """Take note that the client's handshake is done, so that it can be asked."""
        self._client_there.set()

    async def _requested(self, method: str, params: Params | None) -> Mapping[str, Any]:
        if method == "ping":
            return {}
        with anyio.move_on_after(_CLIENT_GRACE_S):  # servers ask as soon as they are met
            await self._client_there.wait()
        if self.answerer is None:
            raise RpcError(METHOD_NOT_FOUND, "Method not found", method)
        return await self.answerer(method, params)

    async def _notified(self, method: str, params: Params | None) -> None:
        if method == "notifications/tools/list_changed":
            self._lists_changed += 1
            self._listing = None
        async with anyio.create_task_group() as tasks:  # one that is slow holds up no other
            for listener in self.listeners:
                tasks.start_soon(listener, method, params)

    def _ended(self) -> None:
        """Account for the end before anybody who waits hears of it."""
        self._over.set()
        if self._stopping or not self.opened.is_set():
            return
        death = self.death = self._death()
        if not death.callers and death.sharers == 1:
            return
        for user in self._users - death.callers:
            user.lose(lost_to_another(self.spec.label, death))

    def _death(self) -> Death:
        ending = self._pipe.ending() if self._pipe is not None else PipeEnding("ended")
        callers = () if ending.absent else self._in_flight
        return Death(ending, frozenset(callers), self._sharers)

    def _silent(self, what: str) -> ServerUnavailableError:
        limit = f"within {self.spec.config.connect_timeout_ms} ms (connectTimeoutMs)"
        unreadable = self._pipe.ending().unreadable if self._pipe is not None else ()
        if unreadable:
            reason = f"did not answer {what} {limit}; its output is not JSON-RPC: {unreadable[0]!r}"
            return self._unavailable("unreadable", reason)
        return self._unavailable("hang", f"did not answer {what} {limit}")

    def _unlistable(self, problem: object) -> ServerUnavailableError:
        return self._unavailable("listing", f"cannot be asked for its tools: {problem}")

    def _ended_before(self, what: str) -> ServerUnavailableError:
        ending = self._pipe.ending() if self._pipe is not None else PipeEnding("ended")
        if ending.refused:
            return self._unavailable("connect", ending.reason)
        last = ending.stderr_tail.rsplit("\n", 1)[-1]
        reason = f"{ending.reason} before {what}" + (f"; it said: {last}" if last else "")
        return self._unavailable("exit", reason)

    def _unavailable(self, broke: BrokenPart, reason: str) -> ServerUnavailableError:
        ending = self._pipe.ending() if self._pipe is not None else None
        return ServerUnavailableError(
            self.spec.label,
            broke,
            reason,
            exit_code=ending.exit_code if ending else None,
            stderr_tail=ending.stderr_tail if ending else "",
        )


def open_pipe(spec: UpstreamSpec, log: ServerLog) -> AbstractAsyncContextManager[Pipe]:
    """Open what carries the messages; the MCP SDK is imported only where it is needed."""
    match spec.config:
        case StdioServer() as config:
            return open_process(spec, config, log)
        case HttpServer() as config:
            from pytest_mst.proxy.http import open_http

            return open_http(spec, config)
        case PythonServer() as config:
            from pytest_mst.proxy.server_object import open_object

            return open_object(spec, config)


def _leaf(error: BaseException) -> BaseException:
    """Give the first error in a group of them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
