"""A recording: stands before a model's API while a program asks it, and sees how that went."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

import anyio

from pytest_mst.domain.retry import retry_after_s
from pytest_mst.domain.usage import Usage
from pytest_mst.providers.answer_reader import AnswerReader
from pytest_mst.providers.endpoint import origin_of
from pytest_mst.providers.exchange import (
    Exchange,
    ExchangeEnd,
    asks_model,
    model_of,
    parsed,
)
from pytest_mst.providers.failure import ProviderFailure

if TYPE_CHECKING:
    import httpx2
    from starlette.requests import Request
    from starlette.responses import Response

    from pytest_mst.local.web_server import WebServer

_CONNECT_TIMEOUT_S = 20.0
_OF_ONE_HOP = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that are not passed on (RFC 9110, 7.6.1); lengths are made anew, and answers are asked
for uncompressed."""
_BAD_GATEWAY = 502


class Recording:
    """A reverse proxy on loopback, for one attempt's program.

    Bodies pass as they are, byte for byte, as they come. Whoever knows the address is let in: it
    is for the program alone, and no part of anything that is logged or stored. Of what passes,
    types and counts are kept; no key, no body.
    """

    def __init__(self, base_url: str) -> None:
        """Take the API that stands behind it.

        Args:
            base_url: where it is; requests go there with what follows our own address.

        """
        self._upstream = base_url.rstrip("/")
        self._label = f"the API at {origin_of(base_url)}"
        self._prefix = f"/{secrets.token_urlsafe(24)}"
        self._began = time.monotonic()
        self._news = anyio.Event()
        self._server: WebServer | None = None
        self._http: httpx2.AsyncClient | None = None
        self.log: list[Exchange] = []
        """The requests so far, in the order in which they came."""

    async def __aenter__(self) -> Self:
        import httpx2
        from starlette.applications import Starlette
        from starlette.routing import Route

        from pytest_mst.local.web_server import WebServer

        self._http = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S), follow_redirects=False
        )
        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
        route = Route(f"{self._prefix}{{path:path}}", self._pass_on, methods=methods)
        self._server = WebServer(Starlette(routes=[route]), tells_errors=False)
        await self._server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        server, http = self._server, self._http
        with anyio.CancelScope(shield=True):
            if server is not None:
                await server.stop(farewell_s=0.1)  # whoever asked has ended
            if http is not None:
                await http.aclose()
        for exchange in self.log:
            if exchange.ended is None:
                self._ended(exchange, "abandoned")

    @property
    def url(self) -> str:
        """What the program is to ask in place of the API."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.port}{self._prefix}"

    async def next_exchange(self) -> None:
        """Wait until another request comes."""
        await self._news.wait()

    @property
    def model_calls(self) -> list[Exchange]:
        """The requests to a model so far."""
        return [one for one in self.log if one.model_call]

    @property
    def model_ms(self) -> int:
        """Time in the model: while at least one request to it was under way and not in vain."""
        spans = sorted(
            (one.at_ms, one.at_ms + one.duration_ms)
            for one in self.model_calls
            if one.duration_ms is not None and one.kind is None
        )
        total, reached = 0, 0
        for begin, end in spans:
            total += max(0, end - max(begin, reached))
            reached = max(reached, end)
        return total

    @property
    def usage(self) -> Usage:
        """What the answers say that they used; no cost."""
        answered = [one for one in self.model_calls if one.ended == "whole" and one.kind is None]
        told = [one.usage for one in answered if one.usage is not None]

        def total(name: str) -> int | None:
            counts = [getattr(one, name) for one in told]
            known = [one for one in counts if one is not None]
            return sum(known) if known else None

        return Usage(
            requests=len(answered),
            input_tokens=total("input_tokens"),
            output_tokens=total("output_tokens"),
            cache_read_tokens=total("cache_read_tokens"),
            cache_write_tokens=total("cache_write_tokens"),
            model_ms=self.model_ms,
        )

    def failure(self) -> ProviderFailure | None:
        """Return what the last request to a model came to, where it failed.

        One that is under way says nothing yet, and one that nobody waited for says nothing.
        """
        told = [
            one
            for one in self.model_calls
            if one.kind is not None or one.ended not in (None, "abandoned")
        ]
        last = told[-1] if told else None
        if last is None or last.kind is None:
            return None
        return ProviderFailure(
            last.kind,
            self._label,
            last.model or "unknown",
            status=last.status,
            retry_after_s=last.retry_after_s,
            says=last.error_says,
        )

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def _pass_on(self, request: Request) -> Response:
        from starlette.responses import Response, StreamingResponse

        path = request.path_params["path"]
        body = await request.body()
        asks = asks_model(request.method, path)
        exchange = Exchange(self._now_ms(), request.method, path, asks)
        if asks:
            read = parsed(body) if not request.headers.get("content-encoding") else None
            exchange.model = model_of(path, read if isinstance(read, dict) else {})
        self.log.append(exchange)
        self._tell()
        answer = await self._while_heard(request, self._sent(request, path, body, exchange))
        if answer is None and exchange.ended is None:
            self._ended(exchange, "abandoned")
        if answer is None:
            return Response(b"", _BAD_GATEWAY)
        exchange.status = answer.status_code
        told = answer.headers.get("retry-after")
        exchange.retry_after_s = None if told is None else retry_after_s(told, datetime.now(UTC))
        pieces = self._answer(answer, exchange)
        response: Response
        if answer.is_success:
            response = StreamingResponse(pieces, answer.status_code)
        else:  # read first: whoever asked may have seen enough by the status
            error = b"".join([piece async for piece in pieces])
            response = Response(error, answer.status_code)
        lengths = [one for one in response.raw_headers if one[0] == b"content-length"]
        response.raw_headers = lengths + [
            (name, value)
            for name, value in answer.headers.raw
            if name.decode("latin-1").lower() not in _OF_ONE_HOP
        ]
        return response

    async def _while_heard(
        self, request: Request, sent: Awaitable[httpx2.Response | None]
    ) -> httpx2.Response | None:
        """Wait for an answer as long as whoever asked is there; `None` where it went away."""
        found: httpx2.Response | None = None

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(gone)
            found = await sent
            tasks.cancel_scope.cancel()
        return found

    async def _sent(
        self, request: Request, path: str, body: bytes, exchange: Exchange
    ) -> httpx2.Response | None:
        """Send a request on.

        Returns:
            The answer, its body still to come; `None` where there is nobody, or no answer. The
            program is told so as a gateway would: some wait for ever for a network that is gone.

        """
        import httpx2

        assert self._http is not None
        query = f"?{request.url.query}" if request.url.query else ""
        headers = [
            (name, value)
            for name, value in request.headers.raw
            if name.decode("latin-1").lower() not in _OF_ONE_HOP
        ]
        headers.append((b"accept-encoding", b"identity"))
        try:
            sent = self._http.build_request(
                request.method, f"{self._upstream}{path}{query}", headers=headers, content=body
            )
            return await self._http.send(sent, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.InvalidURL):
            self._ended(exchange, "refused")
        except httpx2.HTTPError:
            self._ended(exchange, "cut")
        except anyio.get_cancelled_exc_class():
            self._ended(exchange, "abandoned")
            raise
        return None

    async def _answer(self, answer: httpx2.Response, exchange: Exchange) -> AsyncIterator[bytes]:
        """Pass an answer's body on as it comes, compressed as it is, and read along."""
        import httpx2

        is_stream = answer.headers.get("content-type", "").startswith("text/event-stream")
        reader = AnswerReader(exchange, is_stream=is_stream and answer.is_success)
        is_plain = "content-encoding" not in answer.headers  # as it was asked for
        end: ExchangeEnd = "abandoned"
        try:
            async for piece in answer.aiter_raw():
                if is_plain:  # before it is passed on: who has read enough goes away
                    reader.feed(piece)
                yield piece
            end = "whole"
        except httpx2.HTTPError:
            end = "cut"
            raise  # the program is to see it cut, too
        finally:
            reader.end()
            self._ended(exchange, end)
            with anyio.CancelScope(shield=True):
                await answer.aclose()

    def _ended(self, exchange: Exchange, how: ExchangeEnd) -> None:
        exchange.ended = how
        exchange.duration_ms = self._now_ms() - exchange.at_ms

    def _now_ms(self) -> int:
        return round((time.monotonic() - self._began) * 1000)
