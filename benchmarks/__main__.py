"""Run the benchmarks: `python -m benchmarks [name ...]`.

No figure is asserted: what a machine can do differs. Each line has the mark that was set for two
quiet cores, and the ratio to a baseline measured in the same run.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import model, proxy
from benchmarks.project import READ, SERVER, WRITE, Measured, run_pytest, scratch, write_eval
from pytest_mst.domain.eval_config import StdioServer
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import AttemptServer, UpstreamSpec

CASES, TRIALS = 100, 10
PLAIN = """
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_plain(number):
    assert number >= 0
"""


def say(text: str) -> None:
    """Print one line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def per_attempt(many: Measured, one: Measured, count: int) -> tuple[float, float]:
    """Return wall and CPU milliseconds an attempt, start-up taken off."""
    wall_ms = (many.wall_s - one.wall_s) / (count - 1) * 1000
    return wall_ms, (many.cpu_s - one.cpu_s) / (count - 1) * 1000


def instant_attempts() -> None:
    """1,000 attempts with one real read and one stopped write each, files and grading included."""
    count = CASES * TRIALS
    plain_ms = _plain_items(count)
    direct_ms = asyncio.run(_direct_call_ms())
    for in_memory in (True, False):
        with scratch(in_memory=in_memory) as folder:
            eval_file = write_eval(folder, cases=1, trials=1, steps=[READ, WRITE])
            one = run_pytest(folder, "--mst", eval_file.name)
            write_eval(folder, cases=CASES, trials=TRIALS, steps=[READ, WRITE])
            many = run_pytest(folder, "--mst", eval_file.name, "--mst-concurrency", "8")
        wall_ms, cpu_ms = per_attempt(many, one, count)
        where = "memory" if in_memory else "disk"
        say(
            f"instant attempts ({where}): {wall_ms:.2f} ms wall (mark 5), {cpu_ms:.2f} ms CPU of "
            f"our own (mark 3); {cpu_ms / plain_ms:.1f} x a plain pytest item ({plain_ms:.2f} ms "
            f"CPU), {wall_ms / direct_ms:.1f} x a direct call on an open connection "
            f"({direct_ms:.2f} ms)"
        )


def _plain_items(count: int) -> float:
    with scratch() as folder:
        (folder / "test_plain.py").write_text(PLAIN.format(count=1))
        one = run_pytest(folder, "test_plain.py", "-p", "no:mst")
        (folder / "test_plain.py").write_text(PLAIN.format(count=count))
        many = run_pytest(folder, "test_plain.py", "-p", "no:mst")
    return per_attempt(many, one, count)[1]


async def _direct_call_ms(calls: int = 500) -> float:
    config = StdioServer.model_validate(
        {"transport": "stdio", "command": "python", "args": ["-I", "-S", str(SERVER)]}
    )
    spec = UpstreamSpec("desk", config, Path.cwd())
    async with Hub() as hub:
        servers = {"desk": AttemptServer(spec, WriteMode.PLANNED)}
        async with hub.open_attempt(servers, lambda entry: None) as boundary:
            start = time.perf_counter()
            for _ in range(calls):
                await boundary.call_tool("desk", "look_up", {"key": "a"})
            return (time.perf_counter() - start) / calls * 1000


def sleeping_attempts() -> None:
    """200 attempts that each wait 0.25 s, at concurrency 64: how well waiting overlaps."""
    with scratch() as folder:
        eval_file = write_eval(folder, cases=1, trials=1, steps=[READ])
        one = run_pytest(folder, "--mst", eval_file.name)
        write_eval(folder, cases=20, trials=10, steps=[{"sleep": 0.25}])
        many = run_pytest(folder, "--mst", eval_file.name, "--mst-concurrency", "64")
    extra_s = many.wall_s - one.wall_s
    say(
        f"sleeping attempts: {extra_s:.2f} s beyond start-up (mark 1.5); one after the other: "
        f"50 s, {50 / extra_s:.0f} x"
    )


def first_attempt() -> None:
    """How soon the first attempt ends after its server, on the MCP SDK, has been started."""
    import_s = _best_s(lambda: _python_s("import mcp"))
    server_s = _best_s(_sdk_server_start_s)
    with scratch() as folder:
        eval_file = write_eval(folder, cases=1, trials=1, steps=[READ, WRITE])
        server = folder / "sdk_server.py"
        server.write_text(SDK_SERVER)
        text = eval_file.read_text().replace('"-I", "-S", ', "").replace(str(SERVER), str(server))
        eval_file.write_text(text)
        runs = [run_pytest(folder, "--mst", eval_file.name).moments for _ in range(3)]
    whole_s = min(one["first_attempt_s"] - one["loading_s"] for one in runs)
    after_s = min(one["first_attempt_s"] - one["loaded_s"] for one in runs)
    slower_s = max(import_s, server_s)
    say(
        f"first attempt: ends {whole_s - slower_s:.2f} s after the slower of server start "
        f"({server_s:.2f} s) and import mcp ({import_s:.2f} s), both measured alone (mark 0.3); "
        f"{whole_s / slower_s:.2f} x; {after_s:.2f} s after loading"
    )


