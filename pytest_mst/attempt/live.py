"""An attempt whose client is run from outside: by a test body, step by step."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial

import anyio

from pytest_mst.attempt.again import clear_away, is_made, put_back
from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.collect import CUT_SHORT, deadline_passed, ending_of
from pytest_mst.attempt.direct import listed_for
from pytest_mst.attempt.finished import FinishedAttempt, not_stored, record_of, store_attempt
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.live_steps import LiveSteps
from pytest_mst.attempt.retry import Tried, Tries
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.attempt.shared_connection import NOT_FROM_A_BODY
from pytest_mst.attempt.so_far import SoFar
from pytest_mst.clients.client import ClientRequest, shares_connection
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Ending, InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.failure_class import FailurePhase
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter


class LiveAttempt:
    """One attempt under way, its boundary open until it is finished.

    The boundary is entered and left in one task of its own, as its tasks need.
    """

    def __init__(
        self, job: AttemptJob, hub: Hub, writer: RunWriter, rules: RunRules = NO_RULES
    ) -> None:
        self._job = job
        self._hub = hub
        self._writer = writer
        self._rules = rules
        self._clock = Clock()
        self._tries = Tries(job, writer, rules, self._clock)
        self._so_far = SoFar.before(job, self._tries.made)
        self._done = anyio.Event()
        self._closed = anyio.Event()
        self._acting = 0
        self._still = anyio.Event()
        self._inputs = 0
        self._ending: Ending | None = None
        self.boundary: Boundary | None = None

    @property
    def ran_client(self) -> bool:
        """Whether an input was run and ended."""
        return self._ending is not None

    async def serve(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Hold the boundary open until `finish` is called.

        Raises:
            InfrastructureError: a server cannot be used, or the attempt cannot be written down.

        """
        if self._job.target.failure is not None:
            raise InfrastructureError.of(self._job.target.failure)
        try:
            if not is_made(self._job, self._writer):
                clear_away(self._job, self._writer)
            self._writer.begun(self._job.id, self._job.locator)
        except StoreError as error:
            raise InfrastructureError.of(not_stored(error)) from error
        steps = LiveSteps(self._job, self._hub, self._writer, self._clock, self._so_far.live)
        try:
            ending = await steps.around(partial(self._hold_open, task_status))
        except StoreError as error:
            raise InfrastructureError.of(not_stored(error)) from error
        finally:
            self._closed.set()
        if self.boundary is None and isinstance(ending, InfrastructureFailure):
            raise InfrastructureError.of(ending)

    async def _hold_open(self, task_status: anyio.abc.TaskStatus[None]) -> Ending:
        async with AsyncExitStack() as stack:
            sink = stack.enter_context(self._writer.write_sink(self._job.id))
            boundary = await stack.enter_async_context(
                self._hub.open_attempt(self._job.target.servers, sink, trial_id=self._job.trial_id)
            )
            self._so_far.entries, self._so_far.calls = boundary.entries, boundary.calls
            self._so_far.direct = await listed_for(self._job, boundary, self._rules.listings)
            self.boundary = boundary
            task_status.started()
            await self._done.wait()
        return self._ending or Trial()

    async def run(self, text: str | None) -> AttemptRecord:
        """Give the client an input, and return the attempt so far. Again: the conversation goes on.

        Args:
            text: the input; the case's own where there is none.

        Raises:
            InfrastructureError: the input did not end in a trial.

        """
        assert self.boundary is not None
        request = ClientRequest(
            input=self._job.input if text is None else text,
            trial=self._job.id.trial,
            trial_id=self._job.trial_id,
            model=self._job.model,
            options=self._job.options,
            tools=self.boundary,
            trace=self._so_far.log,
            session=self.boundary,
            turn=self._inputs,
            turns=self._tries,
            pricing=self._job.target.pricing,
        )
        self._inputs += 1
        self._acting += 1
        try:
            ending = await self._end_of(request, self.boundary)
            if isinstance(ending, InfrastructureFailure):
                ending = self._judged(ending, "client", self._so_far.error)
            self._ending = _of_both(self._ending, ending)
        finally:
            self._acting -= 1
            self._still.set()
        if isinstance(self._ending, InfrastructureFailure):
            raise InfrastructureError.of(self._ending)
        return record_of(self._job, self._so_far, self._ending, self._clock)

    async def _end_of(self, request: ClientRequest, boundary: Boundary) -> Ending:
        if shares_connection(self._job.target.client):
            return NOT_FROM_A_BODY
        before, calls_before = request.trace.copy(), len(boundary.calls)

        async def once(number: int) -> Tried:
            if number:
                self._so_far.log = before.copy()  # a try that failed leaves nothing in it
            asked = replace(request, trace=self._so_far.log, attempt_try=number)
            tried = await ending_of(self._job.target.client, asked, boundary)
            self._so_far.error = tried.error
            return tried

        with anyio.move_on_after(self._job.timeout_s) as deadline:
            held = await self._tries.after_others(deadline)
            return held or await self._tries.run(once, deadline)
        quiet = self._so_far.log == before and len(boundary.calls) == calls_before
        failing = self._so_far.log.failing
        return deadline_passed(self._job, self._tries, quiet=quiet, failing=failing)

    async def finish(
        self,
        failure: InfrastructureFailure | None,
        phase: FailurePhase = "body",
        raised: BaseException | None = None,
    ) -> FinishedAttempt:
        """Close the boundary, grade what can be, and store all of it.

        Args:
            failure: why the attempt is no trial, where the body says so. What the boundary
                lost, or how the client ended, comes first.
            phase: where it is said: in the body, or in a fixture before it.
            raised: the exception that it was told from.

        """
        await self._close()
        if self._ending is None:  # no `mst.run`: the body is the client
            self._so_far.log.evidence = "observed"
        ending = self._ending_with(failure, phase, raised)
        return await self._store(ending)

    def _ending_with(
        self,
        failure: InfrastructureFailure | None,
        phase: FailurePhase,
        raised: BaseException | None,
    ) -> Ending:
        if isinstance(self._ending, InfrastructureFailure):
            return self._ending  # judged when the input ended
        lost = self.boundary.lost if self.boundary is not None else None
        if lost is not None:
            return self._judged(lost.failure, "client", lost)
        if self._ending is None and failure is not None:
            return self._judged(failure, phase, raised)
        ending = self._so_far.checked(self._job, self._ending or Trial())
        if isinstance(ending, InfrastructureFailure):
            return self._judged(ending, "client", None)
        return ending

    def _judged(
        self, failure: InfrastructureFailure, phase: FailurePhase, raised: BaseException | None
    ) -> InfrastructureFailure:
        self._so_far.error = None
        return self._rules.judged(self._job.id, failure, phase, raised)

    async def withdraw(self) -> None:
        """Close the boundary, and leave what was stored before the attempt began as it was.

        What it wrote meanwhile is put aside.
        """
        await self._close()
        with suppress(StoreError):  # then it is one that began and did not end
            put_back(self._job, self._writer)
            self._writer.withdrawn(self._job.id, self._job.locator)

    async def acting_ended(self) -> None:
        """Wait until no input is being run any more."""
        while self._acting:
            self._still = anyio.Event()
            await self._still.wait()

    async def _close(self) -> None:
        """Close the boundary: what is under way through it ends before anything is stored."""
        self._done.set()
        if self.boundary is not None:
            await self._closed.wait()

    async def cut_short(self) -> FinishedAttempt:
        """Store that the run was stopped in the middle of the attempt."""
        await self._close()
        return await self._store(CUT_SHORT)

    async def _store(self, ending: Ending) -> FinishedAttempt:
        return await store_attempt(
            self._job, self._writer, self._so_far, ending, clock=self._clock, rules=self._rules
        )


def _of_both(earlier: Ending | None, later: Ending) -> Ending:
    """Return how a conversation ended: what went wrong in an input is not undone by the next."""
    match earlier, later:
        case InfrastructureFailure(), _:
            return earlier
        case Trial(), Trial():
            return Trial(
                client_error=earlier.client_error or later.client_error,
                stopped_by=earlier.stopped_by or later.stopped_by,
            )
        case _:
            return later
