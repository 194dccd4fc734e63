"""Any Python value as one line of JSON text: what JSON cannot hold becomes text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from enum import Enum
from typing import TypeAlias

PlainValue: TypeAlias = "bool | int | float | str | list[PlainValue] | dict[str, PlainValue] | None"
"""What Python's `json` writes as it is."""

_DEPTH_LIMIT = 100
"""Deeper levels are kept as JSON text: readers have limits, and an agent may nest without any."""
_LARGEST_INT_BITS = 4096
"""Python refuses to write longer integers in decimal digits."""


def encode(value: object) -> str:
    """Write a value as JSON text without line breaks, in ASCII, so that lone surrogates survive.

    Numbers that are not finite become the texts `NaN`, `Infinity` and `-Infinity`; moments,
    decimals, paths, bytes, sets, enums and other objects become text.
    """
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):
        # keys that are no texts, numbers that JSON has not, circles, great depth
        return _encoder.encode(plain(value))


def plain(value: object) -> PlainValue:
    """Return the value with everything that JSON cannot hold as text."""
    return _plain(value, ())


def _plain(value: object, above: tuple[int, ...]) -> PlainValue:
    """Convert one level; `above` has the identities of the containers this one is in."""
    match value:
        case str():
            return str.__str__(value)
        case None | bool():
            return value
        case int():
            return int(value) if value.bit_length() <= _LARGEST_INT_BITS else hex(value)
        case float():
            return float(value) if math.isfinite(value) else _not_finite(value)
        case Mapping() | list() | tuple():
            if id(value) in above:
                return "[circular]"
            if len(above) == _DEPTH_LIMIT:
                return _flat(value)
            inside = (*above, id(value))
            if isinstance(value, Mapping):
                return {_key(key): _plain(held, inside) for key, held in value.items()}
            return [_plain(held, inside) for held in value]
        case _:
            return _plain(_default(value), above)


def _key(key: object) -> str:
    match key:
        case str():
            return str.__str__(key)
        case None | bool():
            return json.dumps(key)
        case _:
            return str(_plain(key, ()))


def _default(value: object) -> dict[object, object] | list[object] | str:
    """Say what an object that JSON does not know is written as."""
    match value:
        case Mapping():
            return dict(value)
        case Enum():
            return str(value.value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode("utf-8", "backslashreplace")
        case datetime() | date() | time():
            return value.isoformat()
        case AbstractSet():
            return "{" + ", ".join(sorted(str(held) for held in value)) + "}"
        case Sequence():
            return list(value)
        case _:
            return str(value)


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _flat(value: object) -> str:
    """Write a deeply nested value as JSON text, with a stack of our own."""
    pieces: list[str] = []
    pending: list[object] = [value]
    while pending:
        one = pending.pop()
        match one:
            case _Written():
                pieces.append(one)
            case Mapping():
                pending.append(_Written("}"))
                for index, (key, held) in reversed(list(enumerate(one.items()))):
                    comma = "," if index else ""
                    pending += [held, _Written(f"{comma}{json.dumps(_key(key))}:")]
                pending.append(_Written("{"))
            case list() | tuple():
                pending.append(_Written("]"))
                for index, held in reversed(list(enumerate(one))):
                    pending += [held, _Written("," if index else "")]
                pending.append(_Written("["))
            case _:
                pieces.append(json.dumps(_plain(one, ())))
    return "".join(pieces)


class _Written(str):
    """A piece of JSON text that is written already."""

    __slots__ = ()


_encoder = json.JSONEncoder(
    ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_default
)
