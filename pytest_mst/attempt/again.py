"""An attempt of a run that is taken up again: kept as it is stored, graded again, or made anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pytest_mst.attempt.collect import broken, collect
from pytest_mst.attempt.finished import (
    FinishedAttempt,
    grader_names,
    not_stored,
    store_failures,
    store_outcomes,
    trial_facts,
    unstored,
)
from pytest_mst.attempt.job import BODY, Again, AttemptJob
from pytest_mst.attempt.judging import Judging, judged
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.domain.agreement import agreement_from_json
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.domain.score import GradeOutcome, GraderFailure
from pytest_mst.grading.select import applicable, grade
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter
from pytest_mst.store.read import StoredAttempt, read_attempt
from pytest_mst.store.supersede import restore_attempt, supersede_attempt, supersede_grades


async def stored_again(
    job: AttemptJob, writer: RunWriter, rules: RunRules = NO_RULES
) -> FinishedAttempt | None:
    """Return an attempt that is not collected again, graded again where that was decided.

    The ending stays what it is, whatever graders say.

    Returns:
        The attempt; `None` where nothing is stored of it, and it stays unstarted.

    Raises:
        StoreError: the folder of scores cannot be listed.

    """
    assert job.again is not None
    stored = read_attempt(writer.layout, job.id)
    if not isinstance(stored, StoredAttempt):
        return None
    finished = _finished(job, stored)
    if job.again.decision.step is Step.KEEP or not isinstance(stored.ending, Trial):
        return finished
    try:
        return await _graded(job, writer, rules, finished, job.again.decision.graders)
    except StoreError as error:
        return replace(
            finished, record=replace(finished.record, ending=not_stored(error)), outcomes=()
        )


async def make(
    job: AttemptJob, hub: Hub, writer: RunWriter, rules: RunRules = NO_RULES, **more: Any
) -> FinishedAttempt | None:
    """Make an attempt, or return the stored one that stands for it; see `collect`.

    Returns:
        The attempt; `None` where it stays unstarted.

    """
    if job.again is not None and job.again.stands:
        return await stored_again(job, writer, rules)
    if is_made(job, writer):
        return await made_before(job, writer, rules)
    if rules.is_stopped(job.id):
        return None
    try:
        clear_away(job, writer)
    except StoreError as error:
        return unstored(job, error)
    return await collect(job, hub, writer, rules, **more)


async def make_broken(
    job: AttemptJob,
    writer: RunWriter,
    rules: RunRules,
    failure: InfrastructureFailure,
    raised: BaseException | None,
) -> FinishedAttempt:
    """Store an attempt that ended before its client could begin; see `broken`.

    One that a process of this session has made stands, whatever broke afterwards.
    """
    if is_made(job, writer) and (made := await made_before(job, writer, rules)):
        return made
    try:
        clear_away(job, writer)
    except StoreError as error:
        return unstored(job, error)
    return await broken(job, writer, rules, failure, raised)


def is_made(job: AttemptJob, writer: RunWriter) -> bool:
    """Tell whether a process of this session, lost meanwhile, has made an attempt or begun it."""
    if not os.path.exists(writer.layout.trace_file(job.id)):  # noqa: PTH110
        return False
    if job.again is None:
        return True
    stored = read_attempt(writer.layout, job.id, ())
    return isinstance(stored, StoredAttempt) and stored.record.started_at != job.again.before


async def made_before(
    job: AttemptJob, writer: RunWriter, rules: RunRules = NO_RULES
) -> FinishedAttempt | None:
    """Return an attempt that a lost process made, graded as far as it had not come to that.

    Raises:
        StoreError: the folder of scores cannot be listed.

    """
    stored = read_attempt(writer.layout, job.id)
    missing: frozenset[str] = frozenset()
    if isinstance(stored, StoredAttempt):
        failed = (one.grader for one in stored.outcomes if isinstance(one, GraderFailure))
        missing = frozenset(failed) - {BODY}
    step = Step.GRADE if missing else Step.KEEP
    decision = Decision(step, "a process that is lost made it", graders=missing)
    finished = await stored_again(replace(job, again=Again(decision, stamp="")), writer, rules)
    if finished is None:
        return None
    said = tuple(one for one in finished.outcomes if one.grader != BODY)  # its body is yet to run
    return replace(finished, outcomes=said)


def clear_away(job: AttemptJob, writer: RunWriter) -> None:
    """Put aside what earlier sessions stored of an attempt that is made anew, before it begins.

    Not for one that this session has made; see `is_made`.

    Raises:
        StoreError: a file could not be moved.

    """
    if job.again is not None:
        supersede_attempt(writer.layout, job.id, job.again.stamp)


def put_back(job: AttemptJob, writer: RunWriter) -> None:
    """Undo what the beginning of an attempt that is none after all did to what is stored.

    Raises:
        StoreError: a file could not be moved.

    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")  # finer than when a run was taken up
    supersede_attempt(writer.layout, job.id, now)
    if job.again is not None:
        restore_attempt(writer.layout, job.id, job.again.stamp)


