"""How far a score about a write can be trusted."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class Evidence(IntEnum):
    """Levels of write evidence, weakest first, so that they compare and `min` works."""

    CLAIMED = 1
    """The answer says so."""
    CALLED = 2
    """The client's trace has the call."""
    REQUESTED = 3
    """A boundary this project owns saw the call."""
    APPLIED = 4
    """A read through our own connection found the effect."""

    @property
    def label(self) -> str:
        """The word that stored files and people see."""
        return self.name.lower()

    @classmethod
    def from_label(cls, label: str) -> Evidence:
        """Read the word back.

        Raises:
            ValueError: the word is not a level.

        """
        for level in cls:
            if level.label == label:
                return level
        valid = ", ".join(level.label for level in cls)
        msg = f"{label!r} is not an evidence level; valid: {valid}"
        raise ValueError(msg)


def lowest(levels: Iterable[Evidence | None]) -> Evidence | None:
    """Return the weakest of the levels there are, `None` for none."""
    return min((level for level in levels if level is not None), default=None)


def strongest(levels: Iterable[Evidence | None]) -> Evidence | None:
    """Return the strongest of the levels there are, `None` for none."""
    return max((level for level in levels if level is not None), default=None)
