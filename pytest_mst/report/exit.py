"""The exit code of a run that came to its end."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from pytest_mst.report.summary import RunSummary


class ExitCode(IntEnum):
    """What a run of evals says to the shell, where pytest's own codes do not."""

    PASSED = 0
    """Every case passed."""
    FAILED = 1
    """A case failed."""
    INCOMPLETE = 10
    """Nothing failed, and something is incomplete."""


def exit_code(summaries: Iterable[RunSummary]) -> ExitCode:
    """Return the code of all evals of a session together."""
    counts = [summary.figures.cases for summary in summaries]
    if any(cases.failed for cases in counts):
        return ExitCode.FAILED
    if any(cases.incomplete for cases in counts):
        return ExitCode.INCOMPLETE
    return ExitCode.PASSED
