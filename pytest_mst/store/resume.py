"""What is missing from a stored run, what has changed since, and so what is to be done again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.identity import Identity
from pytest_mst.domain.outcome import OUTCOME_GRADER
from pytest_mst.domain.resumption import Decision, Step
from pytest_mst.domain.score import GraderFailure, TrialVerdict, Unknown, trial_verdict
from pytest_mst.store.read import StoredAttempt, UnreadableAttempt

BEGAN = "it never began"
TORN = "its write record cannot be read"


@dataclass(frozen=True, slots=True)
class Rules:
    """How a run is taken up again."""

    fixed: bool = False
    """What nothing could help has been fixed: collect, or grade, that too."""
    strict_tools: bool = False
    """Collect anew what was collected with another tool list."""
    grade_only: bool = False
    """Grade every trial again, and collect nothing."""


@dataclass(frozen=True, slots=True)
class Today:
    """One planned attempt as it would be made today."""

    identity: Identity
    graders: frozenset[str] = frozenset()
    """Those that can grade a stored trial; not its body where that runs the client."""
    body_collects: str | None = None
    """The grader that is a test body which runs the client itself, where there is one: a trial
    is never graded by it alone. Its source is a part of what was collected."""

    def others(self, stored: StoredAttempt) -> frozenset[str]:
        """Return today's graders and those of a stored trial, less a body that runs the client."""
        return self.graders.union(stored.record.graders) - {self.body_collects or ""}


def decide(
    stored: StoredAttempt | UnreadableAttempt | None, today: Today, rules: Rules
) -> Decision:
    """Decide what becomes of one planned attempt.

    Args:
        stored: what is stored of it; `None` where nothing is.
        today: what it would be today.
        rules: how the run is taken up again.

    """
    match stored:
        case None:
            return _not_there(BEGAN, rules)
        case UnreadableAttempt():
            return _not_there(f"what is stored of it cannot be read: {stored.problem}", rules)
        case StoredAttempt():
            pass
        case _:
            assert_never(stored)
    if rules.grade_only:
        return _graded_only(stored, today)
    changed = _changed(stored, today, strict_tools=rules.strict_tools)
    if changed:
        return Decision(Step.COLLECT, f"changed: {', '.join(changed)}", changed)
    match stored.ending:
        case InfrastructureFailure() as failure:
            return _broken(failure, rules)
        case Trial() as trial:
            return _of_trial(stored, trial, today, rules)
        case _:
            assert_never(stored.ending)


def _not_there(why: str, rules: Rules) -> Decision:
    if rules.grade_only:
        return Decision(Step.KEEP, why, fix=f"{why}: --mst-resume collects it")
    return Decision(Step.COLLECT, why)


def _changed(stored: StoredAttempt, today: Today, *, strict_tools: bool) -> tuple[str, ...]:
    record, identity = stored.record, today.identity
    changed: tuple[str, ...] = ()
    no_key = not record.key and isinstance(record.ending, InfrastructureFailure)
    if record.key != identity.key and not no_key:  # what a lost worker left has none
        changed = identity.changed_from(record.key_parts) or ("key",)
    known = record.tools_key and identity.tools
    if strict_tools and known and record.tools_key != identity.tools:
        changed = (*changed, "tools")
    return changed


def _broken(failure: InfrastructureFailure, rules: Rules) -> Decision:
    said = f"{failure.broke.value}: {failure.reason}"
    if failure.retryable:
        return Decision(Step.COLLECT, said)
    if rules.fixed:
        return Decision(Step.COLLECT, f"fixed: {said}")
    return Decision(Step.KEEP, said, fix=said)


def _of_trial(stored: StoredAttempt, trial: Trial, today: Today, rules: Rules) -> Decision:
    if stored.writes.torn:
        return Decision(Step.COLLECT, TORN)
    if stored.record.grading_key != today.identity.grading_key:
        graders = today.others(stored) if today.body_collects else None
        return Decision(Step.GRADE, "what it is graded by has changed", graders=graders)
    failures = [one for one in stored.outcomes if isinstance(one, GraderFailure)]
    helpless = [one for one in failures if not one.retryable and not rules.fixed]
    missing = frozenset(one.grader for one in failures if one not in helpless)
    undecided = trial_verdict(trial, stored.outcomes) is TrialVerdict.UNGRADED
    if OUTCOME_GRADER in missing and undecided:
        return Decision(Step.COLLECT, "its outcome could not be read")
    missing -= {OUTCOME_GRADER}  # what it wrote is cleaned up: nothing can be read any more
    if missing or not stored.outcomes:
        if today.body_collects and (today.body_collects in missing or not missing):
            return Decision(Step.COLLECT, "its body runs the client, and did not grade it")
        return Decision(Step.GRADE, "it is not fully graded", graders=missing or None)
    if helpless:
        fix = f"{helpless[0].grader} cannot grade it: {helpless[0].reason}"
        return Decision(Step.KEEP, "a grader cannot grade it", fix=fix)
    unknown = [one for one in stored.outcomes if isinstance(one, Unknown)]
    if unknown and undecided:
        fix = f"{unknown[0].grader} cannot tell: {unknown[0].reason}"
        if rules.fixed:
            names = frozenset(one.grader for one in unknown)
            return Decision(Step.GRADE, f"fixed: {fix}", graders=names)
        return Decision(Step.KEEP, "a grader cannot tell", fix=fix)
    return Decision(Step.KEEP, "it is there")


def _graded_only(stored: StoredAttempt, today: Today) -> Decision:
    if isinstance(stored.ending, InfrastructureFailure):
        return Decision(Step.KEEP, "it is no trial", fix=None)
    others = today.others(stored) if today.body_collects else None
    if others is not None and not others:
        return Decision(
            Step.KEEP,
            "its body runs the client",
            fix="its body runs the client, so that it cannot be graded without being collected",
        )
    if stored.record.trace is None:
        return Decision(Step.KEEP, "it has no trace", fix="no trace is stored of it")
    if stored.writes.torn:  # what the client wrote would be judged by a part of it
        return Decision(Step.KEEP, TORN, fix=f"{TORN}: --mst-resume collects it")
    changed = _changed(stored, today, strict_tools=False)
    return Decision(Step.GRADE, "all trials are graded again", changed, graders=others)