def _finished(job: AttemptJob, stored: StoredAttempt) -> FinishedAttempt:
    record = stored.record
    if stored.agreement is not None:
        try:
            known = agreement_from_json(stored.agreement, stored.writes.entries)
        except ValueError:
            known = None  # of a form that is not known here; what is stored of it stays
        record = replace(record, agreement=known)
    return FinishedAttempt(job, record, stored.writes.entries, stored.outcomes)


async def _graded(
    job: AttemptJob,
    writer: RunWriter,
    rules: RunRules,
    finished: FinishedAttempt,
    only: frozenset[str] | None,
) -> FinishedAttempt:
    """Grade a stored trial: by all of today's graders, or by those that have not scored it.

    What code says is stored first, the attempt's own file after it: until then that says that it
    is to be graded. Judges are asked last.
    """
    record = finished.record
    ending = record.ending
    assert isinstance(ending, Trial)
    assert job.again is not None
    if record.trace is None or record.agreement is None:
        reason = "what the client did is not stored, so that nothing can be graded"
        return replace(finished, outcomes=(GraderFailure("trace", reason),))
    modes = job.target.modes if job.again.modes is None else job.again.modes
    facts = trial_facts(job, record, ending, finished.writes, modes, direct=job.again.direct)
    graders = applicable(facts, job.graders)
    wanted = [grader for grader in graders if only is None or grader.name in only]
    judges = [judge for judge in job.judges if only is None or judge.name in only]
    kept = _kept(finished.outcomes, [one.name for one in (*wanted, *judges)], only)
    said = grade(facts, wanted)
    if job.again.stamp:
        supersede_grades(writer.layout, job.id, job.again.stamp, only)
    left = tuple(one for one in record.grader_failures if only and one.grader not in only)
    fresh = replace(
        record,
        grading_error="\n".join(f"{one.grader}: {one.reason}" for one in left) or None,
        grading_key=job.identity.grading_key,
        grader_failures=left,
        graders=grader_names(job, graders),
    )
    fresh = store_outcomes(writer, fresh, said, always=fresh != record)
    heard = await judged(judges, Judging(job, fresh, facts, writer, rules))
    fresh = store_failures(writer, fresh, heard)
    return replace(finished, record=fresh, outcomes=(*kept, *said, *heard))


def _kept(
    outcomes: Sequence[GradeOutcome], asked: Sequence[str], only: frozenset[str] | None
) -> tuple[GradeOutcome, ...]:
    """Return what was said before and stays; of the body, what it says follows."""
    if only is None:
        return ()
    return tuple(
        one
        for one in outcomes
        if one.grader not in asked and not (isinstance(one, GraderFailure) and one.grader in only)
    )
