"""Graders of the answer. What they score is what the client claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.pattern_search import SEARCH
from pytest_mst.grading.shown import canonical_text, listed, shown

NO_ANSWER: Final = "the client gave no answer"

SEARCH_LIMIT_S: Final = 2.0
"""How long one pattern may search one answer, in seconds."""


@dataclass(frozen=True, slots=True)
class ContainsText:
    """Each text is in the answer. Case counts; canonically equivalent texts are the same."""

    texts: tuple[str, ...]
    name: str = "containsText"

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Score the share of the texts that are there."""
        answer = facts.trace.answer
        if answer is None:
            return _score(self.name, self.texts, list(self.texts), NO_ANSWER)
        there = canonical_text(answer)
        missing = [text for text in self.texts if canonical_text(text) not in there]
        named = listed([_not_there(text, there) for text in missing])
        return _score(self.name, self.texts, missing, f"{named}; the answer is {shown(answer)}")


@dataclass(frozen=True, slots=True)
class MatchesPattern:
    r"""Each regular expression is found somewhere in the answer, as `re.search` has it.

    The search can be stopped, so that a pattern that backtracks without end does not hold up
    everything else; such a pattern is a grader that did not run.
    """

    patterns: tuple[str, ...]
    limit_s: float = SEARCH_LIMIT_S
    name: str = "matchesPattern"

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Score the share of the patterns that are found."""
        answer = facts.trace.answer
        if answer is None:
            return _score(self.name, self.patterns, list(self.patterns), NO_ANSWER)
        missing = []
        for pattern in self.patterns:
            try:
                if not SEARCH.found(pattern, answer, self.limit_s):
                    missing.append(pattern)
            except TimeoutError:
                return GraderFailure(
                    self.name,
                    f"{shown(pattern)} searched the answer ({len(answer)} characters) for "
                    f"{self.limit_s:g} s without an end; write it so that no part of the text can "
                    "be matched in more than one way, for example without a repeat in a repeat",
                )
            except ValueError as error:
                reason = f"{shown(pattern)} is not a regular expression: {error}"
                return GraderFailure(self.name, reason)
        named = listed([f"{shown(pattern)} is not found" for pattern in missing])
        return _score(self.name, self.patterns, missing, f"{named}; the answer is {shown(answer)}")


def _not_there(text: str, answer: str) -> str:
    hint = ", only in other case" if text.casefold() in answer.casefold() else ""
    return f"{shown(text)} is not there{hint}"


def _score(name: str, asked: tuple[str, ...], missing: list[str], reason: str) -> Score:
    return Score(
        name,
        passed=not missing,
        value=1 - len(missing) / len(asked) if asked else None,
        evidence=Evidence.CLAIMED,
        reason=reason if missing else None,
        details={"missing": missing} if missing else {},
    )
