"""The loopback provider: an HTTP server in a thread of its own, that plays model APIs."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias

from tests.model_provider.answers import Event, reply_to
from tests.model_provider.asked import Api, Asked, api_of, asked
from tests.model_provider.failures import body_of
from tests.model_provider.steps import Answer, Fail, Hang, Raw, Step, say

Script: TypeAlias = Sequence[Step] | Callable[[Asked], Step]

EXHAUSTED = "SCRIPT EXHAUSTED"
SIDE_ANSWER = '{"title": "t", "isNewTopic": false}'
"""What is answered to a client's own requests on the side, which offer no tools."""


class ModelProvider:
    """Plays a script: one step for each request that offers tools.

    With `any_request` also for those that offer none; else these get a harmless answer. The last
    step is played on for ever with `forever`. A callable is asked for each request, from several
    threads at once.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        forever: bool = False,
        any_request: bool = True,
        models: Iterable[str] | None = None,
        keys: Iterable[str] | None = None,
        lists_models: bool = True,
    ) -> None:
        """Make a provider.

        Args:
            script: what it does.
            forever: whether the last step is repeated.
            any_request: whether requests without tools take a step, too.
            models: the models there are; any without it.
            keys: the keys that let in; any without it.
            lists_models: whether it tells of its models when it is not asked to answer.

        """
        self.asked: list[Asked] = []
        """The requests to a model that took a step, in order."""
        self.other: list[str] = []
        """The other requests: method and path."""
        self._script = script
        self._forever = forever
        self._any_request = any_request
        self._models = None if models is None else frozenset(models)
        self._keys = None if keys is None else frozenset(keys)
        self.lists_models = lists_models
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.provider = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that lead clients here, with keys that are no keys."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "loopback-key-anthropic",
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "OPENAI_API_KEY": "loopback-key-openai",
            "GOOGLE_GEMINI_BASE_URL": self.url,
            "GEMINI_API_KEY": "loopback-key-gemini",
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def take(self, path: str, api: Api, raw: bytes, headers: dict[str, str]) -> tuple[Asked, Step]:
        """Take one request in, and say what is done with it."""
        with self._lock:
            at_s, number = time.monotonic() - self._began, len(self.asked)
            one = asked(at_s=at_s, number=number, path=path, api=api, raw=raw, headers=headers)
            if not one.tools and not self._any_request:
                self.other.append(f"POST {path}")
                return one, say(SIDE_ANSWER)
            self.asked.append(one)
        if callable(self._script):
            return one, self._script(one)
        if number < len(self._script):
            return one, self._script[number]
        return one, self._script[-1] if self._forever and self._script else say(EXHAUSTED)

    def lets_in(self, headers: dict[str, str]) -> bool:
        """Tell whether a request has a key that is known here."""
        if self._keys is None:
            return True
        given = headers.get("x-api-key") or headers.get("x-goog-api-key")
        return (given or headers.get("authorization", "").removeprefix("Bearer ")) in self._keys

    def knows(self, model: str) -> bool:
        return self._models is None or model in self._models

    @property
    def listed(self) -> list[str]:
        return sorted(self._models or {"fake-model"})


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    provider: ModelProvider


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def handle(self) -> None:
        with suppress(ConnectionError):
            super().handle()

    def do_HEAD(self) -> None:
        self.server.provider.other.append(f"HEAD {self.path}")
        self._json(200, {})

    def do_GET(self) -> None:
        provider = self.server.provider
        provider.other.append(f"GET {self.path}")
        path = self.path.partition("?")[0]
        api: Api = "gemini" if "/v1beta" in path else "chat"
        if "x-api-key" in self._headers:
            api = "anthropic"
        if not provider.lets_in(self._headers):
            self._json(401, body_of(api, Fail(401)))
        elif not provider.lists_models:
            self._json(404, {"detail": "Not Found"})
        elif path.rstrip("/").endswith("/models"):
            data = [{"id": one, "object": "model", "type": "model"} for one in provider.listed]
            self._json(200, {"object": "list", "data": data, "has_more": False, "models": []})
        elif provider.knows(path.rpartition("/")[2]):
            name = path.rpartition("/")[2]
            self._json(200, {"id": name, "object": "model", "type": "model", "name": name})
        else:
            self._json(404, body_of(api, Fail(404)))

    def do_POST(self) -> None:
        provider, path = self.server.provider, self.path.partition("?")[0]
        raw = self._read_body()
        if path.endswith(("count_tokens", "countTokens")):
            provider.other.append(f"POST {path}")
            self._json(200, {"input_tokens": 100, "totalTokens": 100})
            return
        api = api_of(path)
        if api is None:
            provider.other.append(f"POST {path}")
            self._json(404, {"type": "error", "error": {"type": "not_found_error"}})
            return
        if not provider.lets_in(self._headers):
            provider.other.append(f"POST {path}")
            self._json(401, body_of(api, Fail(401)))
            return
        one, step = provider.take(path, api, raw, self._headers)
        if not provider.knows(one.model):
            step = Fail(404)
        with suppress(ConnectionError):
            self._do(one, step)

    def _do(self, one: Asked, step: Step) -> None:
        match step:
            case Fail():
                headers = {}
                if step.retry_after_s is not None:
                    headers["retry-after"] = f"{step.retry_after_s:g}"
                self._json(step.status, body_of(one.api, step), headers)
            case Raw():
                self._json(step.status, dict(step.body), dict(step.headers))
            case Hang():
                self.server.provider.closing.wait(120)
                self.close_connection = True
            case _:
                reply = reply_to(one, step)
                cut = step.cut_after if isinstance(step, Answer) else None
                if one.stream:
                    self._stream(reply.events, cut)
                elif isinstance(step, Answer) and step.stream_error is not None:
                    self._json(529, body_of(one.api, Fail(529)))
                elif cut is not None:
                    self._cut_body()
                else:
                    self._json(200, reply.body)

    @property
    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _read_body(self) -> bytes:
        if self._headers.get("transfer-encoding") == "chunked":
            raw = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return raw
        return self.rfile.read(int(self._headers.get("content-length") or 0))

    def _json(
        self, status: int, content: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        written = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(written)

    def _cut_body(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "5000")
        self.end_headers()
        self.wfile.write(b'{"id": "x", "type": "mess')
        self._hang_up()

    def _stream(self, events: list[Event], cut: int | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at, (name, data) in enumerate(events):
            if at == cut:
                break
            text = data if isinstance(data, str) else json.dumps(data)
            line = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
            written = line.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(written), written))
            self.wfile.flush()
        if cut is not None:
            self._hang_up()
            return
        self.wfile.write(b"0\r\n\r\n")

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
