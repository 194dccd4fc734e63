"""JSON text as a document: duplicate keys refused, lines found when they are asked for."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from pytest_mst.domain.errors import EvalFileError, EvalFileErrors, Place
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.nesting import MAX_DEPTH, too_deep
from pytest_mst.eval_files.number import UnfitNumberError, fraction, no_number, whole_number
from pytest_mst.eval_files.repeated_key import repeated_key

_SPACE = re.compile(r"[ \t\n\r]*")


def read_json(text: str, file: str) -> Document:
    """Read JSON.

    Args:
        text: the content of the file.
        file: the file as the user would write it.

    Raises:
        EvalFileErrors: it is not JSON.

    """
    if not text.strip():
        raise _refused(file, 1, "the file is empty")
    repeated = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        held = dict(found)
        repeated = repeated or len(held) < len(found)
        return held

    try:
        value = json.loads(
            text,
            object_pairs_hook=pairs,
            parse_int=whole_number,
            parse_float=fraction,
            parse_constant=no_number,
        )
    except json.JSONDecodeError as error:
        raise _refused(file, error.lineno, f"not JSON: {error.msg}") from error
    except UnfitNumberError as error:
        line = text.count("\n", 0, text.find(error.literal)) + 1
        raise _refused(file, line, error.problem) from error
    except RecursionError as error:
        raise _refused(file, 1, too_deep()) from error
    if _depth_exceeds(value, MAX_DEPTH):
        raise _refused(file, 1, too_deep())
    lines = JsonLines(text)
    problems = tuple(_repeated_keys(lines, file)) if repeated else ()
    return Document(file, value, lines, problems)


def _refused(file: str, line: int, problem: str) -> EvalFileErrors:
    return EvalFileErrors([EvalFileError(Place(file, line), problem)])


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit + 1):
        if not level:
            return False
        level = [
            child
            for held in level
            if isinstance(held, dict | list)
            for child in (held.values() if isinstance(held, dict) else held)
        ]
    return bool(level)


def _repeated_keys(lines: JsonLines, file: str) -> Iterator[EvalFileError]:
    """Find every key that is written twice in one object, at any depth."""
    pending: list[tuple[KeyPath, int]] = [((), lines.start)]
    while pending:
        path, offset = pending.pop()
        first: dict[str | int, int] = {}
        for key, key_offset, value_offset in lines.children(offset):
            pending.append(((*path, key), value_offset))
            if key in first:
                yield repeated_key(
                    file,
                    path,
                    str(key),
                    first_line=lines.line_at(first[key]),
                    line=lines.line_at(key_offset),
                )
            first.setdefault(key, key_offset)


class JsonLines:
    """The lines of JSON text that is known to be right.

    Walks the text only on the way to what is asked for, and jumps over everything else with the
    standard library's decoder, which is fast enough for many thousand cases.
    """

    def __init__(self, text: str) -> None:
        """Keep the text; nothing is read yet."""
        self._text = text
        self._decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
        self._children: dict[int, dict[str | int, tuple[int, int]]] = {}
        self._line_ends: list[int] | None = None
        self.start = self._skip(0)

    def line_of(self, path: KeyPath) -> int:
        """Return the 1-based line of a key or list item, or of the nearest one above it."""
        written, offset = self.start, self.start
        for step in path:
            if offset not in self._children:
                self._children[offset] = {
                    key: (key_offset, value_offset)
                    for key, key_offset, value_offset in self.children(offset)
                }
            found = self._children[offset].get(step)
            if found is None:
                break
            written, offset = found
        return self.line_at(written)

    def line_at(self, offset: int) -> int:
        """Return the 1-based line of a character."""
        if self._line_ends is None:
            self._line_ends = [match.start() for match in re.finditer("\n", self._text)]
        return bisect_right(self._line_ends, offset) + 1

    def children(self, offset: int) -> Iterator[tuple[str | int, int, int]]:
        """Return key or position, where it is written, and where its value begins.

        Args:
            offset: where a value begins; what is neither object nor list has no children.

        """
        text, skip = self._text, self._skip
        opening = text[offset]
        if opening not in "{[":
            return
        at = skip(offset + 1)
        position = 0
        while text[at] not in "}]":
            key: str | int = position
            key_offset = value_offset = at
            if opening == "{":
                key, end = self._decode(text, at)
                value_offset = skip(skip(end) + 1)
            _, end = self._decode(text, value_offset)
            yield key, key_offset, value_offset
            position += 1
            at = skip(end)
            if text[at] == ",":
                at = skip(at + 1)

    def _skip(self, offset: int) -> int:
        match = _SPACE.match(self._text, offset)
        return match.end() if match else offset
