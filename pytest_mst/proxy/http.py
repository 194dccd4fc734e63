"""A server spoken to over streamable HTTP, as a pipe."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from pydantic_core import to_json

from pytest_mst.domain.eval_config import HttpServer
from pytest_mst.proxy.pipe import Message, Pipe, PipeClosedError, PipeEnding, UnsendableError
from pytest_mst.proxy.sdk_import import import_sdk
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec

if TYPE_CHECKING:
    import httpx2

_FIRST_ERROR_STATUS = 400
_REMEDY_BY_STATUS = {
    401: "; set headers or auth.accessTokenEnv to what lets us in",
    403: "; set headers or auth.accessTokenEnv to what lets us in",
    404: "; serverUrl should be the address of its MCP endpoint",
    405: "; serverUrl should be the address of its MCP endpoint",
}


@asynccontextmanager
async def open_http(spec: UpstreamSpec, config: HttpServer) -> AsyncIterator[Pipe]:
    """Open a transport to a server; it is not reached before the first message.

    Raises:
        ServerUnavailableError: the token's variable is not set.

    """
    headers = _headers(spec, config)
    await import_sdk()
    from pytest_mst.proxy.sdk import http_streams

    pipe = _HttpPipe(config.server_url)
    opened = http_streams(config.server_url, headers, spec.connect_timeout_s, pipe.saw)
    async with opened as (read, write):
        pipe.connect(read, write)
        yield pipe


def _headers(spec: UpstreamSpec, config: HttpServer) -> dict[str, str]:
    headers = dict(config.headers)
    if config.auth is not None:
        name = config.auth.access_token_env
        token = os.environ.get(name)
        if not token:
            reason = f"cannot be reached: the environment variable {name} is not set; set it"
            raise ServerUnavailableError(spec.label, "connect", reason)
        headers["Authorization"] = f"Bearer {token}"
    return headers


class _HttpPipe(Pipe):
    """Messages over the SDK's streamable HTTP transport."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        port = "" if address.port is None else f":{address.port}"
        self._origin = f"{address.scheme}://{address.hostname}{port}"
        """No path, query or user: any of them may hold a token."""
        self._read: Any = None
        self._write: Any = None
        self._revision: str | None = None
        self._tools: Mapping[str, Mapping[str, Any]] = {}
        self._last: int | str | None = None
        self._unreached = False

    def connect(self, read: Any, write: Any) -> None:
        self._read = read
        self._write = write

    def saw(self, what: int | httpx2.TransportError) -> None:
        """Take note of a response's status, or of a request that got no response."""
        if isinstance(what, int):
            self._last = what
            return
        import httpx2

        self._last = type(what).__name__
        self._unreached = isinstance(what, httpx2.ConnectError | httpx2.ConnectTimeout)

    async def send(self, message: Message) -> None:
        from pytest_mst.proxy.sdk import as_session_message, http_headers

        try:
            headers = http_headers(message, self._revision, self._tools)
            to_json(message)  # what the SDK finds it cannot write ends its connection
            await self._write.send(as_session_message(message, headers))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise PipeClosedError from error
        except ValueError as error:
            msg = f"cannot be sent: {error}"
            raise UnsendableError(msg) from error

    async def receive(self) -> Message:
        from pytest_mst.proxy.sdk import as_dict

        while True:
            try:
                message = as_dict(await self._read.receive())
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise PipeClosedError from None
            if message is not None:
                return message

    def ending(self) -> PipeEnding:
        if self._unreached:
            reason = f"cannot be reached at {self._origin} ({self._last}); is it running?"
            return PipeEnding(reason, refused=True, absent=True)
        if isinstance(self._last, int) and self._last >= _FIRST_ERROR_STATUS:
            remedy = _REMEDY_BY_STATUS.get(self._last, "")
            reason = f"at {self._origin} answered {self._last} {_phrase(self._last)}{remedy}"
            return PipeEnding(reason, refused=True)
        return PipeEnding(f"at {self._origin} ended the connection")

    def agreed_on(self, revision: str) -> None:
        self._revision = revision

    def listed(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        self._tools = tools


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
