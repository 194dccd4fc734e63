"""One attempt from its start to its stored record."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import anyio

from pytest_mst.attempt.job import BODY, AttemptJob
from pytest_mst.attempt.unexpected import failure_of, proxy_failure
from pytest_mst.clients.client import Client, ClientRequest, TraceLog
from pytest_mst.clients.limits import run_within_limits
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.run import utc_text
from pytest_mst.domain.score import GradedAttempt, GradeOutcome, GraderFailure
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry
from pytest_mst.grading.agreement import agreement
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.select import applicable, grade
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.record import ObservedCall
from pytest_mst.store.append import RunWriter


@dataclass(frozen=True, slots=True)
class FinishedAttempt:
    """An attempt that has ended and is stored, with what its graders said so far."""

    job: AttemptJob
    record: AttemptRecord
    writes: tuple[WriteEntry, ...]
    outcomes: tuple[GradeOutcome, ...]
    calls: tuple[ObservedCall, ...] = ()
    """Every call that reached the boundary, reads too."""

    @property
    def graded(self) -> GradedAttempt:
        """The attempt as verdicts need it."""
        return GradedAttempt(self.record.id.trial, self.record.ending, self.outcomes)


@dataclass(slots=True)
class SoFar:
    """What an attempt has come to, kept outside of it so that a cut leaves what there was."""

    log: TraceLog
    entries: list[WriteEntry] = field(default_factory=list)
    calls: list[ObservedCall] = field(default_factory=list)


@dataclass(slots=True)
class Clock:
    """When an attempt began, and how long it has taken by a clock that does not jump."""

    started_at: str = field(default_factory=lambda: utc_text(datetime.now(UTC)))
    _start_s: float = field(default_factory=time.perf_counter)

    @property
    def elapsed_ms(self) -> int:
        """Whole milliseconds since the start."""
        return round((time.perf_counter() - self._start_s) * 1000)


async def collect(job: AttemptJob, hub: Hub, writer: RunWriter) -> FinishedAttempt:
    """Make one attempt, grade it where code can, and store all of it.

    Whatever happens inside the attempt becomes its ending. Being cancelled ends it as cut short:
    that is stored, and the cancellation goes on.
    """
    clock = Clock()
    so_far = SoFar(TraceLog(servers=tuple(job.target.servers)))

    def finish(ending: Ending) -> FinishedAttempt:
        return store_attempt(job, writer, so_far, ending, clock)

    if job.target.failure is not None:
        return finish(job.target.failure)
    try:
        writer.begun(job.id, job.locator)
        ending = await _within_deadline(job, hub, writer, so_far)
    except StoreError as error:
        return finish(not_stored(error))
    except anyio.get_cancelled_exc_class():
        finish(CUT_SHORT)
        raise
    return finish(ending)


CUT_SHORT = InfrastructureFailure(
    Broke.COLLECTION, "the attempt was cut short because the run was stopped", retryable=True
)


def not_stored(error: StoreError) -> InfrastructureFailure:
    """Return the ending of an attempt that could not be written down."""
    return InfrastructureFailure(
        Broke.COLLECTION, f"the attempt could not be stored: {error}", retryable=True
    )


async def _within_deadline(job: AttemptJob, hub: Hub, writer: RunWriter, so_far: SoFar) -> Ending:
    with anyio.move_on_after(job.timeout_s) as deadline:
        ending = await _act(job, hub, writer, so_far)
    if deadline.cancelled_caught:
        return deadline_passed(job)
    return ending


def deadline_passed(job: AttemptJob) -> InfrastructureFailure:
    """Return the ending of an attempt that our deadline cut off."""
    return InfrastructureFailure(
        Broke.DEADLINE,
        f"no end after {job.timeout_s:g} s, which is the deadline (`timeout`)",
        retryable=True,
    )


async def _act(job: AttemptJob, hub: Hub, writer: RunWriter, so_far: SoFar) -> Ending:
    """Open the boundary, let the client act, and say how that ended."""
    ending: Ending
    with writer.write_sink(job.id) as sink:
        try:
            async with hub.open_attempt(
                job.target.servers, sink, trial_id=job.trial_id
            ) as boundary:
                so_far.entries, so_far.calls = boundary.entries, boundary.calls
                ending = await _run_client(job, boundary, so_far.log)
        except Exception as error:  # noqa: BLE001 - around one attempt: whatever it is, it ends it
            ending = proxy_failure(error)
    return ending


async def _run_client(job: AttemptJob, boundary: Boundary, log: TraceLog) -> Ending:
    request = ClientRequest(
        input=job.input,
        trial=job.id.trial,
        trial_id=job.trial_id,
        model=job.model,
        options=job.options,
        tools=boundary,
        trace=log,
        session=boundary,
    )
    return await ending_of(job.target.client, request, boundary)


async def ending_of(client: Client, request: ClientRequest, boundary: Boundary) -> Ending:
    """Run a client, and say how that ended; what the boundary lost comes before its words."""
    ending: Ending
    try:
        ending = await run_within_limits(client, request)
        request.trace.check()
    except GeneratorExit:
        raise
    except BaseException as error:  # around one attempt: `sys.exit` and a test framework's own
        # exceptions end it too, and must not end the loop that others run in
        if isinstance(error, anyio.get_cancelled_exc_class()) and _asked_to_end():
            raise
        ending = failure_of(error)
    await anyio.lowlevel.checkpoint_if_cancelled()  # a client may keep it to itself
    return boundary.lost.failure if boundary.lost is not None else ending


def _asked_to_end() -> bool:
    """Tell whether somebody cancels this attempt.

    A client may raise the event loop's own way to end a task without that, when it waits for a
    task of its own that it has cancelled.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def store_attempt(
    job: AttemptJob,
    writer: RunWriter,
    so_far: SoFar,
    ending: Ending,
    clock: Clock,
) -> FinishedAttempt:
    """Match trace and record, grade a trial, and write all of it down."""
    record = record_of(job, so_far, ending, clock)
    entries = tuple(so_far.entries)
    outcomes: tuple[GradeOutcome, ...] = ()
    try:
        if isinstance(ending, Trial):
            facts = _facts(job, record, ending, entries)
            graders = applicable(facts, job.graders)
            names = tuple(grader.name for grader in graders)
            record = replace(record, graders=(*names, BODY) if job.has_body else names)
            writer.attempt(record)  # before any grader runs: what a grader does cannot lose it
            outcomes = grade(facts, graders)
            record = store_outcomes(writer, record, outcomes)
        else:
            writer.attempt(record)
        writer.ended(job.id, job.locator, ending)
    except StoreError as error:
        record = replace(record, ending=not_stored(error))
        outcomes = ()
    return FinishedAttempt(job, record, entries, outcomes, tuple(so_far.calls))


