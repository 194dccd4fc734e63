"""Finding stored runs, by id or folder, and attempts, by locator."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mst.domain.errors import ResumeError, SelectionError, StoreError
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.run import locator as locator_of
from pytest_mst.domain.stored_field import text_field
from pytest_mst.store.failure import store_error
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import read_document
from pytest_mst.store.run_id import short_form
from pytest_mst.store.stored_run import StoredRun, open_run

_NAMED_AT_MOST = 10
"""How many runs a message lists."""


@dataclass(frozen=True, slots=True)
class FoundAttempt:
    """An attempt that was planned in a stored run; it may not have begun."""

    run: StoredRun
    id: AttemptId

    @property
    def layout(self) -> RunLayout:
        """Where its run's files are."""
        return self.run.layout


def find_runs(results_dir: Path) -> list[RunLayout]:
    """Return the runs below a results folder, the newest first by their ids.

    Folders whose `run.json` is missing, damaged or of an unknown format are left out: `run_named`
    says of each what is wrong.

    Args:
        results_dir: the folder with one folder for each eval, or that of one eval.

    Raises:
        StoreError: the folder is there and cannot be listed.

    """
    found: list[RunLayout] = []
    for folder in _run_folders(results_dir):
        try:
            found.append(run_in(folder))
        except StoreError:
            continue
    # of a run and its copies the run itself comes first
    found.sort(key=lambda run: (run.folder is None, run.run_id, str(run.run_dir)), reverse=True)
    found.sort(key=lambda run: run.run_id, reverse=True)
    return found


def damaged_runs(results_dir: Path) -> list[StoreError]:
    """Return what is wrong with each run below a results folder that cannot be read.

    Folders without a `run.json` are no runs.

    Raises:
        StoreError: the folder is there and cannot be listed.

    """
    damaged: list[StoreError] = []
    for folder in _run_folders(results_dir):
        try:
            if (folder / "run.json").exists():
                open_run(run_in(folder))
        except StoreError as error:
            damaged.append(error)
    return damaged


def run_in(folder: Path) -> RunLayout:
    """Return the layout of the run that a folder holds.

    Where the folder is not where the eval's name and the run's id put it, the layout's `folder`
    says so; such a run can be read as it is.

    Raises:
        StoreError: the folder holds no run that can be read.

    """
    path = folder / "run.json"
    document = read_document(path)
    if document is None:
        raise StoreError(str(path), "is not there, so that the folder holds no run")
    try:
        eval_name, run_id = text_field(document, "evalName"), text_field(document, "runId")
    except ValueError as error:
        raise StoreError(str(path), f"cannot be read: {error}") from error
    place = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay what the user wrote
    as_written = len(folder.parts) >= len(("eval", "runs", "run")) and ".." not in folder.parts
    results_dir = (folder if as_written else place).parent.parent.parent
    layout = RunLayout(results_dir, eval_name, run_id)
    if Path(os.path.abspath(layout.run_dir)) == place:  # noqa: PTH100
        return layout
    return RunLayout(results_dir, eval_name, run_id, folder=folder)


def run_named(
    results_dirs: Sequence[Path],
    text: str,
    *,
    option: str = "--mst-resume",
    in_place: bool = True,
) -> RunLayout:
    """Return the run that a user names.

    Args:
        results_dirs: the results folders to look in.
        text: a run's id, its short form, or its folder.
        option: how the user named it, for messages.
        in_place: whether the run is to lie where its eval's name and its id put it, as it must
            where anything is to be written to it.

    Raises:
        SelectionError: there is no such run.
        ResumeError: there are several of this short form.
        StoreError: the run that is named cannot be read, or lies in another place.

    """
    folder = _as_folder(text)
    run = run_in(folder) if folder is not None else _by_id(results_dirs, text, option)
    if in_place and run.folder is not None:
        results_dir = next(iter(results_dirs), run.results_dir)
        place = RunLayout(results_dir, run.eval_name, run.run_id).run_dir
        raise StoreError(
            str(run.folder),
            f"holds the run {run.run_id} of {run.eval_name!r} and is not where it belongs",
            f"copy it to {place}",
        )
    return run


def attempt_at(results_dirs: Sequence[Path], locator: str) -> list[FoundAttempt]:
    """Return the attempt of this locator in every run that has it, newest run first.

    There are several where a run's folder was copied.

    Args:
        results_dirs: the results folders to look in.
        locator: with or without its `@`.

    Raises:
        StoreError: no readable run has it; the message says where was looked.

    """
    wanted = "@" + locator.removeprefix("@").lower()
    runs = [run for results_dir in results_dirs for run in find_runs(results_dir)]
    found: list[FoundAttempt] = []
    for run in runs:
        try:
            stored = open_run(run)
        except StoreError:
            continue
        found += [
            FoundAttempt(stored, attempt)
            for attempt in stored.plan.attempts
            if locator_of(run.run_id, attempt) == wanted
        ]
    if found:
        return found
    looked = f"{len(runs)} run{'' if len(runs) == 1 else 's'} that can be read here"
    raise StoreError(
        _names(results_dirs),
        f"no attempt {wanted} in the {looked}",
        "name the folder that its run is in with --results",
    )


def _by_id(results_dirs: Sequence[Path], text: str, option: str) -> RunLayout:
    runs = [run for results_dir in results_dirs for run in find_runs(results_dir)]
    exact = [run for run in runs if run.run_id == text]
    matching = exact or [run for run in runs if short_form(run.run_id) == text.lower()]
    if len({run.run_id for run in matching}) == 1:
        return matching[0]
    if matching:
        there = ", ".join(_listed(matching))
        problem = f"there are several runs of this short form: {there}"
        asked = f"{option} {text}"
        raise ResumeError(asked, problem, "name one by its whole id or its folder")
    for results_dir in results_dirs:
        for folder in _run_folders(results_dir):
            if text in (folder.name, short_form(folder.name)):
                return run_in(folder)  # which says why it was not found
    where = f"{option}, in {_names(results_dirs)}"
    raise SelectionError(where, text, _listed(runs))


def _as_folder(text: str) -> Path | None:
    """Return the folder that a text names, where it looks like one or is one that holds a run."""
    try:
        path = Path(text)
        if path.name == "run.json":
            path = path.parent
        if os.sep in text or (path / "run.json").exists():
            return path
    except (OSError, ValueError):  # too long for a path, or with a null in it
        pass
    return None


def _run_folders(results_dir: Path) -> Iterator[Path]:
    """Yield the folders that may hold runs."""
    evals = [results_dir, *(folder for folder in _folders(results_dir, must_list=True))]
    for eval_dir in evals:
        yield from _folders(eval_dir / "runs")


def _folders(parent: Path, *, must_list: bool = False) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if must_list:
            raise store_error(parent, "listed", error) from error
        return []
    return [parent / name for name in names]


def _listed(runs: Sequence[RunLayout]) -> list[str]:
    listed = [f"{run.run_id} ({run.eval_name})" for run in runs[:_NAMED_AT_MOST]]
    more = len(runs) - _NAMED_AT_MOST
    return [*listed, f"{more} more"] if more > 0 else listed


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(str(path) for path in paths)
