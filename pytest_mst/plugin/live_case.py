"""What the fixtures of a Python case hand out: a finished trial, or an attempt under way."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Generator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.attempt.trial_view import FinishedTrial, WriteRecord
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import (
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Trial,
)
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.failure_class import FailurePhase
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.plugin.body import NotATrial, failure_before_end, is_assertion
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.session import EvalSession
from pytest_mst.proxy.record import ObservedCall
from pytest_mst.proxy.relay_front import RelayCommand


def finished_trial(session: EvalSession, case: CaseItem) -> FinishedTrial:
    """Wait for the attempt of the trial under way and hand it out.

    Raises:
        NotATrial: there is nothing to grade, so that the body does not run.

    """
    assert case.target is not None
    case.finished = session.engine.get(case.job(case.trial, case.target))
    if case.finished is None or not isinstance(case.finished.record.ending, Trial):
        raise NotATrial
    return FinishedTrial(case.finished.record, case.finished.writes, case.looked)


class InputRun(Awaitable[FinishedTrial]):
    """One input to run: nothing happens until it is awaited."""

    def __init__(self, conversation: Conversation, text: str | None) -> None:
        self._conversation = conversation
        self._text = text
        self.awaited = False

    def __await__(self) -> Generator[Any, Any, FinishedTrial]:
        """Run the input in the background loop, and wait for it without blocking this one."""
        self.awaited = True
        return self._run().__await__()

    async def _run(self) -> FinishedTrial:
        return await self._conversation.run_here(self._text)


class Conversation:
    """Runs inputs in the case's attempt; repeated calls continue one conversation."""

    def __init__(self, live: LiveCase) -> None:
        self._live = live
        self.started: list[InputRun] = []

    def __repr__(self) -> str:
        """Show how far it has come, as a failing test prints it."""
        return f"<conversation, inputs given: {len(self.started)}>"

    def run(self, input: str | None = None) -> InputRun:
        """Give the client an input; await the result.

        Args:
            input: as a user would say it; the marker's own where there is none.

        Returns:
            What to await for the trial so far: its answer, trace and writes.

        Raises:
            InfrastructureError: the input did not end in a trial.

        """
        self.started.append(InputRun(self, input))
        return self.started[-1]

    def run_sync(self, input: str | None = None) -> FinishedTrial:
        """Do as `run`, in a test function that is not async.

        Raises:
            InfrastructureError: the input did not end in a trial.

        """
        return self._live.run(input)

    async def run_here(self, text: str | None) -> FinishedTrial:
        """Run an input in the background loop; wait for it in this one, without blocking it."""
        return self._live.view(await asyncio.wrap_future(self._live.start(text)))


class LiveCase:
    """An attempt under way for a test body."""

    def __init__(self, session: EvalSession, case: CaseItem) -> None:
        assert case.target is not None
        self.session = session
        self.case = case
        self.conversation = Conversation(self)
        job = case.attempt(case.trial, case.target)
        engine = session.engine
        self._attempt: LiveAttempt = engine.call(
            _made, job, engine.hub, case.run.writer, case.run.rules
        )
        self._acting: concurrent.futures.Future[Any] | None = None
        """The input that is being run."""

    def open(self) -> None:
        """Open the boundary.

        Raises:
            InfrastructureError: a server cannot be used.

        """
        if self.case.run.rules.is_stopped(self.case.attempt_id(self.case.trial)):
            raise NotATrial  # unstarted, as a gate closed since its fixtures were set up
        self.session.engine.cut_body_short = self.cut_short
        try:
            self.session.engine.hold(self._attempt.serve)
        except InfrastructureError as error:
            self.session.engine.cut_body_short = None
            self.case.finished = self.session.store_failure(self.case, error.failure, error)
            raise NotATrial from error

    @property
    def boundary(self) -> Any:
        """The open boundary."""
        assert self._attempt.boundary is not None
        return self._attempt.boundary

    def start(self, text: str | None) -> concurrent.futures.Future[AttemptRecord]:
        """Start an input in the background loop."""
        self._acting = self.session.engine.start(self._attempt.run, text)
        return self._acting

    def run(self, text: str | None) -> FinishedTrial:
        """Run an input in the background loop, and return what there is after it."""
        return self.view(self.session.engine.wait_for(self.start(text)))

    def view(self, record: AttemptRecord) -> FinishedTrial:
        """Return the attempt so far as the body sees it."""
        return FinishedTrial(record, self.boundary.entries, self.case.looked)

    def finish(self) -> None:
        """Close the boundary and store the attempt, with what the body's errors say of it."""
        raised, when = self.case.raised, self.case.errors[0][0] if self.case.errors else "call"
        engine = self.session.engine
        if raised is None and not self.case.body_ended:
            self.cut_short()
            return
        engine.cut_body_short = None
        self._let_go()
        if isinstance(raised, pytest.skip.Exception) and not self._attempt.ran_client:
            engine.call(self._attempt.withdraw)  # its case is skipped: nothing is to be counted
            return
        phase: FailurePhase = "setup" if when == "setup" else "body"
        failure = self._failure(when, raised)
        self.case.finished = engine.call(self._attempt.finish, failure, phase, raised)

    def cut_short(self) -> None:
        """Store that the run was stopped in the middle of the attempt; once."""
        if self.case.finished is not None:
            return
        engine = self.session.engine
        engine.cut_body_short = None
        self._let_go()
        self.case.finished = engine.call(self._attempt.cut_short)

    def _let_go(self) -> None:
        """Cut an input short that the body has stopped waiting for."""
        if self._acting is not None and not self._acting.done():
            self._acting.cancel()
            self.session.engine.call(self._attempt.acting_ended)

    def _failure(self, when: str, raised: BaseException | None) -> InfrastructureFailure | None:
        unawaited = [one for one in self.conversation.started if not one.awaited]
        if unawaited and not self._attempt.ran_client:
            return InfrastructureFailure(
                Broke.SETUP,
                "`mst.run(...)` was never awaited, so that the client never ran; write "
                "`await mst.run(...)` in an async test, or `mst.run_sync(...)`",
                retryable=False,
                accepted=False,
            )
        if raised is None or self._attempt.ran_client:
            return None
        body_is_client = when == "call" and "mst" not in self.case.fixtures
        if body_is_client and is_assertion(raised):
            return None
        return failure_before_end(raised, body_is_client=body_is_client)


