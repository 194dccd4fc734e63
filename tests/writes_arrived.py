"""A plugin for the tests: no write reaches a server in any of them, but where that is their matter.

The servers of the tests write down what they carry out (`tests/witness.py`). A test in which one
of them has carried out a write fails, unless it is marked `lets_writes_through`: with a server
that nobody guards, with a live one, or with one that is to stop its own. A mark that names tools
lets nothing else through, and has the test fail if one of them has not arrived, so that a witness
who has become silent is noticed.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests import witness

MARK = "lets_writes_through"
_HAS_PASSED = pytest.StashKey[bool]()


class WritesArrived:
    """Reads what the servers of one process's tests have written down."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._record = Path(witness.open_record())
        self._read = 0
        self._let_through = 0
        self._stray: list[str] = []

    def _new(self) -> list[str]:
        """Give the writes that were carried out since it was last asked."""
        lines = self._record.read_text(encoding="utf-8").splitlines()
        new, self._read = lines[self._read :], len(lines)
        return new

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "call":
            item.stash[_HAS_PASSED] = report.passed
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None]:
        yield
        arrived = self._new()
        marks = list(item.iter_markers(MARK))
        named = {name for mark in marks for name in mark.args}
        if unexpected := [one for one in arrived if not marks or (named and one not in named)]:
            what = ", ".join(unexpected)
            pytest.fail(f"a write reached a server that was to be spared: {what}", pytrace=False)
        self._let_through += len(arrived)
        missing = named - set(arrived)
        if item.stash.get(_HAS_PASSED, False) and missing and sys.platform == "linux":
            what = ", ".join(sorted(missing))
            pytest.fail(f"nobody bears witness that this has arrived: {what}", pytrace=False)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._stray += self._new()
        self._record.unlink()
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output["writes_arrived"] = [self._let_through, self._stray]
        elif self._stray:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of xdist has seen."""
        let_through, stray = getattr(node, "workeroutput", {}).get("writes_arrived", (0, []))
        self._let_through += let_through
        self._stray += stray

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._stray:
            what = ", ".join(self._stray)
            terminalreporter.write_line(f"writes reached servers after the tests: {what}", red=True)
        elif self._let_through:
            count = self._let_through
            what = "1 write reached a server" if count == 1 else f"{count} writes reached servers"
            terminalreporter.write_line(f"{what}, all in tests that let them through")


def pytest_configure(config: pytest.Config) -> None:
    what = "writes reach a server in this test, by these tools alone where some are named"
    config.addinivalue_line("markers", f"{MARK}(*tools): {what}")
    config.pluginmanager.register(WritesArrived(config), "writes-arrived")
