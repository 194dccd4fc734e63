"""Text from outside, made safe to show: control characters are seen, never obeyed."""

from __future__ import annotations

import unicodedata

LIMIT_CHARS = 300
"""How much of one text from outside is shown where nothing else is said."""
_CUT = "..."


def shown(text: str, limit: int = LIMIT_CHARS) -> str:
    r"""Return a text on one line, with nothing in it that a terminal obeys or that is unseen.

    Control characters, line breaks, escapes, marks that turn the direction of writing, and lone
    surrogates are written as Python writes them: `\x1b`, `\n`, `\u202e`, `\ud83d`.

    Args:
        text: any text.
        limit: the most characters of the result; what is cut off is marked by `...`.

    """
    visible = text[: limit + 1]
    if not visible.isprintable():
        visible = "".join(char if _harmless(char) else _escaped(char) for char in visible)
    if len(visible) > limit:
        return visible[: max(0, limit - len(_CUT))] + _CUT
    return visible


def counted(count: int, what: str) -> str:
    """Write how many there are of something whose plural ends in `s`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def percent(share: float) -> str:
    """Write a share, 0 to 1, as a percentage: `100%` and `0%` are said of all and of none only."""
    rounded = round(share * 100, 1)
    if share < 1:
        rounded = min(rounded, 99.9)
    if share > 0:
        rounded = max(rounded, 0.1)
    return f"{rounded:g}%"


def _harmless(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
