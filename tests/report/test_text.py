"""Text from outside is seen, never obeyed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.report.text import percent, shown
from tests.store.records import texts


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("plain text", "plain text"),
        ("日本語 caf\u00e9", "日本語 caf\u00e9"),
        ("a\x1b[31mred\x07", "a\\x1b[31mred\\x07"),
        ("two\nlines\r\ttab", "two\\nlines\\r\\ttab"),
        ("\u202eturned\u2028", "\\u202eturned\\u2028"),
        ("bad \ud83d end", "bad \\ud83d end"),
        ("\x9b31m\x7f\x00", "\\x9b31m\\x7f\\x00"),
        ("wide\u3000space", "wide\u3000space"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text: str, visible: str) -> None:
    assert shown(text) == visible


@given(texts, st.integers(5, 30))
def test_shown_text_is_short_printable_and_can_be_written(text: str, limit: int) -> None:
    visible = shown(text, limit)
    assert len(visible) <= limit
    visible.encode("utf-8")
    assert all(char.isprintable() or char.isspace() for char in visible)
    assert "\n" not in visible


def test_a_long_text_is_cut_and_says_so() -> None:
    assert shown("x" * 1_000_000, 10) == "xxxxxxx..."
    assert shown("x" * 10, 10) == "x" * 10


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (1, "100%"),
        (0.5, "50%"),
        (2 / 3, "66.7%"),
        (9999 / 10_000, "99.9%"),
        (1 / 10_000, "0.1%"),
    ],
)
def test_a_share_is_said_of_all_and_of_none_only_where_it_is_so(share: float, text: str) -> None:
    assert percent(share) == text
