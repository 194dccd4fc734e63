"""What the FAILURES section and the closing block's readers see of a case's attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.job import BODY
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.evidence import Evidence, lowest
from pytest_mst.domain.score import (
    CaseVerdict,
    GradedAttempt,
    GradeOutcome,
    GraderFailure,
    Score,
    TrialVerdict,
    Unknown,
)
from pytest_mst.grading.writes import NOT_CHECKED
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.outcomes import State
from pytest_mst.report.pair_lines import pair_lines
from pytest_mst.report.text import percent, shown
from pytest_mst.report.tries import retry_lines

_ANSWER_CHARS = 200
_REASON_CHARS = 2_000
_SHOWN_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class AttemptText:
    """One attempt that did not pass, in lines for people."""

    lines: tuple[str, ...]

    @classmethod
    def of(
        cls,
        locator: str,
        trial: int,
        state: State,
        finished: FinishedAttempt | None,
        body_text: str,
    ) -> AttemptText:
        """Say what happened.

        Args:
            locator: the attempt's short name.
            trial: its number, 0-based.
            state: how it stands.
            finished: the attempt; `None` where it never began.
            body_text: how pytest shows what the test body raised.

        """
        level = None if finished is None else finished.graded.evidence
        lines = [f"{locator} trial {trial}: {_word(state)}{_evidence(level)}"]
        if finished is not None:
            lines += [f"  {line}" for line in retry_lines(finished.record.tries)]
            lines += _ending_lines(finished)
            if finished.record.cleanup_error is not None:
                why = shown(finished.record.cleanup_error, _REASON_CHARS)
                lines.append(f"  not cleaned up: {why}")
            for outcome in finished.outcomes:
                lines += _outcome_lines(outcome, body_text)
            agreement = finished.record.agreement
            if agreement is not None:
                lines += [f"  {line}" for line in pair_lines(agreement.pairs)]
                lines += [] if agreement.checked else [f"  {NOT_CHECKED}"]
            trace = finished.record.trace
            if trace is not None and trace.answer is not None:
                lines.append(f"  answer: {shown(trace.answer, _ANSWER_CHARS)}")
        return cls(tuple(lines))


def case_text(
    case: CaseItem,
    verdict: CaseVerdict,
    graded: Sequence[GradedAttempt],
    texts: Sequence[AttemptText],
) -> str:
    """Return a case's verdict and the attempts behind it."""
    passed = sum(one.verdict is TrialVerdict.PASSED for one in graded)
    decided = passed + sum(one.verdict is TrialVerdict.FAILED for one in graded)
    complete = verdict is not CaseVerdict.INCOMPLETE  # of an incomplete one no share is known
    share = f", {percent(passed / decided)}" if complete else ""
    share += _evidence(lowest(one.evidence for one in graded))
    head = (
        f"{shown(case.case.id)} [{shown(case.variant.name)}] {verdict.value}: "
        f"{passed} of {decided} graded trials passed{share}; "
        f"{case.trials} planned, {percent(case.pass_threshold)} must pass"
    )
    more = len(texts) - _SHOWN_ATTEMPTS
    lines = [line for text in texts[:_SHOWN_ATTEMPTS] for line in text.lines]
    return "\n".join([head, *lines, *([f"... and {more} more"] if more > 0 else [])])


def _evidence(level: Evidence | None) -> str:
    """Say how far a verdict can be trusted that is about writes."""
    return "" if level is None else f", evidence {level.label}"


def _word(state: State) -> str:
    return "infrastructure failure" if state == "infrastructure" else state


def _ending_lines(finished: FinishedAttempt) -> list[str]:
    match finished.record.ending:
        case InfrastructureFailure() as failure:
            again = "a retry can help" if failure.retryable else "a retry cannot help"
            reason = shown(failure.reason, _REASON_CHARS)
            return [f"  {failure.broke.value}: {reason} ({again})"]
        case Trial() as trial:
            lines = []
            if trial.client_error is not None:
                lines.append(f"  the client errored: {shown(trial.client_error, _REASON_CHARS)}")
            if trial.stopped_by is not None:
                lines.append(f"  the client ran out of its own limit: {trial.stopped_by}")
            return lines


def _outcome_lines(outcome: GradeOutcome, body_text: str) -> list[str]:
    match outcome:
        case Score(passed=True):
            return []
        case Score(grader=grader) if body_text and grader == BODY:
            level = _level(outcome)
            shown_body = [f"    {shown(line, _REASON_CHARS)}" for line in body_text.splitlines()]
            return [f"  {outcome.grader} failed{level}:", *shown_body]
        case Score():
            reason = shown(outcome.reason or "", _REASON_CHARS)
            return [f"  {outcome.grader} failed{_level(outcome)}: {reason}"]
        case Unknown():
            reason = shown(outcome.reason, _REASON_CHARS)
            return [f"  {outcome.grader} cannot tell: {reason}"]
        case GraderFailure():
            reason = shown(outcome.reason, _REASON_CHARS)
            return [f"  {outcome.grader} could not grade: {reason}"]


def _level(score: Score) -> str:
    return f" ({score.evidence.label})" if score.evidence is not None else ""
