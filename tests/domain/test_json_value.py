"""Equality and the canonical spelling of JSON values."""

from __future__ import annotations

import json
import math
from collections import UserDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.json_value import (
    canonical_json,
    content_hash,
    json_equal,
    json_type,
    snapshot,
)

# Few leaves, alike in Python and not in JSON, so that equal pairs and near misses are common.
LEAVES = st.sampled_from([None, True, False, 0, 1, 0.0, 1.0, -0.0, math.nan, "", "1", "\ud800"])
JSON = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(JSON)
def test_a_value_equals_itself(value: Any) -> None:
    assert json_equal(value, value)
    assert json_equal(value, json.loads(json.dumps(value)))


@given(JSON, JSON)
def test_equality_has_no_direction(one: Any, other: Any) -> None:
    assert json_equal(one, other) is json_equal(other, one)


@given(JSON, JSON, JSON)
def test_values_that_equal_a_third_equal_each_other(one: Any, other: Any, third: Any) -> None:
    if json_equal(one, other) and json_equal(other, third):
        assert json_equal(one, third)


@given(JSON, JSON)
def test_the_canonical_text_is_the_same_for_equal_values_and_for_no_others(
    one: Any, other: Any
) -> None:
    assert (canonical_json(one) == canonical_json(other)) is json_equal(one, other)
    assert (content_hash(one) == content_hash(other)) is json_equal(one, other)


@given(JSON)
def test_the_canonical_text_can_be_read_back(value: Any) -> None:
    assert json_equal(json.loads(canonical_json(value)), value)


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (1, 1.0, True),
        (2.5, 2.50, True),
        (2**53 + 1, float(2**53), False),
        (10**400, 1e308, False),
        (True, 1, False),
        (False, 0, False),
        ("1", 1, False),
        (None, False, False),
        ({"a": None}, {}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        ("", [], False),
        ("é", "e\u0301", False),
    ],
)
def test_json_types_are_kept_apart(left: Any, right: Any, equal: bool) -> None:
    assert json_equal(left, right) is equal


def test_values_nested_deeper_than_the_stack_are_compared() -> None:
    one: Any = 1
    other: Any = 2
    for _ in range(5_000):
        one, other = [{"in": one}], [{"in": other}]
    assert json_equal(one, one)
    assert not json_equal(one, other)


def test_any_mapping_is_an_object() -> None:
    wrapped: Any = UserDict({"b": 1.0, "a": (1,)})
    assert json_type(wrapped) == "object"
    assert canonical_json(wrapped) == '{"a":[1],"b":1}'


def test_what_json_cannot_hold_has_no_canonical_text() -> None:
    with pytest.raises(TypeError):
        canonical_json({"when": {1, 2}})


def test_the_hash_names_its_algorithm() -> None:
    algorithm, digest = content_hash({}).split(":")
    assert algorithm == "sha256"
    assert len(digest) == 64


def test_a_snapshot_stays_as_it_was() -> None:
    owned: Any = {"a": [1, {"b": "\ud83d"}], "n": 1.0, "t": True}
    kept = snapshot(owned)
    owned["a"][1]["b"] = "changed"
    owned["n"] = 2
    assert kept == {"a": [1, {"b": "\ud83d"}], "n": 1.0, "t": True}


def test_what_json_cannot_hold_is_its_own_snapshot() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    circle: Any = []
    circle.append(circle)
    unknown: Any = {"when": {1, 2}}
    for value in (unknown, deep, circle):
        assert snapshot(value) is value
