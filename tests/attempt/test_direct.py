"""Servers that the client connects to itself, against a real one whose tools change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client as McpClient

from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.direct import DirectListings
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.job import AttemptJob, Target
from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.attempt.load_check import check_evals
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.attempt.target import target_of
from pytest_mst.clients.client import Client, ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope, Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import GradeOutcome, Score, Unknown
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.proxy.hub import Hub
from tests.attempt.evals import eval_of
from tests.attempt.setting import SERVERS, job, small_config, writer_in

pytestmark = pytest.mark.anyio

READ = {"readOnlyHint": True}
EXPECTS = {"expected": {"writes": {"calls": [{"tool": "write_note"}]}}}
NO_WRITE: dict[str, Any] = {"expected": {"writes": []}}


def call(tool: str, server: str | None = "docs") -> dict[str, Any]:
    return {"call": {"server": server, "tool": tool}}


@dataclass
class Docs:
    """A server whose tools a test changes."""

    folder: Path

    def lists(self, *reads: str, writes: Sequence[str] = ()) -> None:
        """Let it list these tools from now on."""
        tools: list[dict[str, Any]] = [
            {"name": name, "inputSchema": {"type": "object"}} for name in (*reads, *writes)
        ]
        for tool in tools[: len(reads)]:
            tool["annotations"] = READ
        (self.folder / "tools.json").write_text(json.dumps(tools))

    @property
    def log(self) -> list[str]:
        return (self.folder / "log").read_text().split()

    @property
    def calls(self) -> list[str]:
        return [one for one in self.log if one != "list"]

    @property
    def config(self) -> dict[str, Any]:
        return small_config() | {
            "args": [str(SERVERS / "changing.py"), str(self.folder)],
            "direct": True,
        }


@pytest.fixture
def docs(tmp_path: Path) -> Docs:
    found = Docs(tmp_path / "docs")
    found.folder.mkdir()
    found.lists("find")
    return found


class Run:
    """Attempts at a target, over one hub and with one run's rules."""

    def __init__(self, hub: Hub, target: Target, folder: Path) -> None:
        self.hub = hub
        self.target = target
        self.writer = writer_in(folder)
        self.rules = RunRules(listings=DirectListings())

    def job(self, case: Mapping[str, Any], trial: int) -> AttemptJob:
        case_id = str(case.get("id", "c"))
        return job(self.target, case, id=AttemptId("default", case_id, trial))

    async def make(self, case: Mapping[str, Any] | None = None, trial: int = 0) -> FinishedAttempt:
        return await collect(self.job(case or {}, trial), self.hub, self.writer, self.rules)


async def run_of(hub: Hub, docs: Docs, folder: Path, client: Client, **keys: Any) -> Run:
    """Put a client to the server, directly, as an eval config does."""
    servers = {"docs": docs.config, **keys.pop("servers", {})}
    loaded = eval_of(folder, servers=servers, **keys)
    (variant,) = loaded.config.variants_or_default
    prepared = (await check_evals({loaded.path: (loaded, [variant])}, hub, {}))[loaded.path]
    return Run(hub, target_of(prepared, variant, client, {}, log_path=None), folder)


def scripted(*tools: str) -> ScriptedClient:
    return ScriptedClient([*map(call, tools), {"answer": "done"}])


def failure_of(finished: FinishedAttempt) -> InfrastructureFailure:
    assert isinstance(finished.record.ending, InfrastructureFailure), finished.record.ending
    return finished.record.ending


def writes_of(finished: FinishedAttempt) -> GradeOutcome:
    (found,) = (one for one in finished.outcomes if one.grader == "writes")
    return found


async def test_a_direct_call_reaches_the_server_and_no_record(docs: Docs, tmp_path: Path) -> None:
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("find"))
        finished = await run.make()
    assert finished.record.ending == Trial()
    assert docs.calls == ["find"]
    assert finished.writes == ()
    assert finished.calls == ()
    assert finished.record.trace is not None
    assert [event.is_error for event in finished.record.trace.tool_calls] == [False]
    assert finished.record.agreement is not None
    assert finished.record.agreement.agrees


