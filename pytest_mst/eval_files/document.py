"""A file read as JSON values, and the line of everything in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pytest_mst.domain.errors import EvalFileError, Place
from pytest_mst.domain.json_value import JsonValue
from pytest_mst.eval_files.quoted import quoted

KeyPath: TypeAlias = tuple[str | int, ...]
"""Where a value is: the keys and 0-based positions that lead to it."""

_PLAIN_KEY = re.compile(r"[\w$-]+")


class Lines(Protocol):
    """Finds the lines of a file's values, as far as they are asked for."""

    def line_of(self, path: KeyPath) -> int:
        """Return the 1-based line of a key or list item, or of the nearest one above it."""
        ...


class NoLines:
    """The lines of a file that could not be read."""

    def line_of(self, path: KeyPath) -> int:
        """Return the first line, whatever is asked for."""
        del path
        return 1


@dataclass(frozen=True, slots=True)
class Document:
    """A file read as JSON values."""

    file: str
    """As the user would write it."""
    value: JsonValue
    lines: Lines
    problems: tuple[EvalFileError, ...] = ()
    """What is wrong with it as a file of JSON values, such as a key written twice."""

    def place(self, path: KeyPath) -> Place:
        """Return where a value is written; a missing one is where it would belong."""
        return Place(self.file, self.lines.line_of(path), path_text(path))

    def error(self, path: KeyPath, problem: str, remedy: str | None = None) -> EvalFileError:
        """Build an error about the value at a path."""
        return EvalFileError(self.place(path), problem, remedy)


def path_text(path: KeyPath) -> str | None:
    """Write a path as people do, `cases[2].expected.writes`; `None` for the whole file."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not _PLAIN_KEY.fullmatch(step):
            text += f"[{quoted(step)}]"
        else:
            text += f".{step}" if text else step
    return text or None
