"""What the format has and this version does not do yet: refused, never silently ignored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.json_value import JsonValue
from pytest_mst.eval_files.document import Document, KeyPath

_EACH = "*"


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A key, or some values of one, that cannot be honoured yet."""

    path: tuple[str, ...]
    """`*` stands for every key or item."""
    values: frozenset[str | bool] | None = None
    """Only these values; without it anything but null and what is empty."""
    remedy: str = "leave it out"

    def refuses(self, value: JsonValue) -> bool:
        """Whether the value asks for what cannot be done."""
        if self.values is None:
            return bool(value)
        return isinstance(value, str | bool) and value in self.values


_ON: frozenset[str | bool] = frozenset({True})

IN_CONFIG = (
    Unsupported(("variants", _EACH, "tools")),
    Unsupported(("redactStoredResponses",), _ON),
)


def find_unsupported(
    document: Document, entries: tuple[Unsupported, ...]
) -> Iterator[tuple[KeyPath, EvalFileError]]:
    """Find what cannot be honoured, and where it is written."""
    for entry in entries:
        for path, value in _at(document.value, entry.path):
            if entry.refuses(value):
                what = f"{entry.path[-1]} is not supported yet"
                yield path, document.error(path, what, entry.remedy)


def _at(
    value: JsonValue, pattern: tuple[str, ...], path: KeyPath = ()
) -> Iterator[tuple[KeyPath, JsonValue]]:
    if not pattern:
        yield path, value
        return
    step, *rest = pattern
    children: list[tuple[str | int, JsonValue]] = []
    if isinstance(value, dict):
        children = [(key, held) for key, held in value.items() if step in (_EACH, key)]
    elif isinstance(value, list) and step == _EACH:
        children = list(enumerate(value))
    for key, held in children:
        yield from _at(held, tuple(rest), (*path, key))
