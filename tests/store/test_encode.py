"""Any value as one line of JSON."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from pytest_mst.store.encode import encode
from tests.store.records import json_values


class Word(StrEnum):
    ONE = "one"


class Number(IntEnum):
    TWO = 2


class Plain(Enum):
    THREE = "three"


STORED_AS: list[tuple[object, object]] = [
    (datetime(2026, 11, 30, 9, 45, tzinfo=UTC), "2026-11-30T09:45:00+00:00"),
    (date(2026, 1, 2), "2026-01-02"),
    (Decimal("1.10"), "1.10"),
    ({"b", "a"}, "{a, b}"),
    (Word.ONE, "one"),
    (Number.TWO, 2),
    (Plain.THREE, "three"),
    (Path("a/b"), "a/b"),
    (b"caf\xc3\xa9 \xff", "caf\u00e9 \\xff"),
    (math.nan, "NaN"),
    (math.inf, "Infinity"),
    (-math.inf, "-Infinity"),
    ((1, 2), [1, 2]),
    (range(2), [0, 1]),
    (MappingProxyType({"a": 1}), {"a": 1}),
    (OrderedDict(a={1.5: None}), {"a": {"1.5": None}}),
    ({None: 1, True: 2, (1, 2): 3, b"k": 4}, {"null": 1, "true": 2, "[1, 2]": 3, "k": 4}),
    (10**5000, hex(10**5000)),
    ("bad \ud83d end", "bad \ud83d end"),
    ("a\u0085b\u2028c\u000bd\u000ce", "a\u0085b\u2028c\u000bd\u000ce"),
]


@given(json_values)
def test_json_reads_back_as_it_was(value: object) -> None:
    text = encode(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert "\n" not in text


@pytest.mark.parametrize("number", range(len(STORED_AS)))
def test_what_json_cannot_hold_is_stored_as_text(number: int) -> None:
    value, stored = STORED_AS[number]
    assert json.loads(encode(value)) == stored
    assert json.loads(encode({"in": [value, math.nan]})) == {"in": [stored, "NaN"]}


def test_a_value_that_holds_itself_is_cut_where_it_does() -> None:
    circle: list[object] = [1]
    circle.append({"again": circle})
    assert json.loads(encode(circle)) == [1, {"again": "[circular]"}]


def test_a_value_nested_deeper_than_python_can_go_is_kept_as_json_text() -> None:
    deep: Any = "bottom"
    for _ in range(30_000):
        deep = {"k": [deep, 1]}
    stored = json.loads(encode(deep))
    while isinstance(stored, Mapping):
        assert stored["k"][1] == 1
        stored = stored["k"][0]
    assert stored.startswith('{"k":[{"k":[')
    assert stored.endswith(",1]},1]}")
    assert stored.count('"bottom"') == 1
    assert stored.count("[") == stored.count("]")
