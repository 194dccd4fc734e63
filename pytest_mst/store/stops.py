"""The stops of a run on disk, so that every process of it hears of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.stop import Stop, stop_from_json
from pytest_mst.store.append import RunWriter
from pytest_mst.store.failure import store_error
from pytest_mst.store.journal import TornLine, json_lines
from pytest_mst.store.layout import RUN_FORMAT, RunLayout
from pytest_mst.store.line_file import LineFile

_NAMES = ("variant", "case")
"""Fields that attempts are matched with; they come from eval files, where they can be read."""


def read_stops(layout: RunLayout) -> tuple[Stop, ...]:
    """Return a run's stops in the order they were met, one for each closed gate.

    A line that cannot be read, such as the last one of a process that was killed, is left out:
    whoever wrote it had not closed its gate yet.

    Raises:
        StoreError: the file is there and cannot be opened.

    """
    met: dict[object, Stop] = {}
    for stop in _stops(str(layout.stops)):
        met.setdefault(stop.gate, stop)
    return tuple(met.values())


def put_stops_away(layout: RunLayout, to: Path) -> None:
    """Open every gate of a run again: its stops move to another file, where they stay countable.

    For a run that is taken up again, before any process of it begins.

    Args:
        layout: the run's.
        to: where they go; its folder is made where it is missing.

    Raises:
        StoreError: they cannot be moved.

    """
    if not layout.stops.exists():
        return
    try:
        to.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        layout.stops.replace(to)
    except FileNotFoundError:
        return  # another process of the session was first
    except OSError as error:
        raise store_error(layout.stops, "moved", error) from error


class Stops:
    """The stops of one run as this process sees them; several processes may add to them."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self._path = str(writer.layout.stops)
        self._file = LineFile(self._path)
        self._seen: tuple[int, int, int] | None = None
        self._read: tuple[Stop, ...] = ()

    def add(self, stop: Stop) -> None:
        """Write a stop down.

        Raises:
            StoreError: it is not written.

        """
        line = {"format": RUN_FORMAT, "kind": "stop", **stop.to_json()}
        self._file.append(self._writer.redactor.json_text(line, _NAMES))

    def current(self) -> tuple[Stop, ...]:
        """Return what is written, read again only where something was added since.

        Cheap enough to ask before each attempt: one call to the system where nothing is new.
        """
        try:
            found = os.stat(self._path)  # noqa: PTH116 - a path object doubles the time it takes
        except OSError:
            return ()
        seen = (found.st_ino, found.st_size, found.st_mtime_ns)
        if seen != self._seen:
            with suppress(StoreError):  # out of reach just now: what was read before still holds
                self._read = tuple(_stops(self._path))
                self._seen = seen
        return self._read

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        self._file.close()


def _stops(path: str) -> Iterator[Stop]:
    for _, line in json_lines(path):
        if isinstance(line, TornLine):
            continue
        try:
            yield stop_from_json(line)
        except ValueError:
            continue
