"""One stored file that holds one JSON object."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pytest_mst.domain.stored_field import Stored
from pytest_mst.store.failure import store_error
from pytest_mst.store.layout import RUN_FORMAT


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What is wrong with a file that is there."""

    problem: str


def read_object(path: str | Path) -> Stored | Unreadable | None:
    """Read a file that is one JSON object: torn, of another kind or closed to us is told.

    `None` where there is no such file.
    """
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - several times cheaper, many files
            stored = json.loads(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return Unreadable(store_error(path, "read", error).problem)
    except (ValueError, RecursionError) as error:
        return Unreadable(f"cannot be read as JSON: {error}")
    return stored if isinstance(stored, dict) else Unreadable("is not a JSON object")


def format_problem(stored: Stored) -> str | None:
    """Say what is wrong with the format that a stored file says it has; `None` where it is ours.

    A file of another version is never read as if it were of this one.
    """
    found = stored.get("format")
    if found == RUN_FORMAT:
        return None
    if found is None:
        return f"does not say its format; what can be read here says {RUN_FORMAT!r}"
    return f"is of the format {found!r:.80}; what can be read here is {RUN_FORMAT!r}"
