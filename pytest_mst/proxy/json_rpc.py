"""Our end of a JSON-RPC connection: raw dicts out, raw dicts in, every wait bounded."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import anyio
from anyio.abc import TaskGroup

from pytest_mst.proxy.pipe import Message, Pipe, PipeClosedError, UnsendableError

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
UNSUPPORTED_REVISION = -32022

Params: TypeAlias = Mapping[str, Any]
OnProgress: TypeAlias = Callable[[Params], Coroutine[None, None, None]]

_CANCEL_NOTICE_S = 1.0
"""How long an abandoned request may take to say so to the server."""
_ORDER_S = 0.2
"""How long an answer waits for whoever is still being told what came before it."""


def meta_of(params: object) -> Mapping[str, Any]:
    """Give what a message says in its `_meta`; nothing where that is not what it should be."""
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    return meta if isinstance(meta, Mapping) else {}


class RpcError(Exception):
    """The other side answered with an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the error as it came."""
        super().__init__(f"{message} (code {code})")
        self.code = code
        self.message = message
        self.data = data


class PeerGoneError(Exception):
    """The connection ended before the answer came."""


class RequestTimeoutError(Exception):
    """No answer in time; the server was told that nobody waits any more."""


@dataclass(slots=True)
class _Waiting:
    on_progress: OnProgress | None
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Message | None = None
    """The response; still `None` when `done` is set: the connection ended."""
    after: tuple[anyio.Event, ...] = ()
    """Set when what came before the response has been told."""


@dataclass(frozen=True, slots=True)
class PeerHandlers:
    """What to do with what the other side starts."""

    request: Callable[[str, Params | None], Awaitable[Mapping[str, Any]]]
    """Answers a request of the server's; may raise `RpcError`."""
    notification: Callable[[str, Params | None], Coroutine[None, None, None]]
    ended: Callable[[], None]
    """Called once when the connection has ended, before anybody who waits hears of it."""


