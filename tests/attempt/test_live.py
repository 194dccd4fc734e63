"""Attempts that a test body runs itself, input by input."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.job import Target
from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import (
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Trial,
)
from pytest_mst.domain.score import TrialVerdict
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import (
    DONE,
    HIDDEN,
    READ,
    WRITE,
    Collected,
    job,
    scripted,
    small,
    target,
    writer_in,
)

pytestmark = pytest.mark.anyio

BROKEN_BODY = InfrastructureFailure(Broke.SETUP, "a fixture raised", retryable=False)


@asynccontextmanager
async def open_attempt(
    target: Target, folder: Path, case: Mapping[str, Any] | None = None, **fields: Any
) -> AsyncIterator[LiveAttempt]:
    """Hold an attempt open; whoever opens it finishes it."""
    writer = writer_in(folder)
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            live = LiveAttempt(job(target, case, **fields), hub, writer)
            await tasks.start(live.serve)
            yield live
    writer.close()


def on_disk(finished: FinishedAttempt, folder: Path) -> Collected:
    return Collected(finished, writer_in(folder).layout)


async def test_a_conversation_goes_on_from_input_to_input_in_one_trace_and_record(
    tmp_path: Path,
) -> None:
    script = (READ, {"answer": "first"}, WRITE, {"answer": "{{last.text}}"})
    async with open_attempt(scripted(*script), tmp_path) as live:
        ran_before = live.ran_client
        first = await live.run(None)
        second = await live.run("and now?")
        third = await live.run("nothing is left to do")
        finished = await live.finish(None)
    assert (ran_before, live.ran_client) == (False, True)
    made = on_disk(finished, tmp_path)
    planned: Any = made.finished.writes[0].reply
    answers = [record.trace.answer for record in (first, second) if record.trace]
    assert answers == ["first", planned["content"][0]["text"]]
    assert third.ending == made.ending == Trial()
    assert made.events == [("read_note", False), ("write_note", False)]
    assert made.stored_writes == ["write_note"]
    assert made.stored["agreement"]["checked"]
    assert made.unreported == []
    assert made.journal == ["begun", "ended"]


async def test_what_is_said_of_the_attempt_so_far_does_not_change_any_more(tmp_path: Path) -> None:
    script = (WRITE, {"answer": "first"}, HIDDEN, {"answer": "second"})
    async with open_attempt(scripted(*script), tmp_path) as live:
        first = await live.run(None)
        second = await live.run(None)
        finished = await live.finish(None)
    assert first.trace is not None
    assert first.trace.answer == "first"
    assert first.agreement is not None
    assert first.agreement.agrees
    assert second.agreement is not None
    assert [entry.tool for entry in second.agreement.unreported] == ["write_note"]
    assert finished.record.agreement == second.agreement


async def test_the_last_tools_text_is_known_in_the_next_input_too(tmp_path: Path) -> None:
    script = (READ, {"answer": "wait"}, {"answer": "it says: {{last.text}}"})
    async with open_attempt(scripted(*script), tmp_path) as live:
        await live.run(None)
        record = await live.run(None)
        await live.finish(None)
    assert record.trace is not None
    assert record.trace.answer == "it says: the note"


async def test_what_an_agent_did_in_later_inputs_is_observed_too(tmp_path: Path) -> None:
    async def agent(request: ClientRequest) -> str:
        tool = ["read_note", "write_note"][request.turn or 0]
        await request.tools.call_tool("notes", tool, {"text": request.input})
        return request.input

    one = target(client=FunctionClient(agent))
    async with open_attempt(one, tmp_path, {"input": "{{trial.id}}"}) as live:
        await live.run(None)
        await live.run("second")
        finished = await live.finish(None)
    made = on_disk(finished, tmp_path)
    given = [event["arguments"]["text"] for event in made.stored["trace"]["events"]]
    assert given == [finished.job.trial_id, "second"]


async def test_an_attempt_that_ran_no_input_is_what_the_body_did_itself(tmp_path: Path) -> None:
    case = {"expected": {"writes": [{"tool": "write_note"}]}}
    async with open_attempt(scripted(DONE), tmp_path, case, has_body=True) as live:
        assert live.boundary is not None
        await live.boundary.call_tool("notes", "read_note", None)
        await live.boundary.call_tool("notes", "write_note", {"text": "hi"})
        finished = await live.finish(None)
    made = on_disk(finished, tmp_path)
    assert made.ending == Trial()
    assert made.events == [("read_note", False), ("write_note", False)]
    assert made.stored["trace"]["evidence"] == "observed"
    assert made.stored["graders"] == ["writes", "body"]
    assert made.finished.graded.verdict is TrialVerdict.PASSED


async def test_the_boundary_is_closed_once_the_attempt_is_finished(tmp_path: Path) -> None:
    async with open_attempt(scripted(DONE), tmp_path) as live:
        boundary = live.boundary
        await live.finish(None)
    assert boundary is not None
    with pytest.raises(ToolCallError, match="has ended"):
        await boundary.call_tool("notes", "read_note", None)


async def test_why_the_body_says_it_is_no_trial_counts_where_no_client_ran(tmp_path: Path) -> None:
    async with open_attempt(scripted(DONE), tmp_path) as live:
        finished = await live.finish(BROKEN_BODY)
    assert finished.record.ending == BROKEN_BODY
    async with open_attempt(scripted(DONE), tmp_path / "ran") as live:
        await live.run(None)
        finished = await live.finish(BROKEN_BODY)
    assert finished.record.ending == Trial()


async def test_an_input_that_is_no_trial_is_raised_and_ends_the_attempt(tmp_path: Path) -> None:
    fail = {"fail": {"broke": "provider", "reason": "overloaded"}}
    async with open_attempt(scripted(WRITE, fail), tmp_path) as live:
        with pytest.raises(InfrastructureError) as caught:
            await live.run(None)
        finished = await live.finish(BROKEN_BODY)
    made = on_disk(finished, tmp_path)
    assert made.failure == caught.value.failure
    assert made.failure.broke is Broke.PROVIDER
    assert made.events == [("write_note", False)]


async def test_the_deadline_is_for_an_input_that_hangs(tmp_path: Path) -> None:
    async with open_attempt(scripted(WRITE, {"sleep": 60}), tmp_path, timeout_s=0.2) as live:
        with pytest.raises(InfrastructureError) as caught:
            await live.run(None)
        finished = await live.finish(None)
    assert caught.value.failure.broke is Broke.DEADLINE
    assert finished.record.ending == caught.value.failure
    assert on_disk(finished, tmp_path).stored_writes == ["write_note"]


async def test_the_clients_own_limits_are_for_each_input(tmp_path: Path) -> None:
    case = {"clientOptions": {"maxToolCalls": 1}}
    script = (READ, {"answer": "first"}, READ, {"answer": "second"}, READ, READ, {"answer": "no"})
    async with open_attempt(scripted(*script), tmp_path, case) as live:
        endings = [(await live.run(None)).ending for _ in range(3)]
        await live.finish(None)
    assert endings == [Trial(), Trial(), Trial(stopped_by="calls")]


async def test_a_server_that_another_attempt_ended_comes_before_what_the_body_says(
    tmp_path: Path,
) -> None:
    async def dies(request: ClientRequest) -> None:
        with pytest.raises(ToolCallError):
            await request.tools.call_tool("notes", "die", None)

    writer = writer_in(tmp_path)
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            mine = LiveAttempt(job(scripted(READ, DONE)), hub, writer)
            other = LiveAttempt(
                job(target(client=FunctionClient(dies))), hub, writer_in(tmp_path / "other")
            )
            await tasks.start(mine.serve)
            await tasks.start(other.serve)
            await mine.run(None)
            await other.run(None)
            finished = await mine.finish(BROKEN_BODY)
            await other.finish(None)
    ending = finished.record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert ending.broke is Broke.SETUP
    assert "isolation: attempt" in ending.reason


async def test_an_attempt_cut_short_is_stored_as_that(tmp_path: Path) -> None:
    async with open_attempt(scripted(WRITE, DONE), tmp_path) as live:
        await live.run(None)
        finished = await live.cut_short()
    made = on_disk(finished, tmp_path)
    assert made.failure.broke is Broke.COLLECTION
    assert made.failure.retryable
    assert made.events == [("write_note", False)]


@pytest.mark.parametrize(
    ("one", "broke"),
    [
        (scripted(failure=BROKEN_BODY), Broke.SETUP),
        (target(small("--exit-on-start", "2")), Broke.SETUP),
    ],
    ids=["found at load", "found now"],
)
async def test_an_attempt_whose_server_cannot_be_used_does_not_open(
    tmp_path: Path, one: Target, broke: Broke
) -> None:
    with anyio.fail_after(20):
        async with Hub() as hub:
            live = LiveAttempt(job(one), hub, writer_in(tmp_path))
            with pytest.raises(InfrastructureError) as caught:
                await live.serve()
    assert caught.value.failure.broke is broke
    assert live.boundary is None


async def test_an_attempt_whose_beginning_cannot_be_noted_does_not_open(tmp_path: Path) -> None:
    (tmp_path / "team-chat").write_text("in the way")
    writer = writer_in(tmp_path)
    async with Hub() as hub:
        with pytest.raises(InfrastructureError) as caught:
            await LiveAttempt(job(scripted(DONE)), hub, writer).serve()
    assert caught.value.failure.broke is Broke.COLLECTION


@pytest.mark.parametrize(
    ("step", "ending"),
    [
        ({"error": "lost the thread"}, Trial(client_error="lost the thread")),
        ({"stop": "turns"}, Trial(stopped_by="turns")),
    ],
    ids=["error", "limit"],
)
async def test_what_went_wrong_in_an_input_is_not_undone_by_a_later_good_one(
    tmp_path: Path, step: Mapping[str, Any], ending: Trial
) -> None:
    script = (step, {"answer": "never"}, READ, {"answer": "better"})
    async with open_attempt(scripted(*script), tmp_path) as live:
        first = await live.run(None)
        second = await live.run("again")
        finished = await live.finish(None)
    assert first.ending == second.ending == finished.record.ending == ending
    assert finished.record.trace is not None
    assert finished.record.trace.answer == "better"


async def test_a_failure_that_the_body_swallowed_is_not_undone_by_a_later_good_input(
    tmp_path: Path,
) -> None:
    fail = {"fail": {"broke": "provider", "reason": "overloaded"}}
    script = (fail, {"answer": "never"}, {"answer": "better"})
    async with open_attempt(scripted(*script), tmp_path) as live:
        raised = []
        for _ in range(2):
            with pytest.raises(InfrastructureError) as caught:
                await live.run(None)
            raised.append(caught.value.failure)
        finished = await live.finish(None)
    assert raised[0] == raised[1] == finished.record.ending
    assert raised[0].broke is Broke.PROVIDER
