"""Asking the judges of a stored trial, all of them at once; what goes wrong leaves it ungraded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import assert_never

import anyio

from pytest_mst.attempt.function_judge import FunctionJudge
from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.judge_turns import JudgeTurns
from pytest_mst.attempt.judges import Judge
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.attempt.unexpected import message_of, named
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.score import GradeOutcome, GraderFailure
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.judge import Reply, Unanswered
from pytest_mst.grading.judge_input import judge_input
from pytest_mst.grading.rubric import RubricJudge
from pytest_mst.store.append import RunWriter


@dataclass(frozen=True, slots=True)
class Judging:
    """A trial to judge, and what that takes."""

    job: AttemptJob
    record: AttemptRecord
    facts: TrialFacts
    writer: RunWriter
    rules: RunRules


async def judged(judges: Sequence[Judge], trial: Judging) -> tuple[GradeOutcome, ...]:
    """Ask the judges, all at once, and return what they said in their order.

    Each score is stored as it comes: what is paid for is not lost with another judge. The attempt
    has ended: its deadline is no limit here, and its duration has none of this.
    """
    said: list[GradeOutcome | None] = [None] * len(judges)

    async def ask(at: int, judge: Judge) -> None:
        said[at] = _stored(trial, await _judged(judge, trial))

    async with anyio.create_task_group() as asked:
        for at, judge in enumerate(judges):
            asked.start_soon(ask, at, judge)
    return tuple(outcome for outcome in said if outcome is not None)


def _stored(trial: Judging, outcome: GradeOutcome) -> GradeOutcome:
    """Store a score; where that fails, the judge has given none."""
    if isinstance(outcome, GraderFailure):
        return outcome
    try:
        trial.writer.scores(trial.record.id, [outcome])
    except StoreError as error:
        return GraderFailure(outcome.grader, f"what it said could not be stored: {error}")
    return outcome


async def _judged(judge: Judge, trial: Judging) -> GradeOutcome:
    match judge:
        case RubricJudge():
            return await _by_model(judge, trial)
        case FunctionJudge():
            return await _by_function(judge, trial)
        case _:
            assert_never(judge)


async def _by_function(judge: FunctionJudge, trial: Judging) -> GradeOutcome:
    outcome, fatal = await judge.judge(trial.record, trial.facts.writes)
    if fatal is not None:
        trial.rules.stop(trial.record.id, fatal.scope, message_of(fatal))
    return outcome


async def _by_model(judge: RubricJudge, trial: Judging) -> GradeOutcome:
    given = judge_input(trial.facts)
    question = judge.question(given, trial.writer.redactor.text)
    replies: list[Reply] = [
        Unanswered(f"gave no score within {judge.timeout_s:g} s (`timeout`)")
        for _ in range(judge.reps)
    ]
    turns = JudgeTurns(judge.name, trial.job, trial.writer, trial.rules)

    async def ask(at: int) -> None:
        try:
            replies[at] = await trial.rules.ask_judge(question, turns)
        except Exception as error:  # noqa: BLE001 - around one judge: the trial stays ungraded
            replies[at] = Unanswered(f"asking raised {named(error)}")

    with anyio.move_on_after(judge.timeout_s):
        async with anyio.create_task_group() as asked:
            for at in range(judge.reps):
                asked.start_soon(partial(ask, at))
    return judge.outcome(trial.facts, given, replies)
