"""Text from a file as an error shows it: on one line, short, with nothing a terminal would obey."""

from __future__ import annotations

_MAX_CHARS = 60


def quoted(text: str) -> str:
    """Put a text in quotes, what cannot be printed written as an escape."""
    shown = text if len(text) <= _MAX_CHARS else text[: _MAX_CHARS - 1] + "…"
    return '"' + "".join(map(_printed, shown)) + '"'


def _printed(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
