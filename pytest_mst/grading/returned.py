"""What came back from a grader, as one of the three things it can mean."""

from __future__ import annotations

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.grading.shown import described

FULL_SCORE = 1.0


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
    return GraderFailure(
        grader, f"returned {found}; a grader returns a Score, a boolean, or a number from 0 to 1"
    )
