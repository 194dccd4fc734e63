"""Levels of write evidence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.evidence import Evidence, lowest, strongest

LEVELS = st.lists(st.none() | st.sampled_from(Evidence))


def test_levels_stand_from_weakest_to_strongest() -> None:
    assert [level.label for level in sorted(Evidence)] == [
        "claimed",
        "called",
        "requested",
        "applied",
    ]


@pytest.mark.parametrize("level", Evidence)
def test_a_level_is_read_back_from_its_word(level: Evidence) -> None:
    assert Evidence.from_label(level.label) is level


@pytest.mark.parametrize("word", ["", "Claimed", "proven"])
def test_another_word_is_refused_with_the_valid_ones(word: str) -> None:
    with pytest.raises(ValueError, match="claimed, called, requested, applied"):
        Evidence.from_label(word)


@given(LEVELS)
def test_lowest_and_strongest_are_among_the_levels_there_are(
    levels: list[Evidence | None],
) -> None:
    there = [level for level in levels if level is not None]
    weakest, best = lowest(levels), strongest(levels)
    if weakest is None or best is None:
        assert not there
    else:
        assert weakest in there
        assert best in there
        assert all(weakest <= level <= best for level in there)
