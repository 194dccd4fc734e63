"""JSON in a text: exactly, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.json_text import MAX_DEPTH, NotJsonError, json_from_text

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_what_was_written_is_read(value: Any) -> None:
    assert json_from_text(json.dumps(value)) == value


def test_large_integers_are_exact() -> None:
    assert json_from_text("[1915883588174806058, 1e2]") == [1915883588174806058, 100.0]
    assert json_from_text("9" * 4000) == int("9" * 4000)


@pytest.mark.parametrize(
    "text",
    [
        "{title:",
        "",
        "{} {}",
        "{'a': 1}",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e400",
        "9" * 5000,
        '{"a": 1, "a": 2}',
        '{"x": [{"a": 1, "b": 1, "a": 1}]}',
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" * 100_000,
        '{"a":' * 100_000,
        "\ufeff{}",
    ],
    ids=lambda text: text[:20],
)
def test_what_readers_do_not_agree_on_is_refused(text: str) -> None:
    with pytest.raises(NotJsonError):
        json_from_text(text)


def test_what_is_nested_as_deep_as_is_safe_is_read() -> None:
    assert json_from_text("[" * MAX_DEPTH + "]" * MAX_DEPTH)
