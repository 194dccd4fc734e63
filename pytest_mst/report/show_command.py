"""Looking at what is stored: from what a user types to the text that is printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pytest_mst.domain.errors import SelectionError, StoreError
from pytest_mst.domain.run import utc_text
from pytest_mst.report.attempt_view import attempt_view
from pytest_mst.report.finish import read_run
from pytest_mst.report.show import attempt_lines
from pytest_mst.report.show_document import attempt_document, document_text, run_view_document
from pytest_mst.report.terminal import closing_lines
from pytest_mst.store.find import attempt_at, run_named
from pytest_mst.store.stored_run import open_run

RESULTS_DIR = ".mst-results"
"""Where runs are stored if nothing else is said."""


def shown_text(results_dirs: Sequence[Path], what: str, *, as_json: bool) -> str:
    """Return what is stored of an attempt or a run, as text to print.

    Args:
        results_dirs: the results folders to look in.
        what: an attempt's locator, for which its `@` may be left out where shells want it for
            themselves; or a run's id, its short form, or its folder.
        as_json: whether it is to be a JSON document.

    Raises:
        SelectionError: there is no such run.
        StoreError: there is no such attempt, or the run cannot be read.

    """
    if what.startswith("@"):
        return shown_attempt(results_dirs, what, as_json=as_json)
    try:
        return shown_run(results_dirs, what, as_json=as_json)
    except SelectionError:
        with suppress(StoreError):
            return shown_attempt(results_dirs, what, as_json=as_json)
        raise


def shown_attempt(results_dirs: Sequence[Path], locator: str, *, as_json: bool) -> str:
    """Return what is stored of the attempt of this locator, as text to print.

    Raises:
        StoreError: there is no such attempt.

    """
    view = attempt_view(attempt_at(results_dirs, locator))
    if as_json:
        return document_text(attempt_document(view))
    return "\n".join(attempt_lines(view, _from_here(view.run.layout.run_dir)))


def shown_run(results_dirs: Sequence[Path], name: str, *, as_json: bool) -> str:
    """Return the closing block of a stored run, worked out from its files as they are.

    Args:
        results_dirs: the results folders to look in.
        name: the run's id, its short form, or its folder.
        as_json: whether the figures are to be a JSON document.

    Raises:
        SelectionError: there is no such run.
        StoreError: it cannot be read.

    """
    run = open_run(run_named(results_dirs, name, option="show", in_place=False))
    summary = read_run(run.plan, run.layout)
    if as_json:
        return document_text(run_view_document(run, summary, utc_text(datetime.now(UTC))))
    can_resume = not run.legacy and run.layout.folder is None
    results = _from_here(run.layout.results_dir)
    options = "" if results == RESULTS_DIR else f" --mst-results {shlex.quote(results)}"
    where = _from_here(run.layout.run_dir)
    lines = closing_lines(summary, where, can_resume=can_resume, options=options)
    return "\n".join(lines)


def _from_here(path: Path) -> str:
    """Write a path from the working folder where it lies below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd().resolve()))
    except (ValueError, OSError):
        return str(path)