async def test_a_session_with_a_direct_server_leaves_no_record_either(
    docs: Docs, tmp_path: Path
) -> None:
    async def act(request: ClientRequest) -> None:
        async with McpClient(request.session.transport("docs"), mode="legacy") as client:
            await client.call_tool("find", {})

    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, FunctionClient(act))
        finished = await run.make()
    assert finished.record.ending == Trial()
    assert docs.calls == ["find"]
    assert finished.calls == ()


async def test_a_direct_server_is_listed_once_for_each_case(docs: Docs, tmp_path: Path) -> None:
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted())
        at_load = docs.log.count("list")
        listings = []
        for case, trial in (("a", 0), ("a", 1), ("b", 0), ("b", 1)):
            before = docs.log.count("list")
            await run.make({"id": case}, trial)
            listings.append(docs.log.count("list") - before)
    assert at_load == 1
    assert listings[0] >= 1
    assert listings[1] == listings[3]  # each attempt's own connection lists as it opens
    assert listings[2] == listings[3] + 1


@pytest.mark.lets_writes_through("peek")
async def test_a_tool_that_came_between_two_attempts_cannot_be_told(
    docs: Docs, tmp_path: Path
) -> None:
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("find", "peek"))
        first = await run.make()
        docs.lists("find", "peek")
        second = await run.make(trial=1)
        other_case = await run.make({"id": "other"})
    for finished in (first, second):
        failure = failure_of(finished)
        assert (failure.broke, failure.retryable, failure.scope) == (
            Broke.SETUP,
            False,
            Scope.TRIAL,
        )
        assert "peek of server docs" in failure.reason
        assert "find" not in failure.reason
        assert finished.outcomes == ()
    assert other_case.record.ending == Trial()


async def test_a_server_that_has_begun_to_write_is_refused_before_its_client_acts(
    docs: Docs, tmp_path: Path
) -> None:
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("find"))
        docs.lists("find", writes=["erase", "fill"])
        failure = failure_of(await run.make())
    assert (failure.broke, failure.retryable, failure.scope) == (Broke.SETUP, False, Scope.CASE)
    assert "'docs'" in failure.reason
    assert "erase, fill" in failure.reason
    assert docs.calls == []


async def test_attempts_of_a_case_that_begin_together_share_one_listing(
    docs: Docs, tmp_path: Path
) -> None:
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("find"))
        before = docs.log.count("list")
        async with anyio.create_task_group() as tasks:
            for trial in range(3):
                tasks.start_soon(run.make, {}, trial)
    assert docs.log.count("list") - before <= 3 + 1  # of each own connection, and anew
    assert docs.calls == ["find"] * 3


@pytest.mark.lets_writes_through("write_note")
async def test_an_unguarded_direct_server_gets_the_write_and_nobody_can_say_so(
    docs: Docs, tmp_path: Path
) -> None:
    docs.lists("find", writes=["write_note"])
    unguarded = {"docs": "unguarded"}
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("write_note"), writes=unguarded)
        wanted = await run.make(EXPECTS)
        not_wanted = await run.make(NO_WRITE, 1)
    assert docs.calls == ["write_note", "write_note"]
    for finished in (wanted, not_wanted):
        assert finished.record.ending == Trial()
        assert finished.writes == ()
        found = writes_of(finished)
        assert isinstance(found, Unknown), found
        assert "without `direct: true` it is known" in found.reason


@pytest.mark.lets_writes_through("write_note")
async def test_what_the_trace_shows_of_a_direct_server_is_called_at_most(
    docs: Docs, tmp_path: Path
) -> None:
    docs.lists("find", writes=["write_note"])
    triggered = {"assertions": {"toolsTriggered": {"calls": [{"name": "write_note"}]}}}
    async with Hub() as hub:
        run = await run_of(
            hub, docs, tmp_path, scripted("write_note"), writes={"docs": "unguarded"}
        )
        finished = await run.make(triggered)
    (score,) = finished.outcomes
    assert isinstance(score, Score)
    assert score.passed
    assert score.evidence is Evidence.CALLED


