"""JSON as Python values: what counts as equal, and one canonical spelling of a value."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard, TypeVar, cast

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

    `1` equals `1.0`; `True` is not `1`, `"1"` is not `1`, and null is not an absent key. NaN,
    which Python's reader lets in, equals itself, so that this is an equivalence. Works at any
    depth: an agent may nest its arguments deeper than Python calls can go.
    """
    pending: list[tuple[JsonValue, JsonValue]] = [(left, right)]
    while pending:
        one, other = pending.pop()
        if json_type(one) != json_type(other):
            return False
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            pending.extend((value, other[key]) for key, value in one.items())
        elif _is_array(one) and _is_array(other):
            if len(one) != len(other):
                return False
            pending.extend(zip(one, other, strict=True))
        elif one != other and not (_is_nan(one) and _is_nan(other)):
            return False
    return True


def _is_array(value: JsonValue) -> TypeGuard[Sequence[JsonValue]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_nan(value: JsonValue) -> bool:
    return isinstance(value, float) and math.isnan(value)


_Json = TypeVar("_Json", bound=JsonValue)


def snapshot(value: _Json) -> _Json:
    """Return a JSON value as it is now, whatever its owner makes of it later.

    What JSON cannot hold, or not that deep, is returned itself.
    """
    try:
        return cast(_Json, json.loads(json.dumps(value)))
    except (TypeError, ValueError, RecursionError):
        return value


def canonical_json(value: object) -> str:
    """Write a JSON value so that equal values, as `json_equal` has it, have equal text.

    Keys are sorted, the text is ASCII, and a whole number is written as one (`1.0` as `1`).

    Raises:
        TypeError: the value holds something that JSON cannot.

    """
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    return value


def content_hash(value: object) -> str:
    """Hash a JSON value by its canonical text: `sha256:` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(canonical_json(value).encode("ascii")).hexdigest()
