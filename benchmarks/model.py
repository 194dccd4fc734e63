"""What our model loop adds to a turn, against a bare pydantic-ai agent on the same provider."""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from benchmarks.project import SERVER
from pytest_mst.clients.client import ClientRequest, TraceLog
from pytest_mst.clients.limits import run_within_limits
from pytest_mst.clients.mst import MstClient
from pytest_mst.domain.eval_config import StdioServer
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import AttemptServer, UpstreamSpec

TURNS = 10
ROUNDS = 15
WARM_UP = 3
MODEL = "gpt-benchmark"


class _Provider(BaseHTTPRequestHandler):
    """Asks for a tool until it was answered often enough; OpenAI Chat, not streamed."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    """Each answer in one piece at once: a wait for an acknowledgement would hide what we add."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answered = sum(one["role"] == "tool" for one in body["messages"])
        message: dict[str, Any] = {"role": "assistant", "content": "done"}
        if answered < TURNS - 1:
            function = {"name": "look_up", "arguments": '{"key": "a"}'}
            asked = {"id": f"call_{answered}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [asked]}
        finish = "tool_calls" if "tool_calls" in message else "stop"
        reply = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": MODEL,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def _provider() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@dataclass(frozen=True, slots=True)
class PerTurn:
    """Milliseconds a turn, medians of rounds that take turns."""

    ours_ms: float
    bare_ms: float
    """Of an agent whose tools are functions in this process, with no server behind them."""
    behind_proxy_ms: float
    """Of an agent whose tools make the same calls as ours do."""


async def measure(environ: MutableMapping[str, str]) -> PerTurn:
    """Run both, one after the other, on one server and one provider.

    Args:
        environ: where the key of the provider is put.

    """
    environ["BENCHMARK_KEY"] = "no-key-at-all"
    spec = UpstreamSpec(
        "desk",
        StdioServer.model_validate(
            {"transport": "stdio", "command": "python", "args": ["-I", "-S", str(SERVER)]}
        ),
        SERVER.parent,
    )
    ours: list[float] = []
    others: tuple[list[float], list[float]] = ([], [])
    servers = {"desk": AttemptServer(spec, WriteMode.PLANNED)}
    with _provider() as url:
        async with Hub() as hub, hub.open_attempt(servers, lambda entry: None) as boundary:
            agents = (_bare_agent(url, boundary, proxied=False), _bare_agent(url, boundary))
            for _ in range(WARM_UP + ROUNDS):
                asked = _request(url, boundary)
                began = time.perf_counter()
                await run_within_limits(MstClient(), asked)
                ours.append((time.perf_counter() - began) / TURNS * 1000)
                _whole(asked.trace.answer)
                for agent, took in zip(agents, others, strict=True):
                    began = time.perf_counter()
                    result = await agent.run("go")
                    took.append((time.perf_counter() - began) / TURNS * 1000)
                    _whole(result.output)
    return PerTurn(*(statistics.median(took[WARM_UP:]) for took in (ours, *others)))


def _whole(answer: object) -> None:
    if answer != "done":
        msg = f"a model did not come to its end: {answer!r}"
        raise RuntimeError(msg)


def _request(url: str, boundary: Any) -> ClientRequest:
    return ClientRequest(
        input="go",
        trial=0,
        trial_id="benchmark",
        model=MODEL,
        options={"baseUrl": url, "apiKeyEnv": "BENCHMARK_KEY"},
        tools=boundary,
        trace=TraceLog(("desk",)),
    )


def _bare_agent(url: str, boundary: Any, *, proxied: bool = True) -> Any:
    """Make an agent that has the same tools, called through the boundary or answered at once."""
    from pydantic_ai import Agent, Tool
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    def tool(listed: Mapping[str, Any]) -> Tool[None]:
        name = str(listed["name"])

        async def called(**arguments: Any) -> str:
            if not proxied:
                return "found"
            result = await boundary.call_tool("desk", name, arguments)
            return "".join(block.get("text", "") for block in result["content"])

        return Tool.from_schema(
            called, name, str(listed.get("description") or ""), dict(listed["inputSchema"])
        )

    provider = OpenAIProvider(base_url=url, api_key="no-key-at-all")
    return Agent(
        OpenAIChatModel(MODEL, provider=provider),
        tools=[tool(one) for one in boundary.listed("desk")],
    )
