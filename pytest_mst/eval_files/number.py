"""JSON's numbers as Python's, exactly or not at all."""

from __future__ import annotations

import math

_MAX_DIGITS = 4300
"""As many as Python turns into an integer (CPython 3.11, `sys.int_info`)."""


class UnfitNumberError(ValueError):
    """A number is written that cannot be held."""

    def __init__(self, literal: str) -> None:
        """Keep the number as it was written."""
        self.literal = literal
        super().__init__(self.problem)

    @property
    def problem(self) -> str:
        """What is wrong with it."""
        shown = self.literal if len(self.literal) <= 20 else self.literal[:20] + "…"  # noqa: PLR2004
        return f"{shown} is not a number that JSON and Python can both hold"


def whole_number(literal: str) -> int:
    """Read an integer of any size.

    Raises:
        UnfitNumberError: it has more than 4,300 digits.

    """
    if len(literal) > _MAX_DIGITS:
        raise UnfitNumberError(literal)
    return int(literal)


def fraction(literal: str) -> float:
    """Read a number that has a fraction or an exponent.

    Raises:
        UnfitNumberError: it is too large for a float.

    """
    number = float(literal)
    if math.isinf(number):
        raise UnfitNumberError(literal)
    return number


def no_number(name: str) -> float:
    """Refuse `NaN` and `Infinity`, which Python's JSON reader would take.

    Raises:
        UnfitNumberError: always.

    """
    raise UnfitNumberError(name)
