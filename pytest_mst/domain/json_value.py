"""JSON as Python values: what counts as equal, and one canonical spelling of a value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JsonValue: TypeAlias = (
    "bool | int | float | str | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)
"""A value that JSON can hold, as `json.loads` gives it."""

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""A JSON object."""


def json_type(value: object) -> str:
    """Name the JSON type of a Python value: null, boolean, number, string, array or object."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    return "array"


def json_equal(left: JsonValue, right: JsonValue) -> bool:
    """Tell whether two JSON values are equal, with JSON's types kept apart.

    `1` equals `1.0`; `True` is not `1`, `"1"` is not `1`, and null is not an absent key.
    """
    if json_type(left) != json_type(right):
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(json_equal(v, right[k]) for k, v in left.items())
    if isinstance(left, str) or isinstance(right, str):
        return left == right
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return left == right


def canonical_json(value: object) -> str:
    """Write a JSON value so that equal values have equal text (keys sorted, ASCII only)."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def content_hash(value: object) -> str:
    """Hash a JSON value by its canonical text: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()
