"""One attempt from its start to its stored record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import anyio

from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.direct import listed_for, unlisted_calls
from pytest_mst.attempt.job import BODY, AttemptJob
from pytest_mst.attempt.live_steps import LiveFacts, LiveSteps
from pytest_mst.attempt.retry import Away, Tried, Tries
from pytest_mst.attempt.retry_policy import hint_of, unanswered
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.attempt.shared_connection import Share
from pytest_mst.attempt.unexpected import failure_of, proxy_failure, retry_of
from pytest_mst.attempt.way_in import WayIn, way_in
from pytest_mst.clients.client import Client, ClientRequest, TraceLog
from pytest_mst.clients.limits import run_within_limits
from pytest_mst.domain.attempt import AttemptRecord, Try
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.failure_class import FailurePhase
from pytest_mst.domain.retry import RetryHint
from pytest_mst.domain.score import GradedAttempt, GradeOutcome, GraderFailure
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import ServerTools, WriteEntry, WriteMode
from pytest_mst.grading.agreement import agreement
from pytest_mst.grading.attribution import NO_DOUBT, Doubt
from pytest_mst.grading.filled import filled_case
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.select import applicable, grade
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.record import ObservedCall
from pytest_mst.proxy.shared_boundary import Part
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
    tries: list[Try] = field(default_factory=list)
    phase: FailurePhase = "setup"
    error: BaseException | None = None
    """What was raised last, where the attempt broke."""
    live: LiveFacts = field(default_factory=LiveFacts)
    """What came of our own calls around the client."""
    share: Share | None = None
    """Of a connection that others use too, until it is taken."""
    doubt: Doubt = NO_DOUBT
    """What nobody knows of the record of such a connection."""
    direct: Mapping[str, ServerTools] = field(default_factory=dict)
    """What the servers that the client connects to itself listed before it acted, by label."""

    async def share_known(self, ending: Ending, away: Away) -> None:
        """Wait, where attempts share a connection, until it is known what came from this one.

        What is no trial is graded by nobody, and takes what it can have by now.

        Raises:
            StoreError: it cannot be stored.

        """
        if self.share is not None and isinstance(ending, Trial):
            await self.share.all_known(away)
        self.take_share()

    def take_share(self) -> None:
        """Take what came over a shared connection and is known to be this attempt's, once.

        Raises:
            StoreError: it cannot be stored.

        """
        share, self.share = self.share, None
        if share is not None:
            self.entries, self.doubt = share.take()

    def checked(self, job: AttemptJob, ending: Ending) -> Ending:
        """Return how an attempt ended, once its calls past the boundary were looked at."""
        if not self.direct or not isinstance(ending, Trial):
            return ending
        seen = frozenset(call.tool for call in self.calls)
        return unlisted_calls(job, self.log, self.direct, seen) or ending

    @classmethod
    def before(cls, job: AttemptJob, tries: list[Try] | None = None) -> SoFar:
        """Return what an attempt has come to before it begins: nothing.

        Args:
            job: the attempt.
            tries: where its waits will be noted; a list of its own by default.

        """
        log = TraceLog(servers=tuple(job.target.servers))
        return cls(log, tries=[] if tries is None else tries)


async def collect(
    job: AttemptJob,
    hub: Hub,
    writer: RunWriter,
    rules: RunRules = NO_RULES,
    *,
    away: Away = nullcontext,
) -> FinishedAttempt:
    """Make one attempt, grade it where code can, and store all of it.

    Whatever happens inside the attempt becomes its ending. Being cancelled ends it as cut short:
    that is stored, and the cancellation goes on.

    Args:
        job: the attempt.
        hub: the servers' connections.
        writer: the run's writer.
        rules: the run's rules.
        away: entered while the attempt only waits to be tried again.

    """
    clock = Clock()
    tries = Tries(job, writer, rules, clock, away)
    so_far = SoFar.before(job, tries.made)

    def finish(ending: Ending) -> FinishedAttempt:
        with suppress(StoreError):  # the connection's record has it
            so_far.take_share()
        return store_attempt(job, writer, so_far, ending, clock)

    if job.target.failure is not None:  # of every attempt of the variant alike: no gate to close
        return finish(rules.heard(job.target.failure, "setup", None))
    try:
        writer.begun(job.id, job.locator)
        act = partial(_within_deadline, job, hub, writer, so_far, rules, tries=tries)
        ending = await LiveSteps(job, hub, writer, clock, so_far.live).around(act)
        with clock.paused():
            await so_far.share_known(ending, away)
    except StoreError as error:
        return finish(rules.judged(job.id, not_stored(error), "collection", error))
    except anyio.get_cancelled_exc_class():
        finish(CUT_SHORT)
        raise
    if isinstance(ending, InfrastructureFailure):
        raised, so_far.error = so_far.error, None  # let go: it holds on to all it came through
        ending = rules.judged(job.id, ending, so_far.phase, raised)
    return finish(ending)


async def broken(
    job: AttemptJob,
    writer: RunWriter,
    rules: RunRules,
    failure: InfrastructureFailure,
    raised: BaseException | None,
) -> FinishedAttempt:
    """Store an attempt that ended before its client could begin, once it is judged.

    What was known when the eval was loaded is so for every attempt alike and closes no gate.
    """
    if failure == job.target.failure:
        failure = rules.heard(failure, "setup", raised)
    else:
        failure = rules.judged(job.id, failure, "setup", raised)
    return store_attempt(job, writer, SoFar.before(job), failure, Clock())


CUT_SHORT = InfrastructureFailure(
    Broke.COLLECTION, "the attempt was cut short because the run was stopped", retryable=True
)


def not_stored(error: StoreError) -> InfrastructureFailure:
    """Return the ending of an attempt that could not be written down."""
    return InfrastructureFailure(
        Broke.COLLECTION, f"the attempt could not be stored: {error}", retryable=True
    )


async def _within_deadline(
    job: AttemptJob, hub: Hub, writer: RunWriter, so_far: SoFar, rules: RunRules, *, tries: Tries
) -> Ending:
    with anyio.move_on_after(job.timeout_s) as deadline:
        ending = await _act(job, hub, writer, so_far, rules, tries=tries, deadline=deadline)
    if deadline.cancelled_caught:
        quiet = not so_far.calls and so_far.log == TraceLog(servers=so_far.log.servers)
        return deadline_passed(job, tries, quiet=quiet)
    return so_far.checked(job, ending)


def deadline_passed(job: AttemptJob, tries: Tries, *, quiet: bool) -> InfrastructureFailure:
    """Return the ending of an attempt that our deadline cut off.

    Args:
        job: the attempt.
        tries: its tries.
        quiet: nothing was seen of the client in the last one, so that what the endpoint said
            to the one before is the last that is known of it.

    """
    if quiet and tries.last_answer is not None:
        return unanswered(tries.last_answer, job.timeout_s)
    return InfrastructureFailure(
        Broke.DEADLINE,
        f"no end after {job.timeout_s:g} s, which is the deadline (`timeout`)",
        retryable=True,
    )


async def _act(
    job: AttemptJob,
    hub: Hub,
    writer: RunWriter,
    so_far: SoFar,
    rules: RunRules,
    *,
    tries: Tries,
    deadline: anyio.CancelScope,
) -> Ending:
    """Open the boundary, let the client act, and say how that ended."""
    ending: Ending
    try:
        held = await tries.after_others(deadline)
        if held is not None:
            return held
        async with way_in(job, hub, writer, so_far) as way:
            so_far.direct = await listed_for(job, way.boundary, rules.listings)
            once = partial(_run_client, job, way, so_far)
            ending = await tries.run(once, deadline)
    except Exception as error:  # noqa: BLE001 - around one attempt: whatever it is, it ends it
        ending = proxy_failure(error)
        so_far.error = error
    return ending


async def _run_client(job: AttemptJob, way: WayIn, so_far: SoFar, number: int) -> Tried:
    so_far.log = TraceLog(servers=so_far.log.servers)  # a try that failed leaves nothing in it
    request = ClientRequest(
        input=job.input,
        trial=job.id.trial,
        trial_id=job.trial_id,
        model=job.model,
        options=job.options,
        tools=way.boundary,
        trace=so_far.log,
        attempt_try=number,
        session=way.boundary,
    )
    so_far.phase = "client"
    tried = await ending_of(job.target.client, request, way.seen)
    so_far.error = tried.error
    return tried


async def ending_of(client: Client, request: ClientRequest, boundary: Boundary | Part) -> Tried:
    """Run a client, and say how that ended; what the boundary lost comes before its words.

    It can be tried again where the client says so and nothing came to the boundary meanwhile.
    """
    ending: Ending
    hint: RetryHint | None = None
    raised: BaseException | None = None
    calls_before = boundary.taken
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
        hint = hint_of(ending, retry_of(error))
        raised = error
    await anyio.lowlevel.checkpoint_if_cancelled()  # a client may keep it to itself
    if boundary.lost is not None:
        return Tried(boundary.lost.failure, error=boundary.lost)
    return Tried(ending, hint if boundary.taken == calls_before else None, raised)


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
            facts = trial_facts(job, record, ending, entries, job.target.modes)
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


def unstored(job: AttemptJob, error: StoreError) -> FinishedAttempt:
    """Return an attempt that did not begin, because it could not have been written down."""
    record = record_of(job, SoFar.before(job), not_stored(error), Clock())
    return FinishedAttempt(job, record, (), ())


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
        key=job.identity.key,
        key_parts=job.identity.parts,
        grading_key=job.identity.grading_key,
        tools_key=job.identity.tools,
        trace=trace,
        agreement=agreement(
            trace, so_far.entries, job.target.tools_behind_proxy, doubt=so_far.doubt
        ),
        tries=tuple(so_far.tries),
        trial_id=job.trial_id,
        outcome=so_far.live.outcome,
        cleanup_error=so_far.live.cleanup_error,
    )


def store_outcomes(
    writer: RunWriter,
    record: AttemptRecord,
    outcomes: Sequence[GradeOutcome],
    *,
    always: bool = False,
) -> AttemptRecord:
    """Write scores down; what could not run is said in the trial's own file.

    Args:
        writer: the run's writer.
        record: the trial.
        outcomes: what its graders said.
        always: write the trial's own file too, whatever they said; it comes last.

    Raises:
        StoreError: the files could not be written.

    """
    writer.scores(record.id, outcomes)
    failures = [
        f"{outcome.grader}: {outcome.reason}"
        for outcome in outcomes
        if isinstance(outcome, GraderFailure)
    ]
    if failures or always:
        earlier = [record.grading_error] if record.grading_error else []
        record = replace(record, grading_error="\n".join([*earlier, *failures]) or None)
        writer.attempt(record)
    return record


def trial_facts(
    job: AttemptJob,
    record: AttemptRecord,
    ending: Trial,
    entries: tuple[WriteEntry, ...],
    modes: Mapping[str, WriteMode],
    *,
    direct: frozenset[str] | None = None,
) -> TrialFacts:
    """Return what graders see of a trial.

    Args:
        job: the attempt.
        record: the trial.
        ending: how it ended.
        entries: its write record.
        modes: of the servers, as it was collected.
        direct: the labels of the servers without a proxy then; those of today by default.

    """
    assert record.trace is not None  # a trial has a trace
    assert record.agreement is not None
    return TrialFacts(
        case=filled_case(job.case, record.trial_id),
        ending=ending,
        trace=record.trace,
        writes=entries,
        agreement=record.agreement,
        modes=modes,
        declared_writes=job.declared_writes,
        direct=job.target.direct if direct is None else direct,
        trial_id=record.trial_id,
        outcome=record.outcome,
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
