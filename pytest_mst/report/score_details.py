"""The details of a score, as far as they are not told elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mst.domain.score import Score, Unknown

_TOLD_ELSEWHERE = frozenset({"input"})
"""What a judge was given is the whole trial; the score's own file has it."""


def details_of(score: Score | Unknown) -> Mapping[str, object]:
    """Return the details of a score without what a judge was given."""
    return {name: value for name, value in score.details.items() if name not in _TOLD_ELSEWHERE}
