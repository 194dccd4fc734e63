"""Servers over HTTP in a thread: a good one, and one that answers as told by its path."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import uvicorn

from tests.proxy.servers import objects, wild


@contextmanager
def good_server() -> Iterator[tuple[str, objects.Calls, list[dict[str, str]]]]:
    """Serve an MCP server; gives its address, its calls, and the headers of each request."""
    server, calls = objects.make_server()
    headers: list[dict[str, str]] = []
    app = server.streamable_http_app()

    async def watched(scope: object, receive: object, send: object) -> None:
        if isinstance(scope, dict) and scope["type"] == "http":
            headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)  # type: ignore[arg-type]  # ASGI's own types are not public

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(watched, log_level="error", lifespan="on")
    web = uvicorn.Server(config)
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 10
    while not web.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", calls, headers
    finally:
        web.should_exit = True
        web.force_exit = True
        thread.join(10)
        listening.close()


class _DiedError(Exception):
    """The server would have ended here."""


class _HttpWire(wild.Wire):
    """Keeps what is sent, for the body of a response."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""

    def raw(self, data: bytes) -> None:
        self.sent += data

    def die(self, status: int) -> None:
        raise _DiedError(status)


class _Told(BaseHTTPRequestHandler):
    """Answers with the status, or the fault, that the path names."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        what = self.path.partition("?")[0].strip("/")
        if what == "wild":
            self.wild(asked)
            return
        if what == "hang":
            time.sleep(1.5)
            return
        if what == "cut":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "1000")
            self.end_headers()
            self.wfile.write(b'{"jsonrpc"')
            self.close_connection = True
            return
        body = b"<html>Welcome</html>"
        self.send_response(200 if what == "html" else int(what))
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def wild(self, asked: bytes) -> None:
        """Answer as the wild server does; where that would exit, the connection is cut."""
        wire = _HttpWire()
        self.close_connection = True
        try:
            wild.Server(wild.options([]), wire).take(asked)
        except _DiedError:
            return
        self.send_response(200 if wire.sent else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(wire.sent)))
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(wire.sent)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class _Turning(_Told):
    """Serves well, and answers each tool call with the fault that the path names."""

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        self.rfile = io.BytesIO(asked)
        if json.loads(asked).get("method") != "tools/call":
            self.path = "/wild"
        super().do_POST()


@contextmanager
def told_server() -> Iterator[str]:
    """Serve faults; gives the address without a path."""
    with _served(_Told) as address:
        yield address


@contextmanager
def turning_server() -> Iterator[str]:
    """Serve faults, only for tool calls; gives the address without a path."""
    with _served(_Turning) as address:
        yield address


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