class Peer:
    """One JSON-RPC connection, over any pipe."""

    def __init__(self, pipe: Pipe, handlers: PeerHandlers) -> None:
        self._pipe = pipe
        self._handlers = handlers
        self._ids = itertools.count(1)
        self._waiting: dict[int | str, _Waiting] = {}
        self._telling: set[anyio.Event] = set()
        self.ended = anyio.Event()

    async def run(self) -> None:
        """Read until the pipe ends."""
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    while True:
                        self._take(await self._pipe.receive(), tasks)
                except PipeClosedError:
                    self._end()
                tasks.cancel_scope.cancel()
        finally:
            self._end()

    async def request(
        self,
        method: str,
        params: Params | None,
        *,
        timeout_s: float | None,
        on_progress: OnProgress | None = None,
        request_id: str | None = None,
        cancellable: bool = True,
    ) -> dict[str, Any]:
        """Ask and wait for the result.

        Args:
            method: the JSON-RPC method.
            params: its parameters; `None` sends none.
            timeout_s: how long to wait, in seconds; `None` for as long as it takes.
            on_progress: gets the parameters of each progress notification.
            request_id: an id of the caller's own; a string no number is written as.
            cancellable: whether the server is told when nobody waits any more.

        Raises:
            RpcError: the other side answered with an error, or the request cannot be sent.
            RequestTimeoutError: no answer in time.
            PeerGoneError: the connection ended first.

        """
        if self.ended.is_set():
            raise PeerGoneError
        key: int | str = next(self._ids) if request_id is None else request_id
        waiting = self._waiting[key] = _Waiting(on_progress)
        message = _request(key, method, params, with_progress=on_progress is not None)
        try:
            with anyio.move_on_after(timeout_s):
                await self._send(message)
                await waiting.done.wait()
            if waiting.after:
                await _in_order(waiting.after)
            if not waiting.done.is_set():
                if cancellable:
                    await self._abandon(key, "timed out")
                raise RequestTimeoutError
        except anyio.get_cancelled_exc_class():
            if cancellable and not waiting.done.is_set():
                await self._abandon(key, "cancelled")
            raise
        finally:
            del self._waiting[key]
        return _result(waiting.answer)

    async def notify(self, method: str, params: Params | None = None) -> None:
        """Say something that has no answer; what cannot be sent any more is dropped."""
        message: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        try:
            await self._pipe.send(message)
        except (PipeClosedError, UnsendableError):
            return

    async def _send(self, message: Message) -> None:
        try:
            await self._pipe.send(message)
        except UnsendableError as error:
            raise RpcError(INVALID_PARAMS, f"The request {error}") from error
        except PipeClosedError:
            # The end that the reader is about to see says more than a broken pipe does.
            return

    async def _abandon(self, key: int | str, reason: str) -> None:
        with anyio.move_on_after(_CANCEL_NOTICE_S, shield=True):
            await self.notify("notifications/cancelled", {"requestId": key, "reason": reason})

    def _take(self, message: Message, tasks: TaskGroup) -> None:
        method = message.get("method")
        if not isinstance(method, str):
            self._answered(message)
        elif "id" in message:
            tasks.start_soon(self._serve, message["id"], method, message.get("params"))
        else:
            params = message.get("params")
            on_progress = self._progress_of(method, params)
            if on_progress is not None:
                self._tell(tasks, partial(on_progress, params or {}))
            elif method != "notifications/progress":
                self._tell(tasks, partial(self._handlers.notification, method, params))

    def _tell(self, tasks: TaskGroup, telling: Callable[[], Coroutine[None, None, None]]) -> None:
        """Hand a notification over in a task of its own: who is slow holds up no reading."""
        told = anyio.Event()
        self._telling.add(told)

        async def tell() -> None:
            try:
                await telling()
            finally:
                told.set()
                self._telling.discard(told)

        tasks.start_soon(tell)

    def _answered(self, message: Message) -> None:
        waiting = self._find(message["id"])
        if waiting is not None:
            waiting.after = tuple(self._telling)
            waiting.answer = message
            waiting.done.set()

    def _find(self, key: object) -> _Waiting | None:
        """Find who waits, also where the server gave a number back as text."""
        if isinstance(key, str) and key.isdecimal():
            return self._waiting.get(key) or self._waiting.get(int(key))
        if isinstance(key, int | str) and not isinstance(key, bool):
            return self._waiting.get(key)
        return None

    def _progress_of(self, method: str, params: object) -> OnProgress | None:
        if method != "notifications/progress" or not isinstance(params, dict):
            return None
        waiting = self._find(params.get("progressToken"))
        return waiting.on_progress if waiting is not None else None

    async def _serve(self, key: object, method: str, params: Params | None) -> None:
        answer: Message = {"jsonrpc": "2.0", "id": key}
        try:
            answer["result"] = await self._handlers.request(method, params)
        except RpcError as error:
            answer["error"] = {"code": error.code, "message": error.message}
            if error.data is not None:
                answer["error"]["data"] = error.data
        try:
            await self._pipe.send(answer)
        except (PipeClosedError, UnsendableError):
            return

    def _end(self) -> None:
        if self.ended.is_set():
            return
        self._handlers.ended()
        self.ended.set()
        for waiting in self._waiting.values():
            waiting.done.set()


async def _in_order(told: Iterable[anyio.Event]) -> None:
    with anyio.move_on_after(_ORDER_S):
        for one in told:
            await one.wait()


def _request(key: int | str, method: str, params: Params | None, *, with_progress: bool) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": key, "method": method}
    if with_progress:
        params = {**(params or {}), "_meta": {**meta_of(params), "progressToken": key}}
    if params is not None:
        message["params"] = params
    return message


def _result(answer: Message | None) -> dict[str, Any]:
    if answer is None:
        raise PeerGoneError
    error = answer.get("error")
    if error is not None:
        if not isinstance(error, dict):
            raise RpcError(INTERNAL_ERROR, f"The server answered with an error: {error!r}")
        code = error.get("code")
        raise RpcError(
            code if isinstance(code, int) else INTERNAL_ERROR,
            str(error.get("message", "")),
            error.get("data"),
        )
    result = answer.get("result")
    if not isinstance(result, dict):
        raise RpcError(INTERNAL_ERROR, f"The server's result is not an object: {result!r:.200}")
    return result
