"""Live progress while pytest's loop waits: how many of how many, and what is under way.

It is read from the runs' journals, so that it is the same for one process and for workers. On a
terminal one line is rewritten; elsewhere a line is written every half minute.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from pytest_mst.domain.run import AttemptId
from pytest_mst.plugin.pytest_private import outside_capture, terminal_of
from pytest_mst.report.text import shown
from pytest_mst.store.journal_tail import JournalTail
from pytest_mst.store.layout import RunLayout

LINE_EVERY_S = 30.0
"""Between two lines where there is no terminal."""
_QUIET_S = 1.0
"""How long nothing else is to have been written before a terminal shows the line."""
_NAMED_AT_MOST = 3


@dataclass(slots=True)
class _Watched:
    """One run whose progress is shown."""

    planned: int
    tail: JournalTail
    under_way: dict[AttemptId, float] = field(default_factory=dict)
    """When each was first seen, by a clock that does not jump."""
    ended: int = 0

    def read_on(self, now_s: float) -> None:
        for line in self.tail.new_lines():
            if line.kind == "begun":
                self.under_way[line.id] = now_s
            elif line.kind == "ended":
                self.under_way.pop(line.id, None)
                self.ended += 1


class Progress:
    """Shows what the session waits for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._runs: list[_Watched] = []
        self._last_line_s = time.monotonic()
        self._last_other_s = time.monotonic()
        self._shows_line = False
        self._timer: threading.Thread | None = None
        self._lock = threading.RLock()
        """Around the line: pytest's thread takes it away, the timer's may show it."""
        self._ended = threading.Event()

    def watch(self, layout: RunLayout, planned: int) -> None:
        """Take in a run."""
        self._runs.append(_Watched(planned, JournalTail(layout)))

    def tick_from_thread(self, every_s: float = 1.0) -> None:
        """Show progress from a thread of its own, where pytest's loop cannot be asked to."""

        def run() -> None:
            while not self._ended.wait(every_s):
                self.tick()

        if self._timer is not None:
            return
        self._timer = threading.Thread(target=run, name="mst-progress", daemon=True)
        self._timer.start()

    def close(self) -> None:
        """Show nothing more."""
        self._ended.set()
        if self._timer is not None:
            self._timer.join(timeout=2)
            self._timer = None
        self.clear()

    def tick(self) -> None:
        """Show progress, if it is time."""
        terminal = terminal_of(self._config)
        if terminal is None or self._config.get_verbosity() < 0 or not self._runs:
            return
        now_s = time.monotonic()
        on_terminal = terminal.isatty
        quiet_s = now_s - (self._last_other_s if on_terminal else self._last_line_s)
        if quiet_s < (_QUIET_S if on_terminal else LINE_EVERY_S):
            return
        line = self._line(now_s)
        self._last_line_s = now_s
        with self._lock, outside_capture(self._config):
            if on_terminal:
                self._rewrite(terminal, line)
            else:
                terminal.ensure_newline()
                terminal.write_line(line)

    def _rewrite(self, terminal: pytest.TerminalReporter, line: str) -> None:
        if not self._shows_line:
            terminal.ensure_newline()
            self._shows_line = True
        width = shutil.get_terminal_size().columns
        terminal.rewrite(line[: max(20, width - 1)], erase=True)

    def clear(self) -> None:
        """Take the line away, before something else is written."""
        self._last_other_s = time.monotonic()
        terminal = terminal_of(self._config)
        with self._lock:
            if self._shows_line and terminal is not None:
                terminal.rewrite("", erase=True)
                terminal.write("\r")
                self._shows_line = False

    def _line(self, now_s: float) -> str:
        for run in self._runs:
            run.read_on(now_s)
        planned = sum(run.planned for run in self._runs)
        ended = sum(run.ended for run in self._runs)
        under_way = [item for run in self._runs for item in run.under_way.items()]
        text = f"mst: {ended} of {planned} attempts ended, {len(under_way)} under way"
        return text + _named(sorted(under_way, key=lambda item: item[1]), now_s)


def _named(under_way: Sequence[tuple[AttemptId, float]], now_s: float) -> str:
    """Name the attempts that have been under way longest, and for how long."""
    if not under_way:
        return ""
    named = [
        f"{shown(one.case, 40)} [{shown(one.variant, 20)}] trial {one.trial} {now_s - since:.0f} s"
        for one, since in under_way[:_NAMED_AT_MOST]
    ]
    more = len(under_way) - _NAMED_AT_MOST
    return ": " + ", ".join(named) + (f" and {more} more" if more > 0 else "")