async def test_a_read_only_direct_server_leaves_what_is_known_of_others(
    docs: Docs, tmp_path: Path
) -> None:
    notes = {"notes": small_config()}
    script = ScriptedClient([call("find"), call("purge", "notes"), {"answer": "done"}])
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, script, servers=notes)
        finished = await run.make({"expected": {"writes": [{"tool": "purge"}]}})
    found = writes_of(finished)
    assert isinstance(found, Score), found
    assert (found.passed, found.evidence) == (True, Evidence.REQUESTED)


@pytest.mark.lets_writes_through("unheard_of")
async def test_without_the_clients_own_account_a_direct_server_leaves_writes_unknown(
    docs: Docs, tmp_path: Path
) -> None:
    async def act(request: ClientRequest) -> None:
        await request.tools.call_tool("docs", "unheard_of", {})

    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, FunctionClient(act))
        finished = await run.make(NO_WRITE)
    assert finished.record.ending == Trial()
    assert finished.record.agreement is not None
    assert not finished.record.agreement.checked
    assert isinstance(writes_of(finished), Unknown)


@pytest.mark.parametrize("tool", ["find", "read_note", "refused_by_the_proxy"])
async def test_a_call_that_names_no_server_is_looked_for_everywhere(
    docs: Docs, tmp_path: Path, tool: str
) -> None:
    finished = await _account_names_no_server(docs, tmp_path, tool)
    assert finished.record.ending == Trial()


async def test_a_call_of_what_nobody_lists_may_have_been_to_the_direct_server(
    docs: Docs, tmp_path: Path
) -> None:
    failure = failure_of(await _account_names_no_server(docs, tmp_path, "unheard_of"))
    assert "unheard_of of server docs" in failure.reason


async def _account_names_no_server(docs: Docs, folder: Path, tool: str) -> FinishedAttempt:
    """Let a client account for a call without its server; one call the proxy has refused."""

    async def act(request: ClientRequest) -> None:
        request.trace.evidence = "structured"
        request.trace.events.append(TraceEvent(name=request.input, arguments={}))
        with pytest.raises(ToolCallError):
            await request.tools.call_tool("notes", "refused_by_the_proxy", {})

    notes = {"notes": small_config()}
    async with Hub() as hub:
        run = await run_of(hub, docs, folder, FunctionClient(act), servers=notes)
        return await run.make({"input": tool})


async def test_a_direct_server_that_dies_is_the_clients_own_to_meet(
    docs: Docs, tmp_path: Path
) -> None:
    docs.lists("find", "die")
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("die", "find"))
        first = await run.make()
        second = await run.make(trial=1)
    for finished in (first, second):
        assert finished.record.ending == Trial()
        assert finished.record.trace is not None
        assert [one.is_error for one in finished.record.trace.tool_calls] == [True, False]


async def test_the_clients_own_limits_hold_for_direct_servers_too(
    docs: Docs, tmp_path: Path
) -> None:
    async with Hub() as hub:
        run = await run_of(hub, docs, tmp_path, scripted("find", "find", "find"))
        finished = await run.make({"clientOptions": {"maxToolCalls": 2}})
    assert finished.record.ending == Trial(stopped_by="calls")
    assert docs.calls == ["find", "find"]


@pytest.mark.lets_writes_through("peek")
async def test_an_attempt_that_a_body_runs_is_checked_alike(docs: Docs, tmp_path: Path) -> None:
    async with Hub() as hub, anyio.create_task_group() as tasks:
        run = await run_of(hub, docs, tmp_path, scripted("peek"))
        live = LiveAttempt(run.job({}, 0), hub, run.writer, run.rules)
        await tasks.start(live.serve)
        await live.run(None)
        failure = failure_of(await live.finish(None))
    assert "peek of server docs" in failure.reason
    assert not failure.retryable
