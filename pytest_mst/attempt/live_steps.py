"""The life of a live attempt around its client: seeded before, read and cleaned up after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.to_thread

from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.live_plan import LivePlan
from pytest_mst.domain.case import OutcomeCheck
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Scope, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.eval_config import ServerStep
from pytest_mst.domain.outcome import OutcomeReading
from pytest_mst.domain.placeholder import filled
from pytest_mst.grading.found import CannotTellError, result_text
from pytest_mst.grading.outcome import filled_check, problems
from pytest_mst.grading.shown import shown, shown_call
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.own_connection import OwnCallError
from pytest_mst.store.append import RunWriter
from pytest_mst.store.debts import Debt

STEP_LIMIT_S: Final = 30.0
"""How long one step, or one read, may take, where the server's `callTimeoutMs` is not shorter."""
CLEANUP_LIMIT_S: Final = 30.0
"""How long the cleanup of one attempt may take in all."""
CUT_SHORT_LIMIT_S: Final = 10.0
"""How long it may take where the run was stopped, and somebody waits for that."""
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 1.0


@dataclass(slots=True)
class LiveFacts:
    """What came of the calls around a client."""

    outcome: tuple[OutcomeReading, ...] = ()
    """What was read for the outcome checks, in their order."""
    cleanup_error: str | None = None
    """Why something that the attempt wrote may still be there."""


@dataclass(slots=True)
class LiveSteps:
    """The calls of our own around one attempt; none where it is not live.

    None of them counts towards the attempt's duration or its deadline: each has a limit of its own.
    """

    job: AttemptJob
    hub: Hub
    writer: RunWriter
    clock: Clock
    facts: LiveFacts = field(default_factory=LiveFacts)

    async def around(self, act: Callable[[], Awaitable[Ending]]) -> Ending:
        """Set up, let the client act, read the outcome of a trial, and clean up in any case.

        That the attempt owes its cleanup is in the journal before the first step, so that it can
        be made up for when this process is killed.

        Args:
            act: lets the client act, and says how that ended.

        Returns:
            How the attempt ended; a step of the set-up that failed is a setup failure, and the
            client does not act.

        Raises:
            StoreError: it cannot be noted what the attempt owes; nothing was done.

        """
        live = self.job.target.live
        if live is None:
            return await act()
        self.writer.owes(self.job.id, self.job.locator, self.job.trial_id)
        limit_s = CLEANUP_LIMIT_S
        try:
            with self.clock.paused():
                failure = await self._set_up(live)
            ending = failure or await act()
            if isinstance(ending, Trial):
                with self.clock.paused():
                    self.facts.outcome = await self._read(live)
        except anyio.get_cancelled_exc_class():
            limit_s = CUT_SHORT_LIMIT_S
            raise
        finally:
            with self.clock.paused():
                self.facts.cleanup_error = await self._clean_up(live, limit_s)
        return ending

    async def _set_up(self, live: LivePlan) -> InfrastructureFailure | None:
        for number, step in enumerate(live.setup, 1):
            try:
                await run_step(self.hub, live, step, self.job.trial_id)
            except OwnCallError as error:
                which = f"{number} of {len(live.setup)}" if len(live.setup) > 1 else str(number)
                return InfrastructureFailure(
                    Broke.SETUP,
                    f"setup step {which}, {_shown_step(step, self.job.trial_id)}: {error.reason}",
                    retryable=error.retryable,
                    scope=error.scope,
                    accepted=False,
                    detail=error.detail,
                )
        return None

    async def _read(self, live: LivePlan) -> tuple[OutcomeReading, ...]:
        checks = self.job.case.expected.outcome or ()
        return tuple(
            [
                await self._read_until_it_holds(live, filled_check(one, self.job.trial_id))
                for one in checks
            ]
        )

    async def _read_until_it_holds(self, live: LivePlan, check: OutcomeCheck) -> OutcomeReading:
        """Read for one check, again and again until it holds or its time is up."""
        start_s, pause_s, tries = anyio.current_time(), _FIRST_PAUSE_S, 0
        while True:
            tries += 1
            result, error = await self._read_once(live, check)
            now_s = anyio.current_time()
            reading = OutcomeReading(
                server=check.server,
                tool=check.tool,
                arguments=check.arguments,
                result=result,
                error=error,
                tries=tries,
                waited_ms=round((now_s - start_s) * 1000),
            )
            left_s = start_s + check.within_ms / 1000 - now_s
            if left_s <= 0 or await anyio.to_thread.run_sync(_holds, check, reading):
                return reading
            await anyio.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _read_once(
        self, live: LivePlan, check: OutcomeCheck
    ) -> tuple[Mapping[str, Any] | None, str | None]:
        spec = live.specs[check.server]
        try:
            result = await self.hub.call_own(
                spec, check.tool, check.arguments, limit_s=STEP_LIMIT_S
            )
        except OwnCallError as error:
            return None, error.reason
        return result, None

    async def _clean_up(self, live: LivePlan, limit_s: float) -> str | None:
        error = await clean_up(self.hub, live, self.job.trial_id, limit_s)
        owed = Debt(self.job.id, self.job.locator, self.job.trial_id)
        return note_cleanup(self.writer, owed, error)


async def clean_up(hub: Hub, live: LivePlan, trial_id: str, limit_s: float) -> str | None:
    """Take the cleanup steps of one attempt, all of them, whatever one of them comes to.

    Nobody's cancellation reaches them.

    Args:
        hub: the servers' connections.
        live: the steps.
        trial_id: of the attempt.
        limit_s: how long they may take in all.

    Returns:
        What went wrong, in one line; `None` where nothing did.

    """
    problems_met: list[str] = []
    step: ServerStep | None = None
    with anyio.move_on_after(limit_s, shield=True) as limit:
        for step in live.cleanup:
            try:
                await run_step(hub, live, step, trial_id)
            except OwnCallError as error:
                problems_met.append(f"{_shown_step(step, trial_id)}: {error.reason}")
    if limit.cancelled_caught and step is not None:
        problems_met.append(f"{_shown_step(step, trial_id)}: not ended after {limit_s:g} s in all")
    return "; ".join(problems_met) or None


def note_cleanup(writer: RunWriter, owed: Debt, error: str | None) -> str | None:
    """Note in the journal what came of a cleanup, and return why it is still owed, if it is.

    Args:
        writer: of the run.
        owed: what was to be cleaned up after.
        error: what went wrong; `None` where nothing did.

    """
    try:
        if error is None:
            writer.paid(owed.id, owed.locator, owed.trial_id)
        else:
            writer.owes(owed.id, owed.locator, owed.trial_id, error)
    except StoreError as problem:
        return error or f"it was cleaned up, and that could not be noted: {problem}"
    return error


async def run_step(hub: Hub, live: LivePlan, step: ServerStep, trial_id: str) -> None:
    """Take one step, with the attempt's id in its arguments.

    Raises:
        OwnCallError: there was no result, or it says that it is an error.

    """
    result = await hub.call_own(
        live.specs[step.server], step.tool, filled(step.arguments, trial_id), limit_s=STEP_LIMIT_S
    )
    if result.get("isError") is True:
        reason = f"the tool answered with an error: {shown(result_text(result))}"
        raise OwnCallError(reason, retryable=False, scope=Scope.TRIAL)


def _shown_step(step: ServerStep, trial_id: str) -> str:
    return shown_call(step.server, step.tool, filled(step.arguments, trial_id))


def _holds(check: OutcomeCheck, reading: OutcomeReading) -> bool:
    try:
        return not problems(check, reading)
    except CannotTellError:
        return False  # what could not be read may be read the next time