def _best_s(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(3))


def _sdk_server_start_s() -> float:
    """Return how long a server on the SDK takes from its start to the answer of `initialize`."""
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",'
        '"capabilities":{},"clientInfo":{"name":"benchmark","version":"0"}}}\n'
    )
    with scratch() as folder:
        (folder / "sdk_server.py").write_text(SDK_SERVER)
        start = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, str(folder / "sdk_server.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(hello)
            server.stdin.flush()
            server.stdout.readline()
            taken_s = time.perf_counter() - start
            server.stdin.close()
            server.wait(timeout=30)
    return taken_s


SDK_SERVER = """
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
server = MCPServer("desk")

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look_up(key: str) -> str:
    return "found"

@server.tool()
def put(key: str, value: str) -> str:
    return "stored"

server.run("stdio")
"""


def _python_s(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    return time.perf_counter() - start


def collection() -> None:
    """Collecting 1,000 cases x 10 trials."""
    with scratch() as folder:
        eval_file = write_eval(folder, cases=1, trials=10, steps=[READ, WRITE])
        one = run_pytest(folder, "--mst", eval_file.name, "--collect-only")
        write_eval(folder, cases=1000, trials=10, steps=[READ, WRITE])
        many = run_pytest(folder, "--mst", eval_file.name, "--collect-only")
        (folder / "test_plain.py").write_text(PLAIN.format(count=1))
        plain_one = run_pytest(folder, "test_plain.py", "-p", "no:mst", "--collect-only")
        (folder / "test_plain.py").write_text(PLAIN.format(count=10_000))
        plain = run_pytest(folder, "test_plain.py", "-p", "no:mst", "--collect-only")
    ours_s, plain_s = many.wall_s - one.wall_s, plain.wall_s - plain_one.wall_s
    say(
        f"collecting 1,000 cases x 10 trials: {ours_s:.2f} s (mark 1); {ours_s / plain_s:.2f} x "
        f"10,000 plain items ({plain_s:.2f} s)"
    )


def memory() -> None:
    """What a finished attempt leaves in memory, with a small and a large transcript."""
    figures = []
    for size in (0, 20_000):
        read = {"call": {**READ["call"], "arguments": {"key": "a", "size": size}}}
        with scratch() as folder:
            eval_file = write_eval(folder, cases=10, trials=10, steps=[read, WRITE])
            few = run_pytest(folder, "--mst", eval_file.name)
            write_eval(folder, cases=100, trials=20, steps=[read, WRITE])
            many = run_pytest(folder, "--mst", eval_file.name)
        figures.append((many.max_rss_bytes - few.max_rss_bytes) / 1900 / 1024)
    say(
        f"memory: {figures[0]:.1f} KB kept for each finished attempt, {figures[1]:.1f} KB with a "
        "transcript of 20 KB (mark 5)"
    )


def proxy_overhead() -> None:
    """What the proxy adds to a call, in both eras of the protocol."""
    for era, name in (("auto", "modern"), ("legacy", "legacy")):
        for line in proxy.described(asyncio.run(proxy.measure(era))):
            say(f"proxy, {name}: {line}")


def model_overhead() -> None:
    """What the model loop adds to a turn."""
    turn = asyncio.run(model.measure(os.environ))
    say(
        f"model: {turn.ours_ms:.2f} ms a turn, {turn.ours_ms / turn.bare_ms:.2f} x a bare "
        f"pydantic-ai agent with functions for tools ({turn.bare_ms:.2f} ms; mark 1.3), "
        f"{turn.ours_ms / turn.behind_proxy_ms:.2f} x one with the same calls "
        f"({turn.behind_proxy_ms:.2f} ms)"
    )


ALL: dict[str, Callable[[], None]] = {
    "attempts": instant_attempts,
    "sleeping": sleeping_attempts,
    "first": first_attempt,
    "collect": collection,
    "memory": memory,
    "model": model_overhead,
    "proxy": proxy_overhead,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, or all of them."""
    unknown = [name for name in names if name not in ALL]
    if unknown:
        say(f"no benchmark {', '.join(unknown)}; there are: {', '.join(ALL)}")
        return 2
    for name in names or ALL:
        ALL[name]()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