async def _made(*args: Any) -> LiveAttempt:
    return LiveAttempt(*args)


class ProxyView:
    """The dry-run proxy of one attempt, from a test body."""

    def __init__(self, case: CaseItem, live: LiveCase | None, calls: list[ObservedCall]) -> None:
        self._case = case
        self._live = live
        self._calls = calls

    def __repr__(self) -> str:
        """Show the servers behind it, as a failing test prints it."""
        target = self._case.target
        return f"<dry-run proxy of {', '.join(target.servers) if target else 'no server'}>"

    @property
    def calls(self) -> list[ObservedCall]:
        """Every tool call that reached the proxy, in order; reads too."""
        self._case.looked.note(Evidence.REQUESTED)
        return self._calls

    def call(
        self, server: str, tool: str, arguments: JsonObject | None = None
    ) -> Mapping[str, Any]:
        """Call a tool through the proxy and return the raw `tools/call` result.

        Raises:
            ToolCallError: the call got a protocol error.
            InfrastructureError: the attempt cannot go on.

        """
        live = self._open()
        self._case.looked.note(Evidence.CALLED)  # the body has the result in hand
        return live.session.engine.submit(live.boundary.call_tool, server, tool, arguments)

    def transport(self, server: str) -> AbstractAsyncContextManager[Any]:
        """Return an in-memory MCP transport, for `mcp.Client(dry_run_proxy.transport("chat"))`."""
        from pytest_mst.proxy.bridge import bridged_transport

        live = self._open()
        self._case.looked.note(Evidence.CALLED)  # its client has the results in hand
        return bridged_transport(live.session.engine.portal, live.boundary, server)

    def url(self, server: str) -> str:
        """Return the address of one server behind the proxy, for a program of the body's own.

        It speaks streamable HTTP on loopback until the attempt ends. Whoever knows it is let in:
        hand it over in the program's environment or on its standard input, not in its arguments,
        which other users of the machine can see.

        Raises:
            KeyError: there is no server of that label.

        """
        live = self._open()
        self._case.looked.note(Evidence.CALLED)  # what the program says comes back to the body
        url: str = live.session.engine.submit(live.boundary.url, server)
        return url

    def command(self, server: str) -> RelayCommand:
        """Return a command that is one server, for programs that start their servers themselves.

        Its `env` is to be added to the program's own.

        Raises:
            KeyError: there is no server of that label.

        """
        live = self._open()
        self._case.looked.note(Evidence.CALLED)  # as with `url`
        command: RelayCommand = live.session.engine.submit(live.boundary.command, server)
        return command

    def _open(self) -> LiveCase:
        if self._live is None:
            msg = "this attempt has ended; without the fixture `trial` the proxy is open"
            raise RuntimeError(msg)
        return self._live


def proxy_view(request: pytest.FixtureRequest, case: CaseItem) -> ProxyView:
    """Return the proxy of the attempt: open, or of the finished trial."""
    if case.run_by == "engine":
        request.getfixturevalue("trial")
        assert case.finished is not None
        return ProxyView(case, None, list(case.finished.calls))
    live: LiveCase = request.getfixturevalue("_mst_live")
    return ProxyView(case, live, live.boundary.calls)


def write_record_view(request: pytest.FixtureRequest, case: CaseItem) -> WriteRecord:
    """Return the write record of the attempt, as it grows or as it was."""
    if case.run_by == "engine":
        finished: FinishedTrial = request.getfixturevalue("trial")
        return finished.writes
    live: LiveCase = request.getfixturevalue("_mst_live")
    return WriteRecord(live.boundary.entries, case.looked)
