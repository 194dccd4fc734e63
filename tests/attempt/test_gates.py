"""What ends an attempt is judged: the classifier is asked, and a gate closed if need be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

from pytest_mst.attempt.again import make as made
from pytest_mst.attempt.classify import Classify, classified
from pytest_mst.attempt.collect import broken
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.gates import Gates
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.attempt.unexpected import failure_of, fatal_in
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import (
    Broke,
    CaseFatalError,
    InfrastructureError,
    InfrastructureFailure,
    RunFatalError,
    Scope,
    Trial,
    VariantFatalError,
)
from pytest_mst.domain.failure_class import FailureClass
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.stop import Stop
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter
from pytest_mst.store.stops import Stops, read_stops
from tests.attempt.setting import DONE, RUN_ID, job, scripted, small, target, writer_in

pytestmark = pytest.mark.anyio

FAILURE = InfrastructureFailure(Broke.PROVIDER, "no quota", retryable=True)
WHEN = "2026-11-30T09:45:00.000Z"


GONE, OTHER = "gone", "other"


def caught(raising: Callable[[], object]) -> Exception:
    """Return what is raised."""
    with pytest.raises(Exception) as info:  # noqa: PT011 - whatever it is
        raising()
    return info.value


def raised_from() -> NoReturn:
    raise ValueError(OTHER) from RunFatalError(GONE)


def raised_while_handling() -> NoReturn:
    try:
        raise VariantFatalError(GONE)
    except VariantFatalError:
        raise KeyError(OTHER)  # noqa: B904 - what is tested


def raised_instead() -> NoReturn:
    try:
        raise VariantFatalError(GONE)
    except VariantFatalError:
        raise KeyError(OTHER) from None


def raise_group() -> NoReturn:
    inner = ExceptionGroup(OTHER, [ValueError(OTHER), CaseFatalError("narrow")])
    raise ExceptionGroup(OTHER, [KeyError(OTHER), inner, caught(raised_from)])


def raised_deep() -> NoReturn:
    raise InfrastructureError(Broke.NETWORK, OTHER) from caught(raise_group)


@pytest.mark.parametrize(
    ("raising", "scope"),
    [
        (raised_from, Scope.RUN),
        (raised_while_handling, Scope.VARIANT),
        (raise_group, Scope.RUN),
        (raised_deep, Scope.RUN),
    ],
)
async def test_a_fatal_error_is_found_wherever_it_is(
    raising: Callable[[], object], scope: Scope
) -> None:
    failure = failure_of(caught(raising))
    assert (failure.scope, failure.retryable) == (scope, True)
    assert (failure.broke, failure.reason) == (Broke.SETUP, "gone")
    assert "Traceback" in str(failure.detail)


async def test_a_fatal_error_that_somebody_put_aside_is_not_found() -> None:
    assert fatal_in(caught(raised_instead)) is None
    assert failure_of(caught(raised_instead)).scope is Scope.TRIAL


async def test_a_chain_that_leads_round_in_a_circle_is_walked_once() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__cause__ = second, first
    assert fatal_in(first) is None
    second.__context__ = RunFatalError("gone")
    second.__suppress_context__ = False
    assert fatal_in(first) is second.__context__


async def test_the_message_of_a_fatal_error_is_one_line_and_never_empty() -> None:
    assert failure_of(RunFatalError("a\n  b")).reason == "a b"
    assert failure_of(RunFatalError()).reason == "RunFatalError"


def answering(answer: object) -> Classify:
    return lambda phase, text, exception: answer


async def test_an_answer_changes_what_it_names_and_nothing_else() -> None:
    for answer, expected in (
        (None, FAILURE),
        ({"retryable": False}, replace(FAILURE, retryable=False)),
        ({"scope": "variant"}, replace(FAILURE, scope=Scope.VARIANT)),
        (FailureClass(reason="pay"), replace(FAILURE, reason="pay")),
    ):
        assert classified(FAILURE, "client", None, answering(answer)) == expected


async def test_an_answer_can_narrow_what_is_no_fatal_error() -> None:
    wide = replace(FAILURE, scope=Scope.VARIANT)
    for error, scope in (
        (None, Scope.TRIAL),
        (InfrastructureError.of(wide), Scope.TRIAL),
        (caught(raised_while_handling), Scope.VARIANT),
    ):
        assert classified(wide, "client", error, answering({"scope": "trial"})).scope is scope


@pytest.mark.parametrize("answer", ["run", {"scope": "world"}, {"retryable": 1}, 3, object()])
async def test_a_wrong_answer_leaves_the_failure_and_is_told(answer: object) -> None:
    told = classified(FAILURE, "client", None, answering(answer))
    assert told.reason.startswith("no quota (pytest_mst_classify_failure was of no use: ValueError")
    assert "valid: " in told.reason
    assert replace(told, reason=FAILURE.reason, detail=None) == FAILURE


@pytest.mark.parametrize(
    "error", [KeyError("x"), SystemExit(3), KeyboardInterrupt(), RunFatalError("y")]
)
async def test_an_answer_that_does_not_come_leaves_the_failure_and_is_told(
    error: BaseException,
) -> None:
    def ask(phase: str, text: str, exception: BaseException | None) -> NoReturn:
        raise error

    told = classified(replace(FAILURE, detail="its log"), "client", None, ask)
    assert type(error).__name__ in told.reason
    assert str(told.detail).startswith("its log\nTraceback")
    assert replace(told, reason=FAILURE.reason, detail=None) == FAILURE


class Run:
    """A run in one process, with what its classifier was asked."""

    def __init__(self, folder: Path, answer: object = None) -> None:
        self.writer: RunWriter = writer_in(folder)
        self.asked: list[tuple[str, str, BaseException | None]] = []
        self.gates = Gates(Stops(self.writer))
        self.rules = RunRules(run_id=RUN_ID, gates=self.gates, classify=self.ask)
        self.answer = answer

    def ask(self, phase: str, text: str, exception: BaseException | None) -> object:
        self.asked.append((phase, text, exception))
        return self.answer

    async def make(self, hub: Hub, one: AttemptJob) -> FinishedAttempt | None:
        return await made(one, hub, self.writer, self.rules)

    @property
    def stops(self) -> tuple[Stop, ...]:
        return read_stops(self.writer.layout)

    def stored(self, attempt: AttemptId) -> bool:
        return self.writer.layout.trace(attempt).exists()


def attempt_of(variant: str, case: str, trial: int, client: Any) -> AttemptJob:
    at = AttemptId(variant, case, trial)
    return job(target(client=client), id=at, locator=locator(RUN_ID, at))


def raising(error: BaseException) -> FunctionClient:
    async def agent(request: ClientRequest) -> NoReturn:
        raise error

    return FunctionClient(agent)


OTHERS = [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]


@pytest.mark.parametrize(
    ("error", "unstarted"),
    [
        (CaseFatalError("gone"), {("a", "one")}),
        (VariantFatalError("gone"), {("a", "one"), ("a", "two")}),
        (RunFatalError("gone"), {*OTHERS}),
        (InfrastructureError("network", "gone", scope="variant"), {("a", "one"), ("a", "two")}),
        (InfrastructureError("network", "gone"), set()),
    ],
)
async def test_a_client_stops_what_its_error_reaches_and_nothing_else(
    tmp_path: Path, error: Exception, unstarted: set[tuple[str, str]]
) -> None:
    run, elsewhere = Run(tmp_path), Run(tmp_path)  # a second process of the same run
    good = scripted(DONE).client
    async with Hub() as hub:
        first = await run.make(hub, attempt_of("a", "one", 0, raising(error)))
        assert first is not None
        assert isinstance(first.record.ending, InfrastructureFailure)
        assert first.record.ending.reason == "gone"
        for process in (run, elsewhere):
            left_out = set()
            for variant, case in OTHERS:
                trial = 1 if process is run else 2
                one = attempt_of(variant, case, trial, good)
                if await process.make(hub, one) is None:
                    left_out.add((variant, case))
                    assert not run.stored(one.id)
            assert left_out == unstarted
    assert run.stored(AttemptId("a", "one", 0))
    assert [stop.locator for stop in run.stops] == [first.record.locator] * bool(unstarted)


async def test_attempts_under_way_end_and_are_recorded(tmp_path: Path) -> None:
    run = Run(tmp_path)
    under_way, closed = anyio.Event(), anyio.Event()
    made_there: list[FinishedAttempt | None] = []

    async def waits(request: ClientRequest) -> str:
        under_way.set()
        await closed.wait()
        await request.tools.call_tool("notes", "read_note", None)
        return "done"

    async with Hub() as hub:

        async def make(one: AttemptJob) -> None:
            made_there.append(await run.make(hub, one))

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(make, attempt_of("a", "one", 0, FunctionClient(waits)))
                await under_way.wait()
                await make(attempt_of("a", "one", 1, raising(RunFatalError("gone"))))
                assert run.gates.is_closed(AttemptId("a", "one", 0))
                closed.set()
    ended = made_there[1]
    assert ended is not None
    assert isinstance(ended.record.ending, Trial)
    assert run.stored(AttemptId("a", "one", 0))


async def test_the_classifier_hears_of_failures_with_what_is_known(tmp_path: Path) -> None:
    run = Run(tmp_path)
    error = InfrastructureError("provider", "no quota", detail="its log")
    async with Hub() as hub:
        await run.make(hub, attempt_of("a", "one", 0, scripted(DONE).client))
        await run.make(hub, attempt_of("a", "two", 0, scripted({"error": "own"}).client))
        assert run.asked == []
        await run.make(hub, attempt_of("a", "one", 1, raising(error)))
    assert run.asked == [("client", "no quota\nits log", error)]


async def test_a_deadline_is_asked_about_without_an_exception(tmp_path: Path) -> None:
    run = Run(tmp_path, FailureClass(scope="case", reason="hangs"))
    async with Hub() as hub:
        await run.make(hub, attempt_of("a", "one", 1, scripted(DONE).client))  # starts the server
        hanging = replace(attempt_of("a", "one", 0, FunctionClient(_hang)), timeout_s=0.3)
        made_there = await run.make(hub, hanging)
    assert made_there is not None
    assert isinstance(made_there.record.ending, InfrastructureFailure)
    assert made_there.record.ending.broke is Broke.DEADLINE
    (asked,) = run.asked
    assert (asked[0], asked[2]) == ("client", None)
    assert [(stop.scope, stop.reason) for stop in run.stops] == [(Scope.CASE, "hangs")]


async def _hang(request: ClientRequest) -> None:
    await anyio.sleep_forever()


async def test_a_server_that_cannot_be_started_closes_its_variants_gate(tmp_path: Path) -> None:
    run = Run(tmp_path)
    at = AttemptId("a", "one", 0)
    gone = job(target(small("--exit-on-start", "3")), id=at, locator=locator(RUN_ID, at))
    async with Hub() as hub:
        first = await run.make(hub, gone)
        assert first is not None
        assert isinstance(first.record.ending, InfrastructureFailure)
        assert await run.make(hub, replace(gone, id=AttemptId("a", "two", 0))) is None
    assert [(stop.scope, stop.variant) for stop in run.stops] == [(Scope.VARIANT, "a")]
    assert [phase for phase, _, _ in run.asked] == ["setup"]


@pytest.mark.parametrize("by", ["engine", "body"])
async def test_what_was_known_at_load_ends_every_attempt_and_closes_no_gate(
    tmp_path: Path, by: str
) -> None:
    run = Run(tmp_path, {"reason": "start it first"})
    known = replace(FAILURE, scope=Scope.VARIANT)
    async with Hub() as hub:
        for trial in range(2):
            at = AttemptId("a", "one", trial)
            one = job(target(failure=known), id=at, locator=locator(RUN_ID, at))
            ended = (
                await run.make(hub, one)
                if by == "engine"
                else await broken(one, run.writer, run.rules, known, None)
            )
            assert ended is not None
            assert ended.record.ending == replace(known, reason="start it first")
    assert run.stops == ()


async def test_the_first_reason_to_close_a_gate_is_kept(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for number in range(3):
        run.rules.stop(AttemptId("a", "one", number), Scope.RUN, f"reason {number}")
    run.rules.stop(AttemptId("a", "one", 0), Scope.TRIAL, "stops nothing")
    assert [stop.reason for stop in run.stops] == ["reason 0"]
    assert len(run.writer.layout.stops.read_text().splitlines()) == 1


async def test_a_gate_is_closed_here_where_nobody_else_can_be_told(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.writer.layout.stops.mkdir(parents=True)
    run.rules.stop(AttemptId("a", "one", 0), Scope.RUN, "gone")
    assert run.rules.is_stopped(AttemptId("b", "two", 0))


async def test_an_input_that_a_body_runs_is_judged_once(tmp_path: Path) -> None:
    run = Run(tmp_path)
    one = attempt_of("a", "one", 0, raising(VariantFatalError("gone")))
    async with Hub() as hub, anyio.create_task_group() as tasks:
        live = LiveAttempt(one, hub, run.writer, run.rules)
        await tasks.start(live.serve)
        with pytest.raises(InfrastructureError, match="gone"):
            await live.run(None)
        assert run.gates.is_closed(AttemptId("a", "two", 0))
        ended = await live.finish(None)
    assert isinstance(ended.record.ending, InfrastructureFailure)
    assert ended.record.ending.scope is Scope.VARIANT
    assert [phase for phase, _, _ in run.asked] == ["client"]


async def test_what_a_body_says_before_it_runs_its_client_is_judged(tmp_path: Path) -> None:
    run = Run(tmp_path, {"retryable": False})
    error = CaseFatalError("gone")
    async with Hub() as hub, anyio.create_task_group() as tasks:
        live = LiveAttempt(attempt_of("a", "one", 0, None), hub, run.writer, run.rules)
        await tasks.start(live.serve)
        ended = await live.finish(failure_of(error), "body", error)
    assert isinstance(ended.record.ending, InfrastructureFailure)
    assert not ended.record.ending.retryable
    assert [(phase, raised) for phase, _, raised in run.asked] == [("body", error)]
    assert [stop.scope for stop in run.stops] == [Scope.CASE]
