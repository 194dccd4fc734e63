"""Text that is not to be shown."""

from __future__ import annotations

from typing import Self


class SecretText(str):
    """Text that lets in whoever knows it: whole where it is used, hidden where it is printed.

    A failing test prints the values around it, and so do debuggers; none of them needs this one.
    """

    shown: str
    """What stands for it."""

    def __new__(cls, text: str, shown: str) -> Self:
        """Make one of what it is and of what is shown."""
        made = super().__new__(cls, text)
        made.shown = shown
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # `str` has one less
        """Say what a copy is made of, also one in another process."""
        return str.__str__(self), self.shown

    def __repr__(self) -> str:
        return repr(self.shown)
