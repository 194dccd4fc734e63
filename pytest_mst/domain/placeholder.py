"""`{{trial.id}}`, which stands for what is unique to one attempt, wherever a user may write it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, cast

TRIAL_ID: Final = "{{trial.id}}"
INPUT: Final = "{{input}}"
"""The case's input, in `inputTemplate` alone."""

_T = TypeVar("_T")
_IN_BRACES: Final = re.compile(r"\{\{[^{}]{1,40}\}\}")
_ALIKE: Final = 0.82
"""How alike two names are of which one is a slip: `trail.id` is `trial.id`, `serial.id` is not."""


def filled(value: _T, trial_id: str) -> _T:
    """Return a JSON value with the trial id in every text of it, keys too.

    Args:
        value: as a user wrote it: of any depth that was read from a file.
        trial_id: letters and digits only, so that it changes nothing around it.

    """
    return cast("_T", _filled(value, trial_id))


def _filled(value: object, trial_id: str) -> object:
    match value:
        case str():
            return value.replace(TRIAL_ID, trial_id)
        case Mapping():
            return {_filled(key, trial_id): _filled(held, trial_id) for key, held in value.items()}
        case list():
            return [_filled(held, trial_id) for held in value]
        case tuple():
            return tuple(_filled(held, trial_id) for held in value)
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Misspelt:
    """What is all but a placeholder, and would be left as it is written."""

    path: tuple[str | int, ...]
    """The keys and 0-based positions that lead to its text."""
    written: str
    meant: str


def misspelt(value: object, known: Sequence[str] = (TRIAL_ID,)) -> Iterator[Misspelt]:
    """Find what was meant to be a placeholder, in every text of a JSON value, keys too.

    Other braces are text, such as those of another template language.

    Args:
        value: as a user wrote it.
        known: the placeholders that are filled in there.

    """
    by_name = {_plain(one): one for one in known}
    for path, text in _texts(value, ()):
        for written in _IN_BRACES.findall(text):
            if written in known:
                continue
            near = difflib.get_close_matches(_plain(written), by_name, n=1, cutoff=_ALIKE)
            if near:
                yield Misspelt(path, written, by_name[near[0]])


def _texts(
    value: object, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, held in value.items():
                yield (*path, key), key
                yield from _texts(held, (*path, key))
        case list() | tuple():
            for index, held in enumerate(value):
                yield from _texts(held, (*path, index))
        case _:
            pass  # no text


def _plain(placeholder: str) -> str:
    """Return a name without its braces, and without what is easily got wrong in one."""
    return re.sub(r"[{}\s._-]", "", placeholder).lower()
