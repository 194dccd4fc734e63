"""Graders of the answer. What they score is what the client claims."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.shown import canonical_text, listed, shown

NO_ANSWER: Final = "the client gave no answer"

SEARCH_LIMIT_S: Final = 2.0
"""How long one pattern may search one answer, in seconds of processor time."""


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
                if not found_in(pattern, answer, self.limit_s):
                    missing.append(pattern)
            except TimeoutError:
                return GraderFailure(
                    self.name,
                    f"{shown(pattern)} searched the answer ({len(answer)} characters) for "
                    f"{self.limit_s:g} s without an end; write it so that no part of the text can "
                    "be matched in more than one way, for example without a repeat in a repeat",
                )
            except ValueError as error:
                return GraderFailure(self.name, str(error))
        named = listed([f"{shown(pattern)} is not found" for pattern in missing])
        return _score(self.name, self.patterns, missing, f"{named}; the answer is {shown(answer)}")


def found_in(pattern: str, text: str, limit_s: float) -> bool:
    """Search as `re.search` does, but not for ever.

    Args:
        pattern: a regular expression that `re` compiles.
        text: where to search.
        limit_s: how long to search at most, in seconds of processor time.

    Raises:
        TimeoutError: the limit was reached.
        ValueError: the pattern cannot be read.

    """
    import regex  # of use here only, and 30 ms to load

    try:
        search = regex.compile(as_written_for_re(pattern), regex.VERSION0)
    except regex.error as error:
        msg = f"{shown(pattern)} is not a regular expression: {error}"
        raise ValueError(msg) from error
    return search.search(text, timeout=limit_s, concurrent=True) is not None


_PARTS: Final = re.compile(
    r"""
    (?P<escape> \\N\{[^}]*\} | \\. )
    | (?P<set> \[ \^? \]? (?: \\. | [^\]\\] )* \] )
    | (?P<repeat> \{ \d* (?: , \d* )? \} )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)


def as_written_for_re(pattern: str) -> str:
    """Escape what `regex` reads in its own way, so that a pattern means what it does to `re`.

    To `re` a brace that is no repeat is a brace, and a bracket in a set is a bracket; `regex`
    reads fuzzy matching and POSIX classes there.
    """
    return _PARTS.sub(_escaped, pattern)


def _escaped(part: re.Match[str]) -> str:
    text = part[0]
    if part["set"]:
        return "[" + re.sub(r"(\\.)|\[", lambda m: m[1] or r"\[", text[1:], flags=re.DOTALL)
    if text == "{":
        return r"\{"
    return r"\{\}" if text == "{}" else text


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
