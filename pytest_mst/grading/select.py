"""Which graders a case has, and running them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_mst.domain.case import Case
from pytest_mst.domain.score import GradeOutcome
from pytest_mst.grading.answer import ContainsText, MatchesPattern
from pytest_mst.grading.filled import filled_graders
from pytest_mst.grading.grader import ConditionalGrader, Grader, TrialFacts
from pytest_mst.grading.outcome import OutcomeGrader
from pytest_mst.grading.returned import outcome_of
from pytest_mst.grading.tool_calls import ToolCallCountGrader, ToolsTriggeredGrader
from pytest_mst.grading.writes import WritesGrader


def graders_of(case: Case, *, outcome: Grader | None = None) -> tuple[Grader, ...]:
    """Return the graders of a case that are code, each under a name of its own.

    An assertion that cannot fail checks nothing and is no grader. The `writes` grader is always
    among them: it applies to the trials that made a write, too.

    Args:
        case: the case.
        outcome: who grades the case's outcome checks; by default by what was read for them.

    """
    graders = [*_assertions(case), WritesGrader()]
    if case.expected.outcome:
        graders.append(OutcomeGrader(case.expected.outcome) if outcome is None else outcome)
    return tuple(graders)


def applicable(facts: TrialFacts, graders: Sequence[Grader]) -> tuple[Grader, ...]:
    """Return the graders that have something to say about this trial, in its own words."""
    return tuple(
        grader
        for grader in filled_graders(graders, facts.trial_id)
        if not isinstance(grader, ConditionalGrader) or grader.applies(facts)
    )


def grade(facts: TrialFacts, graders: Sequence[Grader]) -> tuple[GradeOutcome, ...]:
    """Run the graders that apply, each on its own, and return what they said in their order."""
    return tuple(
        outcome_of(grader.name, grader.grade(facts)) for grader in applicable(facts, graders)
    )


def _assertions(case: Case) -> Iterator[Grader]:
    asked = case.assertions
    if asked.contains_text:
        yield ContainsText(asked.contains_text)
    if asked.matches_pattern:
        yield MatchesPattern(asked.matches_pattern)
    if asked.tools_triggered is not None and asked.tools_triggered.can_fail:
        yield ToolsTriggeredGrader(asked.tools_triggered)
    if asked.tool_call_count is not None and asked.tool_call_count.can_fail:
        yield ToolCallCountGrader(asked.tool_call_count)
