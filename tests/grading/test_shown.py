"""Values as reasons show them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.grading.shown import VALUE_LIMIT_CHARS, described, listed, named, shown
from tests.grading.test_match_arguments import JSON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 2.5, None, True]}, '{"a": [1, 2.5, null, true]}'),
        (float("inf"), "Infinity"),
        ("line\n\ttab\x1b[31m\x7f\u202e\u200b\u00a0", None),
        ([], "[]"),
        ({}, "{}"),
        ('"\\', '"\\"\\\\"'),
        ("\ud800", '"\\ud800"'),
        ("é 日本 🙂", '"é 日本 🙂"'),
    ],
)
def test_values_are_shown_as_json(value: object, text: str | None) -> None:
    assert json.loads(shown(value)) == value
    assert text in (None, shown(value))


@given(JSON)
def test_every_value_is_one_bounded_line_with_nothing_invisible(value: Any) -> None:
    assert shown(value).isprintable()
    assert len(shown(value)) <= VALUE_LIMIT_CHARS
    if not shown(value).endswith("…") and "{…}" not in shown(value) and "[…]" not in shown(value):
        assert json.loads(shown(value)) == value


def test_a_value_of_any_depth_and_size_is_shown() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    assert shown(deep) == "[[[[[[[[[…]]]]]]]]]"
    assert len(shown({"key" * 1000: ["x" * 10**6] * 1000})) == VALUE_LIMIT_CHARS
    assert len(shown(1 << 100_000)) == VALUE_LIMIT_CHARS


EACH_TYPE: tuple[object, ...] = (None, True, 1, "1", [1], {})


def test_types_are_said_in_words() -> None:
    assert [described(value) for value in EACH_TYPE] == [
        "null",
        "boolean true",
        "number 1",
        'string "1"',
        "array [1]",
        "object {}",
    ]


def test_names_that_come_from_servers_cannot_steer_a_terminal() -> None:
    assert named("chat", "a\x1b[2Jb") == r"chat.a\u001b[2Jb"


@given(st.lists(st.sampled_from(["a", "b"]), max_size=9))
def test_of_many_things_the_first_are_named_and_the_rest_counted(items: list[str]) -> None:
    text = listed(items)
    assert (f"and {len(items) - 5} more" in text) is (len(items) > 5)
