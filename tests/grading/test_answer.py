"""Graders of the answer."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GraderFailure, Score
from pytest_mst.grading.answer import ContainsText, MatchesPattern
from pytest_mst.grading.pattern_search import SEARCH, PatternSearch
from tests.grading.trials import facts_of


def contains(answer: str | None, *texts: str) -> Score:
    score = ContainsText(texts).grade(facts_of(answer=answer))
    assert isinstance(score, Score)
    assert score.evidence is Evidence.CLAIMED
    return score


def matches(answer: str | None, *patterns: str) -> Score:
    score = MatchesPattern(patterns).grade(facts_of(answer=answer))
    assert isinstance(score, Score)
    assert score.evidence is Evidence.CLAIMED
    return score


def test_each_text_must_be_in_the_answer() -> None:
    assert contains("It is posted in #team.", "posted", "#team").passed
    score = contains("It is posted.", "posted", "#team")
    assert not score.passed
    assert score.value == 0.5
    assert score.details == {"missing": ["#team"]}
    assert score.reason == '"#team" is not there; the answer is "It is posted."'


def test_case_counts_and_a_text_in_other_case_is_pointed_at() -> None:
    score = contains("It is Posted.", "posted")
    assert not score.passed
    assert score.reason is not None
    assert "only in other case" in score.reason


@pytest.mark.parametrize(
    ("answer", "text", "passes"),
    [
        ("un cafe\u0301 noir", "caf\u00e9", True),
        ("un caf\u00e9 noir", "cafe\u0301", True),
        ("un caf\u00e9 noir", "cafe", False),
        ("un cafe\u0301 noir", "cafe", False),
        ("\ufb01le", "file", False),
        ("a\u00a0b", "a b", False),
        ("stra\u00dfe", "strasse", False),
    ],
)
def test_only_canonically_equivalent_texts_are_the_same(
    answer: str, text: str, passes: bool
) -> None:
    assert contains(answer, text).passed is passes


def test_no_answer_contains_nothing_and_matches_nothing() -> None:
    assert contains(None, "a").reason == "the client gave no answer"
    score = matches(None, "")
    assert not score.passed
    assert score.reason == "the client gave no answer"
    assert contains("", "a").reason != "the client gave no answer"


def test_a_long_answer_is_not_repeated_whole() -> None:
    reason = contains("\x1b[31m" + "long " * 10_000, "short").reason
    assert reason is not None
    assert len(reason) < 300
    assert reason.isprintable()


def test_each_pattern_must_be_found_somewhere() -> None:
    assert matches("posted in #team", r"#\w+", "^posted").passed
    score = matches("posted in #team", r"#\w+", "^#")
    assert not score.passed
    assert score.value == 0.5
    assert score.reason == '"^#" is not found; the answer is "posted in #team"'


def test_a_pattern_that_searches_without_end_is_a_grader_that_did_not_run() -> None:
    grader = MatchesPattern((r"^(a|aa)+$",), limit_s=0.05)
    failure = grader.grade(facts_of(answer="a" * 200 + "b"))
    assert isinstance(failure, GraderFailure)
    assert "without an end" in failure.reason


def test_a_pattern_that_cannot_be_read_is_a_grader_that_did_not_run() -> None:
    failure = MatchesPattern(("(",)).grade(facts_of(answer="a"))
    assert isinstance(failure, GraderFailure)
    assert "is not a regular expression" in failure.reason


def test_the_next_search_is_answered_after_one_that_was_ended() -> None:
    assert isinstance(
        MatchesPattern((r"^(a|aa)+$",), limit_s=0.05).grade(facts_of(answer="a" * 200 + "b")),
        GraderFailure,
    )
    assert matches("posted in #team", r"#\w+").passed


PLAIN = list("ab1e-:,.{}[]()|*?+^$\\")
PATTERNS = st.lists(st.sampled_from(PLAIN), max_size=8).map("".join)
TEXTS = st.text(max_size=6) | st.text(alphabet="ab1e{}[]:-,\\\ud83d\n", max_size=6)


@given(PATTERNS, TEXTS)
def test_any_pattern_finds_what_re_finds(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            expected = re.search(pattern, text) is not None
        except re.error:
            with pytest.raises(ValueError, match=r"."):
                SEARCH.found(pattern, text, limit_s=10)
            return
    assert SEARCH.found(pattern, text, limit_s=10) is expected


def test_a_search_goes_on_where_its_process_was_ended_by_somebody_else() -> None:
    search = PatternSearch()
    try:
        assert search.found("a+", "baa", limit_s=10)
        process = search._process
        assert process is not None
        process.kill()
        process.wait()
        assert search.found("a+", "baa", limit_s=10)
        with pytest.raises(TimeoutError):
            search.found("(a|aa)+$", "a" * 60 + "b", limit_s=0.1)
        assert not search.found("a+", "b", limit_s=10)
    finally:
        search.close()
