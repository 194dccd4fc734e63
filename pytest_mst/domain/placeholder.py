"""`{{trial.id}}`, which stands for what is unique to one attempt, wherever a user may write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar, cast

TRIAL_ID: Final = "{{trial.id}}"

_T = TypeVar("_T")


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
