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
from typing import assert_never

import pytest

from pytest_mst.domain.retry import retry_text
from pytest_mst.domain.run import AttemptId
from pytest_mst.plugin.pytest_private import outside_capture, terminal_of
from pytest_mst.report.text import shown
from pytest_mst.store.journal import JournalLine
from pytest_mst.store.journal_tail import JournalTail
from pytest_mst.store.layout import RunLayout

LINE_EVERY_S = 30.0
"""Between two lines where there is no terminal."""
_QUIET_S = 1.0
"""How long nothing else is to have been written before a terminal shows the line."""
_NAMED_AT_MOST = 3
_RETRIES_AT_MOST = 20
"""Lines about attempts that are tried again, where there is no terminal."""


@dataclass(slots=True)
class _UnderWay:
    """An attempt under way, by a clock that does not jump."""

    since_s: float
    """When it was first seen."""
    locator: str
    waiting: str = ""
    """What it says when it waits."""
    until_s: float = 0.0

    def text(self, id_: AttemptId, now_s: float) -> str:
        """Name it, and say how long it is under way and what it waits for."""
        waiting = f", {self.waiting}" if now_s < self.until_s else ""
        name = f"{shown(self.locator)} {_name(id_)}"
        return f"{name} {now_s - self.since_s:.0f} s{waiting}"


@dataclass(slots=True)
class _Watched:
    """One run whose progress is shown."""

    planned: int
    tail: JournalTail
    under_way: dict[AttemptId, _UnderWay] = field(default_factory=dict)
    ended: int = 0
    retries: list[str] = field(default_factory=list)
    """What was not yet shown of attempts that are to be tried again."""

    def read_on(self, now_s: float) -> None:
        for line in self.tail.new_lines():
            match line.kind:
                case "begun":
                    self.under_way[line.id] = _UnderWay(now_s, line.locator)
                case "retry":
                    self._note(line, now_s)
                case "ended":
                    self.under_way.pop(line.id, None)
                    self.ended += 1
                case "owes" | "paid":
                    pass  # of the attempt's surroundings
                case _:
                    assert_never(line.kind)

    def _note(self, line: JournalLine, now_s: float) -> None:
        wait = line.waiting
        if wait is None:
            return
        text = retry_text(wait.next_try, wait.of, shown(wait.reason), wait.wait_ms)
        self.retries.append(f"mst: {line.locator} {_name(line.id)}: {text}")
        one = self.under_way.get(line.id)
        if one is not None:
            one.waiting, one.until_s = text, now_s + wait.wait_ms / 1000


class Progress:
    """Shows what the session waits for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._runs: list[_Watched] = []
        self._last_line_s = time.monotonic()
        self._last_other_s = time.monotonic()
        self._shows_line = False
        self._retries_shown = 0
        self._timer: threading.Thread | None = None
        self._lock = threading.RLock()
        """Around the line: pytest's thread takes it away, the timer's may show it."""
        self._ended = threading.Event()

    def watch(self, layout: RunLayout, planned: int, *, from_now: bool = False) -> None:
        """Take in a run; one that is taken up from where it stands now."""
        self._runs.append(_Watched(planned, JournalTail(layout, from_now=from_now)))

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
        terminal = self._terminal()
        if terminal is not None:
            self._show_retries(terminal, time.monotonic())

    def _terminal(self) -> pytest.TerminalReporter | None:
        """Return where to show something, if there is something and it is wanted."""
        if self._config.get_verbosity() < 0 or not self._runs:
            return None
        return terminal_of(self._config)

    def tick(self) -> None:
        """Show progress, if it is time."""
        terminal = self._terminal()
        if terminal is None:
            return
        now_s = time.monotonic()
        on_terminal = terminal.isatty
        self._show_retries(terminal, now_s)
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

    def _show_retries(self, terminal: pytest.TerminalReporter, now_s: float) -> None:
        """Write down what waits where no line can be rewritten; not without end."""
        new: list[str] = []
        for run in self._runs:
            run.read_on(now_s)
            new += run.retries
            run.retries.clear()
        if terminal.isatty:
            return  # the line says it
        lines = new[: max(0, _RETRIES_AT_MOST - self._retries_shown)]
        if len(new) > len(lines) > 0:
            lines.append("mst: more attempts are tried again; see journal.jsonl of the run")
        self._retries_shown += len(new)
        if lines:
            with self._lock, outside_capture(self._config):
                terminal.ensure_newline()
                for line in lines:
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
        return text + _named(sorted(under_way, key=lambda item: item[1].since_s), now_s)


def _name(id_: AttemptId) -> str:
    return f"{shown(id_.case, 40)} [{shown(id_.variant, 20)}] trial {id_.trial}"


def _named(under_way: Sequence[tuple[AttemptId, _UnderWay]], now_s: float) -> str:
    """Name the attempts that have been under way longest, and for how long."""
    if not under_way:
        return ""
    named = [one.text(id_, now_s) for id_, one in under_way[:_NAMED_AT_MOST]]
    more = len(under_way) - _NAMED_AT_MOST
    return ": " + ", ".join(named) + (f" and {more} more" if more > 0 else "")