def record_of(job: AttemptJob, so_far: SoFar, ending: Ending, clock: Clock) -> AttemptRecord:
    """Return an attempt as it stands: its trace, and whether that agrees with the record."""
    trace = _trace(so_far, ending)
    return AttemptRecord(
        id=job.id,
        dataset=job.dataset,
        locator=job.locator,
        started_at=clock.started_at,
        duration_ms=clock.elapsed_ms,
        ending=ending,
        key=job.key,
        trace=trace,
        agreement=agreement(trace, so_far.entries, job.target.tools),
    )


def store_outcomes(
    writer: RunWriter, record: AttemptRecord, outcomes: Sequence[GradeOutcome]
) -> AttemptRecord:
    """Write scores down; what could not run is said in the trial's own file.

    Raises:
        StoreError: the files could not be written.

    """
    writer.scores(record.id, outcomes)
    failures = [
        f"{outcome.grader}: {outcome.reason}"
        for outcome in outcomes
        if isinstance(outcome, GraderFailure)
    ]
    if failures:
        earlier = [record.grading_error] if record.grading_error else []
        record = replace(record, grading_error="\n".join([*earlier, *failures]))
        writer.attempt(record)
    return record


def _facts(
    job: AttemptJob, record: AttemptRecord, ending: Trial, entries: tuple[WriteEntry, ...]
) -> TrialFacts:
    assert record.trace is not None  # a trial has a trace
    assert record.agreement is not None
    return TrialFacts(
        case=job.case,
        ending=ending,
        trace=record.trace,
        writes=entries,
        agreement=record.agreement,
        modes=job.target.modes,
        declared_writes=job.declared_writes,
    )


def _trace(so_far: SoFar, ending: Ending) -> Trace | None:
    """Return the client's account; where it gave none, what the boundary observed."""
    trace = so_far.log.finished()
    if trace.evidence == "observed" and not trace.events:
        trace = replace(trace, events=tuple(_observed(call) for call in so_far.calls))
    if isinstance(ending, Trial) or trace.events or trace.answer is not None:
        return trace
    return None


def _observed(call: ObservedCall) -> TraceEvent:
    return TraceEvent(
        name=call.tool,
        server=call.server,
        arguments=call.arguments,
        output=call.result,
        is_error=call.is_error,
        id=call.join_id,
    )
