"""Reading what is nobody's of the writes over connections that attempts share."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pytest_mst.domain.stored_field import Stored, integer_field
from pytest_mst.domain.write import WriteEntry, write_from_json
from pytest_mst.store.connection_file import GIVEN
from pytest_mst.store.failure import store_error
from pytest_mst.store.journal import TornLine, json_lines
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import WriteRecord


def unattributed_writes(layout: RunLayout, variant: str) -> WriteRecord:
    """Read the writes over a variant's shared connections that were given to no attempt.

    Raises:
        StoreError: a record is there and cannot be read.

    """
    entries: list[WriteEntry] = []
    torn: list[TornLine] = []
    for path in _files(layout, variant):
        kept: dict[int, WriteEntry] = {}
        for number, line in json_lines(path):
            if isinstance(line, TornLine):
                torn.append(line)
                continue
            try:
                _take(line, kept)
            except ValueError as error:
                torn.append(TornLine(number, str(error)))
        entries += kept.values()
    return WriteRecord(tuple(entries), tuple(torn))


def _take(line: Stored, kept: dict[int, WriteEntry]) -> None:
    if line.get("kind") == GIVEN:
        kept.pop(integer_field(line, "seq"), None)
    else:
        entry = write_from_json(line)
        kept[entry.seq] = entry


def _files(layout: RunLayout, variant: str) -> Iterator[str]:
    folder = layout.connections_dir(variant)
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208 - names are what is wanted
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise store_error(folder, "read", error) from error
    for name in names:
        if name.endswith(".jsonl"):
            yield str(folder / name)
