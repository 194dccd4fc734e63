"""One field of a stored JSON object, with its type checked as it is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Stored: TypeAlias = Mapping[str, Any]
"""A JSON object as it was stored; fields that are not known are ignored."""


class StoredFieldError(ValueError):
    """A field of a stored file is missing, has a wrong type, or is outside its closed set."""

    def __init__(self, name: str, found: object, expected: str) -> None:
        """Name the field, what it takes and what was found."""
        self.name = name
        self.found = found
        self.expected = expected
        super().__init__(f"{name!r} takes {expected}, found {found!r:.80}")


def text_field(stored: Stored, name: str, default: str | None = None) -> str:
    """Return a text; the default where the field is absent and there is one.

    Raises:
        StoredFieldError: the field is absent and there is no default, or it is not a text.

    """
    value = stored.get(name, default)
    if not isinstance(value, str):
        raise StoredFieldError(name, value, "a text")
    return value


def optional_text_field(stored: Stored, name: str) -> str | None:
    """Return a text, or `None` where the field is absent or null.

    Raises:
        StoredFieldError: the field is something else.

    """
    return None if stored.get(name) is None else text_field(stored, name)


def integer_field(stored: Stored, name: str, default: int | None = None) -> int:
    """Return a whole number; a float that stored tools wrote is rounded.

    Raises:
        StoredFieldError: the field is absent and there is no default, or it is not a number.

    """
    value = stored.get(name, default)
    if not _is_number(value):
        raise StoredFieldError(name, value, "a number")
    return round(float(value)) if isinstance(value, float) else int(value)


def number_field(stored: Stored, name: str) -> float | None:
    """Return a number, or `None` where the field is absent or null.

    Raises:
        StoredFieldError: the field is something else.

    """
    value = stored.get(name)
    if value is None:
        return None
    if not _is_number(value):
        raise StoredFieldError(name, value, "a number")
    return float(value)


def flag_field(stored: Stored, name: str, default: bool | None = None) -> bool:
    """Return a boolean; the default where the field is absent and there is one.

    Raises:
        StoredFieldError: the field is absent and there is no default, or it is not a boolean.

    """
    value = stored.get(name, default)
    if not isinstance(value, bool):
        raise StoredFieldError(name, value, "true or false")
    return value


def object_field(stored: Stored, name: str) -> Stored:
    """Return an object.

    Raises:
        StoredFieldError: the field is absent or is not an object.

    """
    value = stored.get(name)
    if not isinstance(value, Mapping):
        raise StoredFieldError(name, value, "an object")
    return value


def optional_object_field(stored: Stored, name: str) -> Stored | None:
    """Return an object, or `None` where the field is absent or null.

    Raises:
        StoredFieldError: the field is something else.

    """
    return None if stored.get(name) is None else object_field(stored, name)


def object_list_field(stored: Stored, name: str) -> Iterator[Stored]:
    """Yield the objects of a list; none where the field is absent or null.

    Raises:
        StoredFieldError: the field is not a list of objects.

    """
    for item in _list(stored, name):
        if not isinstance(item, Mapping):
            raise StoredFieldError(name, item, "a list of objects")
        yield item


def text_list_field(stored: Stored, name: str) -> tuple[str, ...]:
    """Return the texts of a list; none where the field is absent or null.

    Raises:
        StoredFieldError: the field is not a list of texts.

    """
    items = _list(stored, name)
    for item in items:
        if not isinstance(item, str):
            raise StoredFieldError(name, item, "a list of texts")
    return tuple(items)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _list(stored: Stored, name: str) -> list[Any]:
    value = stored.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise StoredFieldError(name, value, "a list")
    return value
