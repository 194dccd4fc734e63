"""An attempt that has ended: graded where code can, judged, and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.job import BODY, AttemptJob
from pytest_mst.attempt.judging import Judging, judged
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.attempt.so_far import SoFar
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.score import GradedAttempt, GradeOutcome, GraderFailure
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.usage import cost_of
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.grading.agreement import agreement
from pytest_mst.grading.filled import filled_case
from pytest_mst.grading.grader import Grader, TrialFacts
from pytest_mst.grading.select import applicable, grade
from pytest_mst.proxy.record import ObservedCall
from pytest_mst.store.append import RunWriter


@dataclass(frozen=True, slots=True)
class FinishedAttempt:
    """An attempt that has ended and is stored, with what its graders said so far."""

    job: AttemptJob
    record: AttemptRecord
    writes: tuple[WriteEntry, ...]
    outcomes: tuple[GradeOutcome, ...]
    calls: tuple[ObservedCall, ...] = ()
    """Every call that reached the boundary, reads too."""

    @property
    def graded(self) -> GradedAttempt:
        """The attempt as verdicts need it."""
        return GradedAttempt(self.record.id.trial, self.record.ending, self.outcomes)


def not_stored(error: StoreError) -> InfrastructureFailure:
    """Return the ending of an attempt that could not be written down."""
    return InfrastructureFailure(
        Broke.COLLECTION, f"the attempt could not be stored: {error}", retryable=True
    )


async def store_attempt(
    job: AttemptJob,
    writer: RunWriter,
    so_far: SoFar,
    ending: Ending,
    *,
    clock: Clock,
    rules: RunRules,
) -> FinishedAttempt:
    """Match trace and record, grade a trial, and write all of it down; judges come last.

    A trial is stored, and has ended, before any grader runs: what a grader does cannot lose it.
    Being cancelled while judges are asked leaves it to be graded later.
    """
    record = record_of(job, so_far, ending, clock)
    if rules.budget is not None:
        rules.budget.spend(cost_of(so_far.log.usage))
    entries, calls = tuple(so_far.entries), tuple(so_far.calls)
    try:
        if not isinstance(ending, Trial):
            writer.attempt(record)
            writer.ended(job.id, job.locator, ending)
            return FinishedAttempt(job, record, entries, (), calls)
        facts = trial_facts(job, record, ending, entries, job.target.modes)
        graders = applicable(facts, job.graders)
        record = replace(record, graders=grader_names(job, graders))
        writer.attempt(record)
        outcomes = grade(facts, graders)
        record = store_outcomes(writer, record, outcomes)
        writer.ended(job.id, job.locator, ending)
    except StoreError as error:
        record = replace(record, ending=not_stored(error))
        return FinishedAttempt(job, record, entries, (), calls)
    said = await judged(job.judges, Judging(job, record, facts, writer, rules))
    record = store_failures(writer, record, said)
    return FinishedAttempt(job, record, entries, (*outcomes, *said), calls)


def grader_names(job: AttemptJob, graders: Sequence[Grader]) -> tuple[str, ...]:
    """Return the names of all that are to score a trial.

    Args:
        job: the attempt.
        graders: those of its graders that apply to the trial.

    """
    names = [grader.name for grader in graders] + [judge.name for judge in job.judges]
    return (*names, BODY) if job.has_body else tuple(names)


def store_failures(
    writer: RunWriter, record: AttemptRecord, said: Sequence[GradeOutcome]
) -> AttemptRecord:
    """Write down which judges gave no score; the trial stays one, also where that cannot be stored.

    Args:
        writer: the run's writer.
        record: the trial.
        said: what its judges said; their scores are stored.

    """
    failures = [one for one in said if isinstance(one, GraderFailure)]
    if not failures:
        return record
    with suppress(StoreError):  # a score that is not there tells the same
        return store_outcomes(writer, record, failures)
    return record


def unstored(job: AttemptJob, error: StoreError) -> FinishedAttempt:
    """Return an attempt that did not begin, because it could not have been written down."""
    record = record_of(job, SoFar.before(job), not_stored(error), Clock())
    return FinishedAttempt(job, record, (), ())


def record_of(job: AttemptJob, so_far: SoFar, ending: Ending, clock: Clock) -> AttemptRecord:
    """Return an attempt as it stands: its trace, and whether that agrees with the record."""
    trace = _trace(so_far, ending)
    return AttemptRecord(
        id=job.id,
        dataset=job.dataset,
        locator=job.locator,
        started_at=clock.started_at,
        duration_ms=clock.elapsed_ms,
        ending=ending,
        key=job.identity.key,
        key_parts=job.identity.parts,
        grading_key=job.identity.grading_key,
        tools_key=job.identity.tools,
        trace=trace,
        agreement=agreement(
            trace, so_far.entries, job.target.tools_behind_proxy, doubt=so_far.doubt
        ),
        tries=tuple(so_far.tries),
        trial_id=job.trial_id,
        outcome=so_far.live.outcome,
        cleanup_error=so_far.live.cleanup_error,
    )


def store_outcomes(
    writer: RunWriter,
    record: AttemptRecord,
    outcomes: Sequence[GradeOutcome],
    *,
    always: bool = False,
) -> AttemptRecord:
    """Write scores down; what could not run is said in the trial's own file.

    Args:
        writer: the run's writer.
        record: the trial.
        outcomes: what its graders said.
        always: write the trial's own file too, whatever they said; it comes last.

    Raises:
        StoreError: the files could not be written.

    """
    writer.scores(record.id, outcomes)
    failures = [outcome for outcome in outcomes if isinstance(outcome, GraderFailure)]
    if failures or always:
        earlier = [record.grading_error] if record.grading_error else []
        said = [f"{failure.grader}: {failure.reason}" for failure in failures]
        record = replace(
            record,
            grading_error="\n".join([*earlier, *said]) or None,
            grader_failures=(*record.grader_failures, *failures),
        )
        writer.attempt(record)
    return record


def trial_facts(
    job: AttemptJob,
    record: AttemptRecord,
    ending: Trial,
    entries: tuple[WriteEntry, ...],
    modes: Mapping[str, WriteMode],
    *,
    direct: frozenset[str] | None = None,
) -> TrialFacts:
    """Return what graders see of a trial.

    Args:
        job: the attempt.
        record: the trial.
        ending: how it ended.
        entries: its write record.
        modes: of the servers, as it was collected.
        direct: the labels of the servers without a proxy then; those of today by default.

    """
    assert record.trace is not None  # a trial has a trace
    assert record.agreement is not None
    return TrialFacts(
        case=filled_case(job.case, record.trial_id),
        ending=ending,
        trace=record.trace,
        writes=entries,
        agreement=record.agreement,
        modes=modes,
        declared_writes=job.declared_writes,
        direct=job.target.direct if direct is None else direct,
        trial_id=record.trial_id,
        outcome=record.outcome,
    )


def _trace(so_far: SoFar, ending: Ending) -> Trace | None:
    """Return the client's account; where it gave none, what the boundary observed."""
    trace = so_far.log.finished()
    if trace.evidence == "observed" and not trace.events:
        trace = replace(trace, events=tuple(_observed(call) for call in so_far.calls))
    if isinstance(ending, Trial) or trace.events or trace.answer is not None:
        return trace
    return None


def _observed(call: ObservedCall) -> TraceEvent:
    return TraceEvent(
        name=call.tool,
        server=call.server,
        arguments=call.arguments,
        output=call.result,
        is_error=call.is_error,
        id=call.join_id,
    )
