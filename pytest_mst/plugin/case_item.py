"""What an item that is an eval case carries: the case, its run, and what it is put to."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.function_judge import FunctionJudge, JudgeFunction
from pytest_mst.attempt.identity import identity_of
from pytest_mst.attempt.job import BODY, Again, AttemptJob, Target
from pytest_mst.attempt.judges import Judge, judges_of
from pytest_mst.attempt.preflight import Preflight, setup_key
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.trial_view import Looked
from pytest_mst.domain.case import Case
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.identity import Identity
from pytest_mst.domain.plan import PlannedCase
from pytest_mst.domain.resumption import Step
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
    preflight: Preflight = field(default_factory=dict)
    """What was found not to work before the first attempt, by `setup_key`."""
    judge_entries: tuple[object, ...] = ()
    """The judges of the eval or the variant, as they are written."""
    registered_judges: Mapping[str, JudgeFunction] = field(default_factory=dict)
    """By name: those that entries can name by their type."""
    has_body: bool = False
    """A Python case: its test body grades too."""
    body: str | None = None
    """The source of the test body, in a form that formatting and markers do not change."""
    target_source: str | None = None
    """What makes the target where the case's own fixtures do: their source, and what they get."""
    listed_by: Target | None = None
    """What its own fixtures replace the client of, and nothing else: its tools are the case's."""
    again: dict[int, Again] = field(default_factory=dict)
    """By trial: what becomes of it, where the run is taken up again."""
    is_in_ledger: bool = False
    """Something is stored of it in a run that is taken up, so that it counts if it is skipped."""
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
    _judges: tuple[Judge, ...] | None = None
    _identity: Identity | None = None
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

    @property
    def attempt_ids(self) -> Iterator[AttemptId]:
        """The ids of all of its attempts, in order."""
        return map(self.attempt_id, range(self.trials))

    def locator(self, trial: int) -> str:
        """Return the short name of one of the case's attempts."""
        return locator(self.run.run_id, self.attempt_id(trial))

    def job(self, trial: int, target: Target) -> Job:
        """Return one attempt to make; what it takes is put together when it is ordered."""
        key = (self.run.run_id, self.attempt_id(trial))
        return Job(key, lambda: Order(self.attempt(trial, target), self.run.writer, self.run.rules))

    def attempt(self, trial: int, target: Target) -> AttemptJob:
        """Return everything that is known of one attempt before it begins."""
        return AttemptJob(
            id=self.attempt_id(trial),
            locator=self.locator(trial),
            case=self.case,
            dataset=self.dataset,
            target=self._where_it_can_begin(target.for_case(self.case)),
            timeout_s=self.timeout_s,
            graders=self.graders,
            judges=self.judges,
            identity=self.identity,
            declared_writes=self.declared_writes,
            has_body=self.has_body,
            again=self.again.get(trial),
        )

    def _where_it_can_begin(self, target: Target) -> Target:
        """Return the target, or one where every attempt fails if that is known already."""
        if not self.preflight or target.failure is not None:
            return target
        options = target.options_for(self.case)
        key = setup_key(target.client, target.model_for(self.case), options)
        failure = self.preflight.get(key)
        return target if failure is None else replace(target, failure=failure)

    @property
    def graders(self) -> tuple[Grader, ...]:
        """Its graders that are code, less a test body."""
        if self._graders is None:
            self._graders = graders_of(self.case)
        return self._graders

    @property
    def judges(self) -> tuple[Judge, ...]:
        """Its judges, asked once an attempt has ended.

        Raises:
            SelectionError: it names one that is not registered.

        """
        if self._judges is None:
            self._judges = judges_of(
                self.case,
                self.judge_entries,
                folder=self.prepared.loaded.path.parent if self.prepared else Path.cwd(),
                taken=[*(grader.name for grader in self.graders), BODY],
                registered=self.registered_judges,
                asked_by=f"judges of case {self.case.id!r}",
            )
        return self._judges

    @property
    def grader_names(self) -> frozenset[str]:
        """The names of its graders, less a test body."""
        return frozenset(grader.name for grader in (*self.graders, *self.judges))

    @property
    def identity(self) -> Identity:
        """What its attempts are of; known before its own fixtures have made its target."""
        if self._identity is None:
            by_fixtures = self.target_source is not None
            target = None if by_fixtures else self.target
            sources = [self.target_source, self.body if self.run_by == "body" else None]
            known = [source for source in sources if source is not None]
            self._identity = identity_of(
                self.case,
                target or Target.missing(self.variant.name),
                judges=self.judge_entries,
                judge_sources=[
                    judge.source for judge in self.judges if isinstance(judge, FunctionJudge)
                ],
                declared_writes=self.declared_writes,
                collected_by="\n".join(known) if known else None,
                body=self.body,
                listed_by=self.listed_by if by_fixtures else None,
            )
        return self._identity

    @property
    def skip(self) -> str | None:
        """Why its file says that it is not run; of what is in the ledger, that says nothing."""
        return None if self.is_in_ledger else self.case.skip

    @property
    def is_all_stored(self) -> bool:
        """Whether no attempt at it is left to be made or graded in this session."""
        return bool(self.again) and all(self.is_stored(trial) for trial in range(self.trials))

    def stored_job(self, trial: int) -> Job:
        """Return the job of an attempt that is not made anew; it needs no target."""
        return self.job(trial, self.target or Target.missing(self.variant.name))

    def stands(self, trial: int) -> bool:
        """Tell whether what is stored of an attempt stands; see `Again.stands`."""
        again = self.again.get(trial)
        return again is not None and again.stands

    def is_stored(self, trial: int) -> bool:
        """Tell whether nothing is left to do for an attempt but to hand out what is stored."""
        again = self.again.get(trial)
        if again is None or not again.stands:
            return False
        if again.decision.step is Step.KEEP:
            return True
        asked = again.decision.graders  # fixtures of a case in an eval file grade it, too
        return self.has_body and asked is not None and BODY not in asked

    @property
    def _stops_live_writes(self) -> bool:
        target = self.target
        return target is not None and target.for_case(self.case) is not target

    def planned(self) -> PlannedCase:
        """Return the case as its run's plan holds it."""
        return PlannedCase(
            variant=self.variant.name,
            case=self.case.id,
            dataset=self.dataset,
            trials=self.trials,
            pass_threshold=self.pass_threshold,
            skip=self.skip,
            write_case=self.case.expected.writes is not None or self.declared_writes,
            unguarded=self.target is not None and self.target.unguarded,
            writes_stopped=self._stops_live_writes,
        )
