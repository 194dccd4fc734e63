"""What came back from a grader, as one of the three things it can mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown, is_share
from pytest_mst.grading.shown import described

FULL_SCORE = 1.0
VALID = "a grader returns a Score, a boolean, or a number from 0 to 1"
_KEYS = frozenset({"pass", "value", "reason", "unknown", "details"})
"""Of an object that a judge returns: those of a stored score that it can say."""


def outcome_of(grader: str, returned: object, *, threshold: float = FULL_SCORE) -> GradeOutcome:
    """Read what a grader returned; what is not a grade is a grader that did not run.

    Zero is a grade. Nothing, not-a-number, a number out of range and a text are not: no such
    value can be averaged with others or taken for a fail.

    Args:
        grader: the name of the grader.
        returned: an outcome; or a boolean; or a number from 0 to 1, which passes from
            `threshold` on. A bare boolean or number gets the weakest evidence level, as nothing
            is known of what it rests on.
        threshold: 0 to 1.

    """
    match returned:
        case Score() | Unknown() | GraderFailure():
            return returned
        case bool():
            return Score(grader, passed=returned, evidence=Evidence.CLAIMED)
        case int() | float() if 0 <= returned <= 1:
            return Score(
                grader,
                passed=returned >= threshold,
                value=float(returned),
                evidence=Evidence.CLAIMED,
            )
        case None | int() | float() | str() | list() | dict():
            found = described(returned)
        case _:
            found = f"an object of type {type(returned).__name__}"
    return GraderFailure(grader, f"returned {found}; {VALID}")


def graded_by(
    judge: str, returned: object, *, threshold: float, evidence: Evidence
) -> GradeOutcome:
    """Read what a judge of a user's own returned: a grade, or an object that says one.

    Args:
        judge: the name of the judge, under which its scores are kept whatever it says.
        returned: as for `outcome_of`; or an object with some of `pass`, `value`, `reason`,
            `unknown` and `details`.
        threshold: from which value on it passes, 0 to 1.
        evidence: of what the judge has looked at. A score of its own may say less, never more.

    """
    if isinstance(returned, Mapping):
        returned = _said(judge, returned, threshold)
    outcome = outcome_of(judge, returned, threshold=threshold)
    match outcome:
        case Score(evidence=level) if outcome is returned and level is not None:
            return replace(outcome, grader=judge, evidence=min(level, evidence))
        case Score():
            return replace(outcome, grader=judge, evidence=evidence)
        case _:
            return replace(outcome, grader=judge)


def _said(judge: str, said: Mapping[object, object], threshold: float) -> GradeOutcome:
    reason, details = said.get("reason"), said.get("details")
    unknown, value, passed = said.get("unknown"), said.get("value"), said.get("pass")
    text = reason if isinstance(reason, str) else None
    held = details if isinstance(details, Mapping) else {}
    if not said or not said.keys() <= _KEYS:
        return _no_grade(judge, said)
    if unknown is True or isinstance(unknown, str):
        return Unknown(judge, unknown if isinstance(unknown, str) else text or "", held)
    if value is not None and not is_share(value):
        return _no_grade(judge, said)
    number = float(value) if is_share(value) else None
    if passed is None and number is not None:
        passed = number >= threshold
    if not isinstance(passed, bool):
        return _no_grade(judge, said)
    return Score(judge, passed=passed, value=number, reason=text, details=held)


def _no_grade(judge: str, said: Mapping[object, object]) -> GraderFailure:
    keys = ", ".join(sorted(_KEYS))
    return GraderFailure(
        judge, f"returned {described(dict(said))}; {VALID}, or an object with some of {keys}"
    )
