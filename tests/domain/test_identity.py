"""What an attempt is of, hashed by part."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.identity import Identity, part_hash
from tests.store.records import json_values

PARTS = st.dictionaries(st.sampled_from(["case", "input", "model", "servers"]), st.text())


@given(PARTS, st.text(), st.text())
def test_the_key_is_of_all_parts_and_of_nothing_else(
    parts: dict[str, str], grading: str, tools: str
) -> None:
    one = Identity(parts, grading, tools)
    assert one.key == Identity(dict(reversed(parts.items())), "g").key
    assert replace(one, grading_key="other", tools="others").key == one.key


@given(PARTS, PARTS)
def test_two_keys_are_equal_exactly_where_no_part_is_named_as_changed(
    now: dict[str, str], then: dict[str, str]
) -> None:
    one, other = Identity(now, ""), Identity(then, "")
    changed = set(one.changed_from(then)) | set(other.changed_from(now))
    assert changed == {name for name in now.keys() | then.keys() if now.get(name) != then.get(name)}
    assert (one.key == other.key) is (not changed)


def test_changed_parts_are_named_in_their_order() -> None:
    one = Identity({"case": "1", "input": "2", "model": "3"}, "")
    assert one.changed_from({"case": "1", "input": "9", "model": "8"}) == ("input", "model")
    assert one.changed_from({}) == ("case", "input", "model")


def test_a_part_that_there_is_no_more_is_named_too() -> None:
    assert Identity({"case": "1"}, "").changed_from({"case": "1", "source": "2"}) == ("source",)


@given(json_values)
def test_a_part_is_twelve_hex_digits_whatever_it_is_of(value: object) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", part_hash(value))


def test_a_part_tells_true_from_one_and_no_order_of_keys_from_another() -> None:
    assert part_hash({"a": True}) != part_hash({"a": 1})
    assert part_hash({"a": 1, "b": 2}) == part_hash({"b": 2, "a": 1})
