"""The life of a live attempt, on a ledger that is really written to."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.job import Again, AttemptJob
from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.domain.score import GraderFailure, Score, TrialVerdict
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.debts import owed_cleanups
from tests.attempt.ledgers import (
    ADD,
    DONE,
    FOUND,
    MARKER,
    PURGE,
    SEED,
    Ledger,
)
from tests.attempt.setting import journal_of, lines_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


async def made(ledger: Ledger, *words: str, **more: Any) -> FinishedAttempt:
    """Make one attempt."""
    with anyio.fail_after(50):
        async with Hub() as hub:
            job = await ledger.job(hub, *words, **more)
            return await collect(job, hub, ledger.writer)


def failure_of(finished: FinishedAttempt) -> InfrastructureFailure:
    assert isinstance(finished.record.ending, InfrastructureFailure)
    return finished.record.ending


def owed(ledger: Ledger) -> int:
    return len(owed_cleanups(ledger.writer.layout))


def step(tool: str, **more: Any) -> dict[str, Any]:
    return {"server": "ledger", "tool": tool, "arguments": MARKER, **more}


@pytest.mark.lets_writes_through
async def test_it_is_seeded_acts_is_read_and_cleaned_up_after(ledger: Ledger) -> None:
    finished = await made(ledger)
    assert ledger.calls == ["add", "add", "find", "purge"]
    assert ledger.markers == {finished.job.trial_id}
    assert ledger.entries == []
    assert finished.graded.verdict is TrialVerdict.PASSED
    assert finished.graded.evidence is Evidence.APPLIED
    assert [(one.tool, one.mode, one.unclassified) for one in finished.writes] == [
        ("add", WriteMode.LIVE, False)
    ]
    assert [call.tool for call in finished.calls] == ["add"]  # our own are of no attempt
    assert journal_of(ledger.writer.layout) == ["begun", "owes", "paid", "ended"]


@pytest.mark.lets_writes_through
async def test_a_write_that_was_only_claimed_is_proved_not_to_be_there(ledger: Ledger) -> None:
    case = {"expected": {"outcome": [{**FOUND, "withinMs": 100}]}}
    finished = await made(ledger, client=ScriptedClient([DONE]), case=case)
    (score,) = finished.outcomes
    assert isinstance(score, Score)
    assert (score.passed, score.evidence) == (False, Evidence.APPLIED)
    (reading,) = finished.record.outcome
    assert reading.tries > 1
    assert "seed" in str(reading.result)


@pytest.mark.lets_writes_through
async def test_a_write_that_is_applied_later_is_waited_for(ledger: Ledger) -> None:
    finished = await made(ledger, "late=3")
    assert finished.graded.verdict is TrialVerdict.PASSED
    (reading,) = finished.record.outcome
    assert (reading.tries, ledger.calls.count("find")) == (3, 3)


@pytest.mark.lets_writes_through
async def test_one_read_is_enough_where_nothing_is_to_be_waited_for(ledger: Ledger) -> None:
    case = {"expected": {"outcome": [{**FOUND, "withinMs": 0}]}}
    finished = await made(ledger, "late=3", case=case)
    assert finished.graded.verdict is TrialVerdict.FAILED
    assert ledger.calls.count("find") == 1


@pytest.mark.parametrize(
    ("tool", "retryable", "why"),
    [
        ("refuse", False, 'the tool answered with an error: "the ledger is closed"'),
        ("reject", False, "answered with a protocol error: not like this (code -32602)"),
        ("die", True, "exited with status 5 in this call"),
        ("stall", True, "did not answer in 0.4 s"),
    ],
)
@pytest.mark.lets_writes_through
async def test_a_step_of_the_set_up_that_fails_is_a_setup_failure(
    ledger: Ledger, tool: str, retryable: bool, why: str
) -> None:
    setup = [SEED, step(tool)]
    finished = await made(ledger, setup=setup, server={"callTimeoutMs": 400})
    failure = failure_of(finished)
    assert (failure.broke, failure.retryable, failure.accepted) == (Broke.SETUP, retryable, False)
    said = f'setup step 2 of 2, ledger.{tool} {{"marker": "{finished.job.trial_id}"}}: '
    assert failure.reason.startswith(said)
    assert why in failure.reason
    assert ledger.calls == ["add", tool, "purge"]  # the client did not act
    assert ledger.entries == []
    assert owed(ledger) == 0


@pytest.mark.lets_writes_through
async def test_it_is_cleaned_up_after_a_client_that_errored(ledger: Ledger) -> None:
    finished = await made(ledger, client=ScriptedClient([ADD, {"error": "lost my way"}]))
    assert finished.record.ending == Trial(client_error="lost my way")
    assert finished.graded.verdict is TrialVerdict.FAILED
    assert [type(one) for one in finished.outcomes] == [Score, Score]
    assert ledger.calls[-2:] == ["find", "purge"]
    assert ledger.entries == []


@pytest.mark.parametrize(
    "steps",
    [
        [ADD, {"fail": {"broke": "provider", "reason": "overloaded"}}],
        [ADD, {"raise": "boom"}],
    ],
)
@pytest.mark.lets_writes_through
async def test_what_is_no_trial_is_cleaned_up_after_and_not_read(
    ledger: Ledger, steps: list[Mapping[str, Any]]
) -> None:
    finished = await made(ledger, client=ScriptedClient(steps))
    assert isinstance(finished.record.ending, InfrastructureFailure)
    assert ledger.calls == ["add", "add", "purge"]
    assert finished.record.outcome == ()


@pytest.mark.lets_writes_through
async def test_it_is_cleaned_up_after_when_our_deadline_cuts_it_off(ledger: Ledger) -> None:
    client = ScriptedClient([ADD, {"sleep": 60}])
    finished = await made(ledger, client=client, fields={"timeout_s": 0.5})
    assert failure_of(finished).broke is Broke.DEADLINE
    assert ledger.calls == ["add", "add", "purge"]
    assert ledger.entries == []


@pytest.mark.lets_writes_through
async def test_it_is_cleaned_up_after_when_the_run_is_stopped(ledger: Ledger) -> None:
    acting = anyio.Event()

    async def hangs(request: ClientRequest) -> str:
        await request.tools.call_tool("ledger", "add", {"marker": request.trial_id, "text": "half"})
        acting.set()
        await anyio.sleep(60)
        return "never"

    with anyio.fail_after(50):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            job = await ledger.job(hub, client=FunctionClient(hangs))
            tasks.start_soon(collect, job, hub, ledger.writer)
            await acting.wait()
            assert ledger.entries == ["seed", "half"]
            tasks.cancel_scope.cancel()
    assert ledger.entries == []
    assert journal_of(ledger.writer.layout) == ["begun", "owes", "paid", "ended"]


@pytest.mark.lets_writes_through
async def test_a_write_that_is_under_way_when_the_run_is_stopped_is_cleaned_up_too(
    ledger: Ledger,
) -> None:
    """Its server is shared, so that it does not end with the attempt."""

    async def writes(request: ClientRequest) -> None:
        late: JsonObject = {"marker": request.trial_id, "text": "late", "when_told": True}
        await request.tools.call_tool("ledger", "add", late)

    with socket.create_server(("127.0.0.1", 0)) as bell, anyio.fail_after(50):
        env = {"LEDGER_BELL": str(bell.getsockname()[1])}
        async with Hub() as hub:
            shared = {"env": env, "isolation": "variant"}
            job = await ledger.job(hub, client=FunctionClient(writes), server=shared)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(collect, job, hub, ledger.writer)
                told, _ = await anyio.to_thread.run_sync(bell.accept)
                tasks.cancel_scope.cancel()
                with told:
                    told.send(b"!")
    assert ledger.calls == ["add", "add", "purge"]
    assert ledger.entries == []
    (line,) = lines_of(ledger.writer.layout.writes(job.id))
    assert line["reply"] == {"content": [{"type": "text", "text": "added"}]}


@pytest.mark.lets_writes_through
async def test_a_cleanup_that_fails_is_told_and_changes_nothing_else(ledger: Ledger) -> None:
    finished = await made(ledger, cleanup=[step("refuse"), PURGE])
    assert finished.graded.verdict is TrialVerdict.PASSED
    said = f'ledger.refuse {{"marker": "{finished.job.trial_id}"}}: the tool answered with an error'
    assert finished.record.cleanup_error is not None
    assert finished.record.cleanup_error.startswith(said)
    assert ledger.calls[-2:] == ["refuse", "purge"]  # the steps after it are taken all the same
    assert ledger.entries == []
    (debt,) = owed_cleanups(ledger.writer.layout)
    assert (debt.id, debt.trial_id) == (finished.job.id, finished.job.trial_id)


@pytest.mark.lets_writes_through
async def test_what_could_not_be_read_leaves_the_trial_ungraded(ledger: Ledger) -> None:
    unreadable = {**FOUND, "tool": "refuse_read", "withinMs": 0}
    finished = await made(ledger, case={"expected": {"outcome": [unreadable]}})
    failures = [one for one in finished.outcomes if isinstance(one, GraderFailure)]
    assert [one.grader for one in failures] == ["outcome"]
    assert finished.graded.verdict is TrialVerdict.UNGRADED
    assert ledger.entries == []


@pytest.mark.lets_writes_through
async def test_our_own_calls_are_in_no_duration_and_under_no_deadline(ledger: Ledger) -> None:
    case = {"expected": {"outcome": [{**FOUND, "withinMs": 1_200}]}}
    finished = await made(ledger, "late=99", case=case, fields={"timeout_s": 1.0})
    assert finished.record.ending == Trial()
    (reading,) = finished.record.outcome
    assert reading.waited_ms >= 1_200
    assert finished.record.duration_ms < 1_000


@pytest.mark.lets_writes_through
async def test_writes_are_stopped_where_no_outcome_is_checked(ledger: Ledger) -> None:
    finished = await made(ledger, case={"assertions": {"containsText": "done"}})
    assert [one.mode for one in finished.writes] == [WriteMode.PLANNED]
    assert ledger.calls == ["add", "purge"]  # what it reads is seeded all the same
    assert finished.graded.evidence is Evidence.REQUESTED


@pytest.mark.lets_writes_through
async def test_an_attempt_that_a_test_body_runs_is_seeded_and_cleaned_up_after_too(
    ledger: Ledger,
) -> None:
    with anyio.fail_after(50):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            job = await ledger.job(hub, case={"assertions": {"containsText": "done"}})
            attempt = LiveAttempt(job, hub, ledger.writer)
            await tasks.start(attempt.serve)
            await attempt.run(None)
            assert ledger.calls == ["add"]
            finished = await attempt.finish(None)
    assert ledger.calls == ["add", "purge"]
    assert [one.mode for one in finished.writes] == [WriteMode.PLANNED]
    assert journal_of(ledger.writer.layout) == ["begun", "owes", "paid", "ended"]


@pytest.mark.lets_writes_through
async def test_a_set_up_that_fails_leaves_nothing_for_a_test_body_to_run(ledger: Ledger) -> None:
    with anyio.fail_after(50):
        async with Hub() as hub:
            case = {"assertions": {"containsText": "done"}}
            job = await ledger.job(hub, case=case, setup=[step("refuse")])
            attempt = LiveAttempt(job, hub, ledger.writer)
            with pytest.raises(InfrastructureError) as caught:
                await attempt.serve()
    assert caught.value.failure.broke is Broke.SETUP
    assert owed(ledger) == 0


async def test_each_attempt_has_a_server_of_its_own_unless_it_is_said_otherwise(
    ledger: Ledger,
) -> None:
    async with Hub() as hub:
        own = await ledger.job(hub)
        shared = await ledger.job(hub, server={"isolation": "variant"})
        stopped = await ledger.job(hub, case={"assertions": {"containsText": "done"}})
    found = [job.target.servers["ledger"].isolation for job in (own, shared, stopped)]
    assert found == ["attempt", "variant", "variant"]


@pytest.mark.lets_writes_through
async def test_steps_may_go_to_a_server_that_the_client_is_not_given(ledger: Ledger) -> None:
    servers = {"ledger": ledger.server(), "admin": ledger.server()}
    setup = [{**SEED, "server": "admin"}]
    finished = await made(
        ledger, servers=servers, setup=setup, variants=[{"name": "v", "servers": ["ledger"]}]
    )
    assert finished.graded.verdict is TrialVerdict.PASSED
    assert list(finished.job.target.servers) == ["ledger"]


async def test_an_attempt_that_is_collected_anew_has_another_id(ledger: Ledger) -> None:
    def again(step: Step, stamp: str) -> dict[str, Any]:
        return {"again": Again(Decision(step, ""), stamp)}

    async with Hub() as hub:
        jobs: list[AttemptJob] = [
            await ledger.job(hub, fields=fields)
            for fields in (
                {},
                again(Step.KEEP, "20261130T1"),
                again(Step.COLLECT, "20261130T1"),
                again(Step.COLLECT, "20261130T2"),
            )
        ]
    first, kept, *anew = [job.trial_id for job in jobs]
    assert first == kept
    assert len({first, *anew}) == 3
    assert all(one.isascii() and one.isalnum() for one in anew)


async def test_steps_and_reads_are_a_part_of_what_an_attempt_is_of(ledger: Ledger) -> None:
    async def parts(**more: Any) -> Mapping[str, str]:
        async with Hub() as hub:
            return (await ledger.job(hub, **more)).identity.parts

    def checked(**more: Any) -> dict[str, Any]:
        return {"expected": {"outcome": [{**FOUND, **more}]}}

    base = await parts(case=checked())
    name = "steps around a live attempt"
    assert (await parts(case=checked(containsText="x", withinMs=1)))[name] == base[name]
    for other in (
        await parts(case=checked(arguments={})),
        await parts(case=checked(), setup=[SEED, SEED]),
    ):
        assert other[name] != base[name]
    assert (await parts(case=checked(), cleanup=[PURGE, PURGE]))[name] == base[name]
    assert name in await parts(case={"assertions": {"containsText": "a"}})  # it is seeded, too
