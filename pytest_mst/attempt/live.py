"""An attempt whose client is run from outside: by a test body, step by step."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio

from pytest_mst.attempt.collect import (
    CUT_SHORT,
    Clock,
    FinishedAttempt,
    SoFar,
    deadline_passed,
    ending_of,
    not_stored,
    record_of,
    store_attempt,
)
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.clients.client import ClientRequest, TraceLog
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Ending, InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter


class LiveAttempt:
    """One attempt under way, its boundary open until it is finished.

    The boundary is entered and left in one task of its own, as its tasks need.
    """

    def __init__(self, job: AttemptJob, hub: Hub, writer: RunWriter) -> None:
        self._job = job
        self._hub = hub
        self._writer = writer
        self._clock = Clock()
        self._so_far = SoFar(TraceLog(servers=tuple(job.target.servers)))
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
            self._writer.begun(self._job.id, self._job.locator)
        except StoreError as error:
            raise InfrastructureError.of(not_stored(error)) from error
        try:
            await self._hold_open(task_status)
        finally:
            self._closed.set()

    async def _hold_open(self, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with AsyncExitStack() as stack:
            sink = stack.enter_context(self._writer.write_sink(self._job.id))
            boundary = await stack.enter_async_context(
                self._hub.open_attempt(self._job.target.servers, sink, trial_id=self._job.trial_id)
            )
            self._so_far.entries, self._so_far.calls = boundary.entries, boundary.calls
            self.boundary = boundary
            task_status.started()
            await self._done.wait()

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
        )
        self._inputs += 1
        self._acting += 1
        try:
            self._ending = _of_both(self._ending, await self._end_of(request, self.boundary))
        finally:
            self._acting -= 1
            self._still.set()
        if isinstance(self._ending, InfrastructureFailure):
            raise InfrastructureError.of(self._ending)
        return record_of(self._job, self._so_far, self._ending, self._clock)

    async def _end_of(self, request: ClientRequest, boundary: Boundary) -> Ending:
        with anyio.move_on_after(self._job.timeout_s):
            return await ending_of(self._job.target.client, request, boundary)
        return deadline_passed(self._job)

    async def finish(self, failure: InfrastructureFailure | None) -> FinishedAttempt:
        """Close the boundary, grade what can be, and store all of it.

        Args:
            failure: why the attempt is no trial, where the body says so. What the boundary
                lost, or how the client ended, comes first.

        """
        await self._close()
        lost = self.boundary.lost if self.boundary is not None else None
        if self._ending is None:  # no `mst.run`: the body is the client
            self._so_far.log.evidence = "observed"
        ending: Ending = lost.failure if lost is not None else self._ending or failure or Trial()
        return store_attempt(self._job, self._writer, self._so_far, ending, self._clock)

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
        return store_attempt(self._job, self._writer, self._so_far, CUT_SHORT, self._clock)


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
