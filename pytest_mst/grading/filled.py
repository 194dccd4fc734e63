"""What a case expects of one attempt: with the attempt's own id where `{{trial.id}}` is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_mst.domain.case import Case, Expected, ToolsTriggered
from pytest_mst.domain.placeholder import TRIAL_ID, filled
from pytest_mst.grading.answer import ContainsText, MatchesPattern
from pytest_mst.grading.grader import Grader
from pytest_mst.grading.tool_calls import ToolsTriggeredGrader


def filled_case(case: Case, trial_id: str) -> Case:
    """Return a case with the attempt's id in everything under `expected`.

    Args:
        case: as it is written.
        trial_id: empty where nobody knows it any more; then the case stays as it is.

    """
    if not trial_id or TRIAL_ID not in repr(case.expected):
        return case
    written = case.expected.model_dump(by_alias=True, exclude_unset=True)
    expected = Expected.model_validate(filled(written, trial_id))
    return case.model_copy(update={"expected": expected})


def filled_graders(graders: Sequence[Grader], trial_id: str) -> tuple[Grader, ...]:
    """Return the graders with the attempt's id in what assertions look for."""
    if not trial_id:
        return tuple(graders)
    return tuple(_filled(grader, trial_id) for grader in graders)


def _filled(grader: Grader, trial_id: str) -> Grader:
    match grader:
        case ContainsText(texts=texts) if _mentions(*texts):
            return replace(grader, texts=filled(texts, trial_id))
        case MatchesPattern(patterns=patterns) if _mentions(*patterns):
            return replace(grader, patterns=filled(patterns, trial_id))
        case ToolsTriggeredGrader(expected=expected) if _mentions(repr(expected)):
            written = expected.model_dump(by_alias=True, exclude_unset=True)
            return replace(
                grader, expected=ToolsTriggered.model_validate(filled(written, trial_id))
            )
        case _:
            return grader


def _mentions(*texts: str) -> bool:
    return any(TRIAL_ID in text for text in texts)
