"""Short texts that match a regular expression, for schemas that ask for a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as names  # type: ignore[attr-defined]  # has no public counterpart
from re import _parser  # type: ignore[attr-defined]  # the only parser of Python's own patterns
from typing import Any

_CATEGORY = {
    names.CATEGORY_DIGIT: "0",
    names.CATEGORY_NOT_DIGIT: "a",
    names.CATEGORY_SPACE: " ",
    names.CATEGORY_NOT_SPACE: "a",
    names.CATEGORY_WORD: "a",
    names.CATEGORY_NOT_WORD: "-",
}
_TRIED = "a0A-_ .:/@#"
"""One of these is in most sets that are given by what they leave out."""


def texts_matching(pattern: str, least_length: int) -> Iterator[str]:
    """Give texts that probably match; the caller checks them.

    Args:
        pattern: a regular expression; one that Python cannot read gives nothing.
        least_length: how long a text must be, in characters.

    """
    try:
        parsed = _parser.parse(pattern)
    except (re.error, OverflowError):
        return
    for times in (0, 1, least_length):
        yield "".join(_text(op, value, times) for op, value in parsed)


def _text(op: Any, value: Any, times: int) -> str:
    """Write one element; what has no text of its own, such as an anchor, writes none."""
    match op:
        case names.LITERAL:
            return chr(value)
        case names.NOT_LITERAL:
            return _TRIED[0] if ord(_TRIED[0]) != value else _TRIED[1]
        case names.ANY:
            return "a"
        case names.IN:
            return _one_of(value)
        case names.BRANCH:
            return _texts(value[1][0], times)
        case names.SUBPATTERN:
            return _texts(value[-1], times)
        case names.MAX_REPEAT | names.MIN_REPEAT | names.POSSESSIVE_REPEAT:
            least, most, inner = value
            count: int = min(max(least, times), most)
            return _texts(inner, times) * count
        case _:
            return ""


def _texts(elements: Sequence[tuple[Any, Any]], times: int) -> str:
    return "".join(_text(op, value, times) for op, value in elements)


def _one_of(members: Sequence[tuple[Any, Any]]) -> str:
    if members[0][0] is names.NEGATE:
        return next((one for one in _TRIED if not _has(members[1:], one)), "~")
    op, value = members[0]
    match op:
        case names.RANGE:
            return chr(value[0])
        case names.CATEGORY:
            return _CATEGORY.get(value, "a")
        case _:
            return chr(value)


def _has(members: Sequence[tuple[Any, Any]], text: str) -> bool:
    for op, value in members:
        if op is names.RANGE and value[0] <= ord(text) <= value[1]:
            return True
        if op is names.LITERAL and value == ord(text):
            return True
        if op is names.CATEGORY and _CATEGORY.get(value) == text:
            return True
    return False
