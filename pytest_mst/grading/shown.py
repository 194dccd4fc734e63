"""Values and calls as reasons show them: bounded, as JSON, with nothing in them invisible."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from pytest_mst.domain.json_value import JsonObject, json_type

VALUE_LIMIT_CHARS = 200
"""How much of one value a reason shows."""
LIST_LIMIT = 5
"""How many of several things a reason names."""
_DEPTH_LIMIT = 8
_CONTEXT_CHARS = 60
_LARGEST_INT_BITS = 4096
"""Python refuses to write longer integers in decimal digits."""


def shown(value: object, limit_chars: int = VALUE_LIMIT_CHARS) -> str:
    r"""Write a JSON value on one line, cut at a limit.

    Characters that cannot be seen or that steer a terminal are written as `\uXXXX`, a line's
    end as `\n`, so that what differs can be seen and nothing is obeyed.

    Args:
        value: a JSON value of any size and depth.
        limit_chars: the length at which the text is cut; the cut is marked with an ellipsis.

    """
    text = ""
    for piece in _pieces(value, limit_chars, 0):
        text += piece
        if len(text) > limit_chars:
            return text[: limit_chars - 1] + "…"
    return text


def described(value: object) -> str:
    """Write a JSON value with its type in words, such as `string "1"`."""
    if value is None:
        return "null"
    return f"{json_type(value)} {shown(value)}"


def shown_call(server: str | None, tool: str, arguments: JsonObject) -> str:
    """Write a call as `server.tool {arguments}`."""
    return f"{named(server, tool)} {shown(arguments)}"


def named(server: str | None, tool: str) -> str:
    """Write a tool's name with its server's label, where there is one."""
    return _visible(tool) if server is None else f"{_visible(server)}.{_visible(tool)}"


def listed(items: Sequence[str]) -> str:
    """Join the first few, and say how many more there are."""
    more = len(items) - LIST_LIMIT
    return "; ".join(items[:LIST_LIMIT]) + (f"; and {more} more" if more > 0 else "")


def text_difference(expected: str, found: str) -> tuple[str, str, str | None]:
    """Show two texts that differ: both, near their first difference, and a note.

    The note names the two code points where they may look the same, which is where one of them
    is not plain ASCII, and the place of the difference where the texts are too long to show.

    Returns:
        the expected text, the found text, and the note, if there is one.

    """
    want, got = canonical_text(expected), canonical_text(found)
    shorter = min(len(want), len(got))
    at = next((i for i in range(shorter) if want[i] != got[i]), shorter)
    notes = []
    if max(len(want), len(got)) > VALUE_LIMIT_CHARS:
        notes.append(f"shown near character {at}, of {len(want)} expected and {len(got)} found")
        want_shown, got_shown = _near(want, at), _near(got, at)
    else:
        want_shown, got_shown = shown(expected), shown(found)
    points = (_code_point(want, at), _code_point(got, at))
    if not (want[at : at + 1] + got[at : at + 1]).isascii():
        notes.append(f"at character {at} expected {points[0]}, found {points[1]}")
    return f"string {want_shown}", f"string {got_shown}", "; ".join(notes) or None


def canonical_text(text: str) -> str:
    """Return the text in NFC, in which canonically equivalent texts are the same."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def same_text(one: str, other: str) -> bool:
    """Tell whether two texts are canonically equivalent.

    `é` is one character or two and means the same. Nothing else is folded: case, compatibility
    forms such as ligatures, and kinds of space stay apart.
    """
    return one == other or canonical_text(one) == canonical_text(other)


def _near(text: str, at: int) -> str:
    start, end = max(0, at - _CONTEXT_CHARS), at + _CONTEXT_CHARS
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return before + shown(text[start:end]) + after


def _code_point(text: str, at: int) -> str:
    if at >= len(text):
        return "the end"
    return f"U+{ord(text[at]):04X} {unicodedata.name(text[at], '')}".rstrip()


def _pieces(value: object, limit_chars: int, depth: int) -> Iterator[str]:
    """Write a value piece by piece, so that a large one is never written whole."""
    if isinstance(value, str):
        yield '"' + _visible(value[: limit_chars + 1], quoted=True) + '"'
    elif isinstance(value, Mapping):
        yield from _members(value, limit_chars, depth)
    elif isinstance(value, list | tuple):
        yield from _elements(value, limit_chars, depth)
    else:
        yield _scalar(value)


def _members(value: Mapping[str, object], limit_chars: int, depth: int) -> Iterator[str]:
    if value and depth >= _DEPTH_LIMIT:
        yield "{…}"
        return
    separator = "{"
    for key, held in value.items():
        yield f"{separator}{shown(str(key), limit_chars)}: "
        yield from _pieces(held, limit_chars, depth + 1)
        separator = ", "
    yield "}" if value else "{}"


def _elements(value: Sequence[object], limit_chars: int, depth: int) -> Iterator[str]:
    if value and depth >= _DEPTH_LIMIT:
        yield "[…]"
        return
    separator = "["
    for held in value:
        yield separator
        yield from _pieces(held, limit_chars, depth + 1)
        separator = ", "
    yield "]" if value else "[]"


def _scalar(value: object) -> str:
    if value is None or isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int) and value.bit_length() > _LARGEST_INT_BITS:
        return hex(value)
    return _visible(str(value))


def _visible(text: str, *, quoted: bool = False) -> str:
    """Write invisible characters as JSON escapes; with `quoted`, all that JSON escapes."""
    if quoted:
        text = json.dumps(text, ensure_ascii=False)[1:-1]
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
