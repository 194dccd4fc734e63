"""What an item that is an eval case carries: the case, its run, and what it is put to."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import pytest

from pytest_mst.attempt.collect import FinishedAttempt
from pytest_mst.attempt.job import AttemptJob, Target
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.trial_view import Looked
from pytest_mst.domain.case import Case
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.plan import PlannedCase
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.grading.grader import Grader
from pytest_mst.grading.select import graders_of
from pytest_mst.plugin.crew import Order
from pytest_mst.plugin.engine import Job
from pytest_mst.plugin.eval_run import EvalRun

TARGET_FIXTURES = ("mst_config", "mst_servers", "mst_client")
"""What a conftest may override to say what cases are put to."""

RunBy: TypeAlias = Literal["engine", "body"]
"""Who starts the client: the engine, ahead of pytest's loop, or the test body itself."""


@dataclass(slots=True)
class CaseItem:
    """One case by one variant, as one pytest item."""

    run: EvalRun
    variant: Variant
    case: Case
    dataset: str
    trials: int
    pass_threshold: float
    timeout_s: float
    prepared: PreparedEval | None
    target: Target | None
    """What the case is put to; `None` until its own fixtures have said so."""
    judges: tuple[object, ...] = ()
    has_body: bool = False
    """A Python case: its test body grades too."""
    run_by: RunBy = "engine"
    declared_writes: bool = False
    shared_key: Hashable | None = None
    """Equal for items whose fixtures give them one target; `None` for a target of its own."""
    fixtures: frozenset[str] = frozenset()
    """The fixtures it asks for, directly or through others."""
    may_skip: bool = False
    """A mark or a fixture may still skip it, so that it is not run ahead."""
    trial: int = 0
    """The trial under way, 0-based."""
    errors: list[tuple[str, pytest.ExceptionInfo[BaseException]]] = field(default_factory=list)
    """What the phases of the trial under way raised."""
    body_ended: bool = False
    """The body of the trial under way has returned or raised; not so where it was interrupted."""
    looked: Looked = field(default_factory=Looked)
    """What the body has looked at in the trial under way."""
    _graders: tuple[Grader, ...] | None = None
    finished: FinishedAttempt | None = None
    """The attempt of the trial under way, once it has ended."""

    @property
    def raised(self) -> BaseException | None:
        """What set-up or call of the trial under way raised first; tearing down is apart."""
        return next((one.value for when, one in self.errors if when != "teardown"), None)

    def begin_trial(self, trial: int) -> None:
        """Forget the last trial's state."""
        self.trial, self.errors, self.body_ended = trial, [], False
        self.looked, self.finished = Looked(), None

    def attempt_id(self, trial: int) -> AttemptId:
        """Return the id of one of the case's attempts."""
        return AttemptId(self.variant.name, self.case.id, trial)

    def locator(self, trial: int) -> str:
        """Return the short name of one of the case's attempts."""
        return locator(self.run.run_id, self.attempt_id(trial))

    def job(self, trial: int, target: Target) -> Job:
        """Return one attempt to make; what it takes is put together when it is ordered."""
        key = (self.run.run_id, self.attempt_id(trial))
        return Job(key, lambda: Order(self.attempt(trial, target), self.run.writer))

    def attempt(self, trial: int, target: Target) -> AttemptJob:
        """Return everything that is known of one attempt before it begins."""
        if self._graders is None:
            self._graders = graders_of(self.case, self.judges)
        return AttemptJob(
            id=self.attempt_id(trial),
            locator=self.locator(trial),
            case=self.case,
            dataset=self.dataset,
            target=target,
            timeout_s=self.timeout_s,
            graders=self._graders,
            declared_writes=self.declared_writes,
            has_body=self.has_body,
        )

    def planned(self) -> PlannedCase:
        """Return the case as its run's plan holds it."""
        return PlannedCase(
            variant=self.variant.name,
            case=self.case.id,
            dataset=self.dataset,
            trials=self.trials,
            pass_threshold=self.pass_threshold,
            skip=self.case.skip,
            write_case=self.case.expected.writes is not None or self.declared_writes,
            unguarded=self.target is not None and self.target.unguarded,
        )
