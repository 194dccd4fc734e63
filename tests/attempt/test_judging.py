"""Judges of one attempt: asked once it is stored, all at once, and never a part of its ending."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from pytest_mst.attempt.again import stored_again
from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.gates import Gates
from pytest_mst.attempt.job import Again, AttemptJob
from pytest_mst.attempt.judge_asking import AskJudge, ModelAsking
from pytest_mst.attempt.judge_turns import JudgeTurns
from pytest_mst.attempt.judges import judges_of
from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import Broke, CaseFatalError, InfrastructureError, Trial
from pytest_mst.domain.ending import InfrastructureFailure as Failure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.domain.retry import RetryHint, RetryKind
from pytest_mst.domain.score import GraderFailure, Score, TrialVerdict
from pytest_mst.domain.usage import Usage
from pytest_mst.grading.judge import Answered, Question, Reply, Unanswered
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter
from pytest_mst.store.read import StoredAttempt, read_attempt
from pytest_mst.store.stops import Stops
from tests.attempt.setting import (
    AT,
    DONE,
    WRITE,
    Collected,
    job,
    journal_of,
    make,
    scripted,
    writer_in,
)

pytestmark = pytest.mark.anyio

Say: TypeAlias = AskJudge

TWO: dict[str, Any] = {
    "judges": ["correctness", {"rubric": "conciseness", "model": "other"}],
    "assertions": {"containsText": "done"},
}


def grade(question: Question, score: float | None, reason: str = "so it is") -> Answered:
    data = {"criterion_1": {"reason": reason, "score": score}}
    return Answered(question.reply.model_validate(data), Usage(requests=1), "model-1")


def judges(folder: Path, case: dict[str, Any], **functions: Any) -> Any:
    read = Case.model_validate({"id": AT.case, "input": "do it", **case})
    return judges_of(read, [], folder=folder, registered=functions)


async def judged(
    folder: Path, say: Say, case: dict[str, Any] = TWO, *steps: Any, **functions: Any
) -> Collected:
    return await make(
        scripted(*(steps or (DONE,))),
        folder,
        case,
        judges=judges(folder, case, **functions),
        rules=RunRules(ask_judge=say),
    )


def score_file(made: Collected, grader: str) -> Any:
    [path] = (made.layout.scores_dir / grader).rglob("*.json")
    return json.loads(path.read_bytes())["score"]


async def test_judges_are_asked_all_at_once_and_their_scores_are_stored(tmp_path: Path) -> None:
    met, both = 0, anyio.Event()

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        nonlocal met
        met += 1
        if met == 2:
            both.set()
        await both.wait()
        return grade(question, 1 if question.asked.model is None else 0.9)

    with anyio.fail_after(20):
        made = await judged(tmp_path, say)
    assert made.scores == {"containsText": True, "correctness": True, "conciseness": True}
    assert made.stored["graders"] == ["containsText", "correctness", "conciseness"]
    assert made.finished.graded.verdict is TrialVerdict.PASSED
    assert score_file(made, "conciseness")["details"]["input"]["answer"] == "done"


async def test_the_attempt_is_stored_and_has_ended_before_a_judge_is_asked(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        layout = writer_in(tmp_path).layout
        stored = json.loads(layout.trace(AT).read_bytes())
        seen.append((stored["ending"], journal_of(layout)))
        return grade(question, 1)

    await judged(tmp_path, say, {"judges": ["correctness"]})
    assert seen == [({"kind": "trial"}, ["begun", "ended"])]


async def test_what_takes_a_judge_long_is_no_part_of_the_attempt(tmp_path: Path) -> None:
    async def say(question: Question, turns: JudgeTurns) -> Reply:
        await anyio.sleep(0.4)
        return grade(question, 1)

    case = {"judges": ["correctness"]}
    made = await make(
        scripted(DONE),
        tmp_path,
        case,
        judges=judges(tmp_path, case),
        rules=RunRules(ask_judge=say),
        timeout_s=20,
    )
    assert made.stored["durationMs"] < 10_000
    assert made.ending == Trial()


async def test_a_judge_that_takes_too_long_leaves_the_trial_ungraded(tmp_path: Path) -> None:
    async def say(question: Question, turns: JudgeTurns) -> Reply:
        await anyio.sleep_forever()
        return grade(question, 1)

    with anyio.fail_after(20):
        made = await judged(tmp_path, say, {"judges": [{"type": "rubric", "timeout": 20}]})
    assert made.finished.graded.verdict is TrialVerdict.UNGRADED
    assert made.stored["gradingError"] == "correctness: gave no score within 0.02 s (`timeout`)"
    assert made.ending == Trial()


async def test_a_failure_says_whether_asking_again_can_help(tmp_path: Path) -> None:
    async def say(question: Question, turns: JudgeTurns) -> Reply:
        return Unanswered("the trial does not fit the model's context", retryable=False)

    made = await judged(tmp_path, say, {"judges": ["correctness"]})
    reason = "the trial does not fit the model's context"
    assert made.stored["graderFailures"] == {"correctness": {"reason": reason, "retryable": False}}
    stored = read_attempt(made.layout, AT)
    assert isinstance(stored, StoredAttempt)
    assert stored.outcomes == (GraderFailure("correctness", reason, retryable=False),)


async def test_reps_are_asked_at_once_and_all_have_to_answer(tmp_path: Path) -> None:
    asked: list[Question] = []

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        asked.append(question)
        return grade(question, 0.5) if len(asked) < 3 else Unanswered("the network failed")

    case = {"judges": [{"type": "rubric", "reps": 3}]}
    made = await judged(tmp_path, say, case)
    assert len(asked) == 3
    assert made.stored["gradingError"] == "correctness: the network failed (rep 3 of 3)"


async def test_no_model_named_is_said_and_is_no_fail(tmp_path: Path) -> None:
    made = await judged(tmp_path, ModelAsking(environ={}), {"judges": ["correctness"]})
    assert made.finished.graded.verdict is TrialVerdict.UNGRADED
    assert "MST_JUDGE_MODEL" in made.stored["gradingError"]


async def test_only_what_is_missing_is_asked_again_and_the_client_is_not(tmp_path: Path) -> None:
    mended = False
    asked: list[str] = []

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        asked.append(question.asked.model or "default")
        if question.asked.model == "other" and not mended:
            return Unanswered("the network failed")
        return grade(question, 1)

    made = await judged(tmp_path, say)
    assert sorted(asked) == ["default", "other"]
    mended = True
    asked.clear()
    again = await stored_again(
        of_stored(made, only={"conciseness"}), writer_in(tmp_path), rules(say)
    )
    assert asked == ["other"]
    assert again is not None
    assert again.graded.verdict is TrialVerdict.PASSED
    assert "gradingError" not in made.stored
    assert "graderFailures" not in made.stored
    assert made.journal == ["begun", "ended"]


async def test_what_stays_unhelped_is_not_forgotten_when_another_is_asked_again(
    tmp_path: Path,
) -> None:
    async def say(question: Question, turns: JudgeTurns) -> Reply:
        return Unanswered("does not fit", retryable=question.asked.model == "other")

    made = await judged(tmp_path, say)
    again = await stored_again(
        of_stored(made, only={"conciseness"}), writer_in(tmp_path), rules(say)
    )
    assert again is not None
    assert set(made.stored["graderFailures"]) == {"correctness", "conciseness"}
    failed = {one.grader for one in again.outcomes if isinstance(one, GraderFailure)}
    assert failed == {"correctness", "conciseness"}


async def test_being_cancelled_while_judges_are_asked_leaves_a_trial_to_grade(
    tmp_path: Path,
) -> None:
    asked = anyio.Event()

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        asked.set()
        await anyio.sleep_forever()
        return grade(question, 1)

    case = {"judges": ["correctness"], "assertions": {"containsText": "done"}}
    writer = writer_in(tmp_path)
    one = job(scripted(DONE), case, judges=judges(tmp_path, case))
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(collect, one, hub, writer, rules(say))
            await asked.wait()
            tasks.cancel_scope.cancel()
    stored = read_attempt(writer.layout, AT)
    assert isinstance(stored, StoredAttempt)
    assert stored.ending == Trial()
    assert stored.graded.verdict is TrialVerdict.UNGRADED
    assert [one.grader for one in stored.outcomes if isinstance(one, Score)] == ["containsText"]


async def test_a_score_is_stored_as_it_comes_whatever_becomes_of_another(tmp_path: Path) -> None:
    slow = anyio.Event()

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        if question.asked.model is None:
            return grade(question, 1)
        slow.set()
        await anyio.sleep_forever()
        return grade(question, 1)

    writer = writer_in(tmp_path)
    one = job(scripted(DONE), TWO, judges=judges(tmp_path, TWO))
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(collect, one, hub, writer, rules(say))
            await slow.wait()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    stored = read_attempt(writer.layout, AT)
    assert isinstance(stored, StoredAttempt)
    scored = {one.grader for one in stored.outcomes if isinstance(one, Score)}
    assert scored == {"containsText", "correctness"}


async def test_a_score_that_cannot_be_stored_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_room = StoreError("scores", "the disk is full")

    async def say(question: Question, turns: JudgeTurns) -> Reply:
        def full(*_: object) -> None:
            raise no_room

        monkeypatch.setattr(RunWriter, "scores", full)
        return grade(question, 1)

    made = await judged(tmp_path, say, {"judges": ["correctness"]})
    assert made.ending == Trial()
    assert made.finished.graded.verdict is TrialVerdict.UNGRADED
    [failure] = made.finished.outcomes
    assert isinstance(failure, GraderFailure)
    assert "the disk is full" in failure.reason


async def test_a_fatal_error_out_of_a_judge_closes_its_gate_and_changes_no_ending(
    tmp_path: Path,
) -> None:
    def house(trial: Any) -> bool:
        why = "the licence server is gone"
        raise CaseFatalError(why)

    case = {"judges": ["house"]}
    writer = writer_in(tmp_path)
    gates = Gates(Stops(writer))
    made = await make(
        scripted(DONE),
        tmp_path,
        case,
        judges=judges(tmp_path, case, house=house),
        rules=RunRules(gates=gates),
    )
    assert made.ending == Trial()
    assert made.finished.graded.verdict is TrialVerdict.UNGRADED
    assert gates.is_closed(replace(AT, trial=1))


@pytest.mark.parametrize(
    ("look", "level"),
    [
        (lambda trial: bool(trial.answer), Evidence.CLAIMED),
        (lambda trial: bool(trial.calls()), Evidence.CALLED),
        (lambda trial: len(trial.writes) == 1, Evidence.REQUESTED),
        (lambda trial: Score("x", passed=True, evidence=Evidence.APPLIED), Evidence.CLAIMED),
    ],
)
async def test_a_functions_score_rests_on_what_it_looked_at(
    tmp_path: Path, look: Any, level: Evidence
) -> None:
    async def say(question: Question, turns: JudgeTurns) -> Reply:
        raise AssertionError(question)

    made = await judged(tmp_path, say, {"judges": ["own"]}, WRITE, DONE, own=look)
    [own] = [one for one in made.finished.outcomes if one.grader == "own"]
    assert isinstance(own, Score)
    assert (own.passed, own.evidence) == (True, level)


class TestWaits:
    """What a judge waits for before its model is asked again."""

    failure = Failure(Broke.PROVIDER, "429: slow down", retryable=True, accepted=False)

    def turns(self, folder: Path, waited: list[float]) -> JudgeTurns:
        async def sleep(seconds: float) -> None:
            waited.append(seconds)

        policy = RetryPolicy(dice=lambda: 0.0, sleep=sleep)
        one = job(scripted(DONE), {"judges": ["correctness"]})
        return JudgeTurns("correctness", one, writer_in(folder), RunRules(retry=policy))

    async def test_it_doubles_its_waits_or_does_as_it_is_told(self, tmp_path: Path) -> None:
        waited: list[float] = []
        turns = self.turns(tmp_path, waited)
        limit = RetryHint(RetryKind.RATE_LIMIT)
        await turns.wait(self.failure, limit, next_try=2)
        await turns.wait(self.failure, limit, next_try=3)
        await turns.wait(self.failure, RetryHint(RetryKind.RATE_LIMIT, 7.0), next_try=4)
        assert waited == [2, 4, 7]

    async def test_it_gives_up_after_as_many_tries_as_an_attempt(self, tmp_path: Path) -> None:
        waited: list[float] = []
        limit = RetryHint(RetryKind.RATE_LIMIT)
        with pytest.raises(InfrastructureError) as raised:
            await self.turns(tmp_path, waited).wait(self.failure, limit, next_try=5)
        assert raised.value.failure.reason.startswith("retries exhausted (4 attempts, rate_limit)")
        assert waited == []


def rules(say: Say) -> RunRules:
    return RunRules(ask_judge=say)


def of_stored(made: Collected, only: set[str]) -> AttemptJob:
    decision = Decision(Step.GRADE, "it is not fully graded", graders=frozenset(only))
    return replace(made.finished.job, again=Again(decision, stamp="20261201T000000Z"))
