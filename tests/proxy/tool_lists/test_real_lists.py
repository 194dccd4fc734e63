"""The tool lists of public MCP servers: what is counted, what is stopped, what gets through.

`data/` has them as the servers sent them in November 2026, descriptions and titles of schemas
left out, from servers that were started without an account or a cluster behind them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from pytest_mst.domain.plan import ToolCounts
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.smallest import smallest_instance
from tests.plugin.eval_project import EvalProject, answer, call, case
from tests.proxy.setting import attempt, stdio

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
STUB = HERE / "stub.py"

COUNTS = {
    "chroma": (0, 0, 13),
    "desktop-commander": (14, 12, 0),
    "everything": (9, 4, 0),
    "fetch": (1, 0, 0),
    "filesystem": (10, 4, 0),
    "git": (7, 5, 0),
    "github": (0, 0, 26),
    "gitlab": (0, 0, 9),
    "k8s": (7, 13, 3),
    "kubernetes-go": (14, 6, 0),
    "kubernetes-go-ro": (14, 0, 0),
    "memory": (3, 6, 0),
    "monday-dynamic": (2, 1, 0),
    "motherduck": (3, 1, 0),
    "motherduck-ro": (4, 0, 0),
    "notion": (12, 12, 0),
    "openapi-dynamic": (0, 0, 3),
    "playwright": (7, 18, 0),
    "redis": (0, 0, 4),
    "sequential-thinking": (1, 0, 0),
    "time": (2, 0, 0),
    "word": (11, 7, 36),
}
"""Reads, declared writes, and tools that carry no hint, counted by hand. In `k8s` and `word` some
annotations are a title only, which is no hint."""

READS_OF_K8S = {
    "explain_resource",
    "kubectl_context",
    "kubectl_describe",
    "kubectl_get",
    "kubectl_logs",
    "list_api_resources",
    "ping",
}
"""Written out for one list, so that not only the numbers are right."""


def listed(name: str) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = json.loads((HERE / "data" / f"{name}.json").read_text())
    return tools


def says_it_reads(tool: dict[str, Any]) -> bool:
    """Tell a read by a rule of the tests' own, from the text of the list."""
    text = json.dumps(tool.get("annotations"), separators=(",", ":"))
    return '"readOnlyHint":true' in text and '"destructiveHint":true' not in text


def arrived(log: Path) -> list[str]:
    return [json.loads(line)["name"] for line in log.read_text().splitlines()]


def test_every_list_has_its_counts() -> None:
    assert {path.stem for path in (HERE / "data").glob("*.json")} == set(COUNTS)
    assert sum(map(sum, COUNTS.values())) == sum(len(listed(name)) for name in COUNTS)


@pytest.mark.parametrize("name", COUNTS)
async def test_no_call_that_is_not_a_read_reaches_the_server(name: str, tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    tools = listed(name)
    spec = stdio(name, "python", "-IS", str(STUB), str(HERE / "data" / f"{name}.json"), str(log))
    reads = [tool["name"] for tool in tools if says_it_reads(tool)]
    with anyio.fail_after(60):
        async with Hub() as hub:
            listing = await hub.list_tools(spec)
            counts = ToolCounts.of(listing.server_tools(spec.config))
            for mode in (WriteMode.PLANNED, WriteMode.SIMULATED):
                async with attempt(spec, hub=hub, mode=mode) as boundary:
                    for tool in tools:
                        await call_in_every_way(boundary, name, tool)
                    stopped = {entry.tool for entry in boundary.entries}
                    assert stopped == {tool["name"] for tool in tools} - set(reads)
    assert (counts.reads, counts.declared_writes, counts.unhinted) == COUNTS[name]
    assert counts.total == len(tools)
    assert len(reads) == COUNTS[name][0]
    assert arrived(log) == [tool for tool in reads for _ in range(3)] * 2


async def call_in_every_way(boundary: Boundary, label: str, tool: dict[str, Any]) -> None:
    """Call a tool as its schema wants it, with too much, and with no arguments at all."""
    given = smallest_instance(tool["inputSchema"]) or {}  # some schemas take anything, `null` too
    result = await boundary.call_tool(label, tool["name"], given)
    for odd in ({**given, "dryRun": True, "x-unknown": None}, None):
        await boundary.call_tool(label, tool["name"], odd)
    if says_it_reads(tool):
        assert result["content"][0]["text"] == f"executed {tool['name']}"
        return
    assert result.get("isError") is not True
    if "outputSchema" in tool:
        jsonschema.validate(result["structuredContent"], tool["outputSchema"])
    entry = boundary.entries[-3]
    assert (entry.tool, entry.arguments, entry.refused) == (tool["name"], given, None)


def test_the_plan_of_a_run_has_the_counts_of_every_list(tmp_path: Path) -> None:
    project = EvalProject(tmp_path)
    servers = {
        name: {
            "transport": "stdio",
            "command": "python",
            "args": ["-IS", str(STUB), str(HERE / "data" / f"{name}.json"), f"{name}.log"],
        }
        for name in COUNTS
    }
    shot = call("browser_click", server="playwright", element="Pay", ref="e1", target="e1")
    project.eval(case("one", shot, answer("ok")), servers=servers)
    session = project.run("--mst", plugins=("mst",))
    assert session.code == 0, session.text
    planned = {one["label"]: one for one in session.run.plan["variants"][0]["servers"]}
    assert {
        label: tuple(one["tools"][key] for key in ("reads", "declaredWrites", "unhinted"))
        for label, one in planned.items()
    } == COUNTS
    assert {label: one["writeMode"] for label, one in planned.items()} == {
        label: "planned" if declared + unhinted else "read-only"
        for label, (_, declared, unhinted) in COUNTS.items()
    }
    assert (tmp_path / "playwright.log").read_text() == ""
    assert [entry["tool"] for entry in session.run.writes("one")] == ["browser_click"]


def test_a_list_whose_reads_are_written_out_is_read_as_written() -> None:
    assert {tool["name"] for tool in listed("k8s") if says_it_reads(tool)} == READS_OF_K8S
