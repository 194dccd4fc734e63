"""Following a journal that is being written, from where it was last read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress

from pytest_mst.store.journal import JournalLine, journal_line
from pytest_mst.store.layout import RunLayout


class JournalTail:
    """Reads on in a run's journal; holds nothing but a position."""

    def __init__(self, layout: RunLayout, *, from_now: bool = False, read_bytes: int = 0) -> None:
        """Take a journal's place.

        Args:
            layout: the run.
            from_now: pass over what is written already.
            read_bytes: how much of it to pass over; see `position`.

        """
        self._path = layout.journal
        self._read_bytes = read_bytes
        if from_now:
            with suppress(OSError):  # not there, then
                self._read_bytes = self._path.stat().st_size

    @property
    def position(self) -> int:
        """How much of the journal was read or passed over, in bytes."""
        return self._read_bytes

    def new_lines(self) -> Iterator[JournalLine]:
        """Yield the whole lines written since the last call; none where it cannot be read."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._read_bytes)
                written = file.read()
        except OSError:
            return  # not written yet, or out of reach: progress is no reason to stop
        whole = written[: written.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        for line in whole.splitlines():
            try:
                yield journal_line(json.loads(line))
            except (ValueError, AttributeError):
                continue  # torn; whoever reads the whole journal tells of it
