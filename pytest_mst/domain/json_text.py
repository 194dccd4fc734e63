"""JSON that stands in a text, read exactly or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from pytest_mst.domain.json_value import JsonValue

MAX_DEPTH = 100
"""Deeper than any call needs to go, and no deeper than is safe to handle."""


class NotJsonError(ValueError):
    """A text is not JSON, or is JSON that readers do not agree on."""


def json_from_text(text: str) -> JsonValue:
    """Read JSON of which every reader understands the same.

    Raises:
        NotJsonError: it is not JSON; a key is written twice in one object, so that it depends on
            the reader which value counts; a number cannot be held exactly as Python has it; or
            values are nested more than `MAX_DEPTH` levels deep.

    """
    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=_object, parse_float=_float, parse_constant=_no_number
        )
    except NotJsonError:
        raise
    except json.JSONDecodeError as error:
        msg = f"{error.msg} at character {error.pos}"
        raise NotJsonError(msg) from error
    except RecursionError as error:
        raise NotJsonError(_TOO_DEEP) from error
    except ValueError as error:  # an integer of more digits than Python takes
        msg = "a number has too many digits"
        raise NotJsonError(msg) from error
    if _is_deeper(value):
        raise NotJsonError(_TOO_DEEP)
    return value


_TOO_DEEP = f"values are nested more than {MAX_DEPTH} levels deep"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) < len(pairs):
        msg = "a key is written twice in one object"
        raise NotJsonError(msg)
    return held


def _float(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        msg = "a number is too large"
        raise NotJsonError(msg)
    return number


def _no_number(name: str) -> float:
    msg = f"{name} is not JSON"
    raise NotJsonError(msg)


def _is_deeper(value: JsonValue) -> bool:
    level = _nested([value])
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = _nested(
            child for held in level for child in (held.values() if isinstance(held, dict) else held)
        )
    return bool(level)


def _nested(values: Iterable[JsonValue]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]
