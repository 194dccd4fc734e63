"""One attempt from its start to its stored record."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from functools import partial

import anyio

from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.direct import listed_for
from pytest_mst.attempt.finished import FinishedAttempt, not_stored, store_attempt
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.live_steps import LiveSteps
from pytest_mst.attempt.retry import Away, Tried, Tries
from pytest_mst.attempt.retry_policy import hint_of, unanswered
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.attempt.so_far import SoFar
from pytest_mst.attempt.unexpected import failure_of, proxy_failure, retry_of
from pytest_mst.attempt.way_in import WayIn, way_in
from pytest_mst.clients.client import Client, ClientRequest, TraceLog
from pytest_mst.clients.ground_truth import without_servers
from pytest_mst.clients.limits import cut_off_while, run_within_limits
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.retry import RetryHint
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.shared_boundary import Part
from pytest_mst.store.append import RunWriter


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

    async def finish(ending: Ending) -> FinishedAttempt:
        with suppress(StoreError):  # the connection's record has it
            so_far.take_share()
        return await store_attempt(job, writer, so_far, ending, clock=clock, rules=rules)

    if job.target.failure is not None:  # of every attempt of the variant alike: no gate to close
        return await finish(rules.heard(job.target.failure, "setup", None))
    try:
        writer.begun(job.id, job.locator)
        act = partial(_within_deadline, job, hub, writer, so_far, rules, tries=tries)
        ending = await LiveSteps(job, hub, writer, clock, so_far.live).around(act)
        with clock.paused():
            await so_far.share_known(ending, away)
    except StoreError as error:
        return await finish(rules.judged(job.id, not_stored(error), "collection", error))
    except anyio.get_cancelled_exc_class():
        await finish(CUT_SHORT)
        raise
    if isinstance(ending, InfrastructureFailure):
        raised, so_far.error = so_far.error, None  # let go: it holds on to all it came through
        ending = rules.judged(job.id, ending, so_far.phase, raised)
    return await finish(ending)


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
    so_far = SoFar.before(job)
    return await store_attempt(job, writer, so_far, failure, clock=Clock(), rules=rules)


CUT_SHORT = InfrastructureFailure(
    Broke.COLLECTION, "the attempt was cut short because the run was stopped", retryable=True
)


async def _within_deadline(
    job: AttemptJob, hub: Hub, writer: RunWriter, so_far: SoFar, rules: RunRules, *, tries: Tries
) -> Ending:
    with anyio.move_on_after(job.timeout_s) as deadline:
        ending = await _act(job, hub, writer, so_far, rules, tries=tries, deadline=deadline)
    if deadline.cancelled_caught:
        quiet = not so_far.calls and so_far.log == TraceLog(servers=so_far.log.servers)
        return deadline_passed(job, tries, quiet=quiet, failing=so_far.log.failing)
    return so_far.checked(job, ending)


def deadline_passed(
    job: AttemptJob, tries: Tries, *, quiet: bool, failing: InfrastructureFailure | None = None
) -> InfrastructureFailure:
    """Return the ending of an attempt that our deadline cut off.

    Args:
        job: the attempt.
        tries: its tries.
        quiet: nothing was seen of the client in the last one, so that what the endpoint said
            to the one before is the last that is known of it.
        failing: what was failing around the client when it was cut off.

    """
    if failing is not None:
        return cut_off_while(failing, f"the deadline (`timeout`) came after {job.timeout_s:g} s")
    refused = tries.refused_turn or (tries.last_answer if quiet else None)
    if refused is not None:
        return unanswered(refused, job.timeout_s)
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
            once = partial(_run_client, job, way, so_far, tries)
            ending = await tries.run(once, deadline)
    except Exception as error:  # noqa: BLE001 - around one attempt: whatever it is, it ends it
        ending = proxy_failure(error)
        so_far.error = error
    return ending


async def _run_client(
    job: AttemptJob, way: WayIn, so_far: SoFar, tries: Tries, number: int
) -> Tried:
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
        turns=tries,
        pricing=job.target.pricing,
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
        ending = without_servers(request) or ending
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
