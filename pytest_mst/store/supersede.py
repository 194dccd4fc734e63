"""Putting files of an attempt aside before others take their place: nothing stored is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pytest_mst.domain.run import AttemptId
from pytest_mst.store.failure import store_error
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.names import safe_name
from pytest_mst.store.read import (
    StoredAttempt,
    UnreadableAttempt,
    read_attempt,
    score_folders,
)
from pytest_mst.store.whole_file import make_folder


def supersede_attempt(layout: RunLayout, attempt: AttemptId, stamp: str) -> None:
    """Move all that is stored of an attempt aside, its own file first.

    So a process that is killed in between leaves an attempt that is not there, and is collected;
    never one whose write record is gone while its trial could still be graded. What lies there
    already, of the same time, stays: it is what there was first.

    Args:
        layout: the run.
        attempt: which one; nothing happens where nothing is stored of it.
        stamp: the name of the folder below `superseded`.

    Raises:
        StoreError: a file could not be moved. It is where it was.

    """
    aside = layout.superseded(stamp)
    _move(layout.trace_file(attempt), aside.trace_file(attempt))
    _move(layout.writes_file(attempt), aside.writes_file(attempt))
    _move_scores(layout, aside, attempt)


def supersede_grades(
    layout: RunLayout, attempt: AttemptId, stamp: str, graders: Collection[str] | None = None
) -> None:
    """Move the scores of an attempt aside, and keep its own file there too, as it was.

    Args:
        layout: the run.
        attempt: which one.
        stamp: the name of the folder below `superseded`.
        graders: whose scores; by default everybody's.

    Raises:
        StoreError: a file could not be moved or kept.

    """
    aside = layout.superseded(stamp)
    kept = aside.trace_file(attempt)
    try:
        make_folder(os.path.dirname(kept))  # noqa: PTH120 - paths are text here, for speed
        _copy(layout.trace_file(attempt), kept)
    except OSError as error:
        raise store_error(kept, "written", error) from error
    _move_scores(layout, aside, attempt, graders)


def restore_attempt(layout: RunLayout, attempt: AttemptId, stamp: str) -> None:
    """Move what `supersede_attempt` put aside back, the attempt's own file last.

    Args:
        layout: the run.
        attempt: which one; nothing of it may be stored where it belongs.
        stamp: the name of the folder below `superseded`.

    Raises:
        StoreError: a file could not be moved. It is where it was.

    """
    aside = layout.superseded(stamp)
    _move_scores(aside, layout, attempt)
    _move(aside.writes_file(attempt), layout.writes_file(attempt))
    _move(aside.trace_file(attempt), layout.trace_file(attempt))


def superseded_stamps(layout: RunLayout) -> list[str]:
    """Return the folders of what was replaced, the oldest first; none where nothing was.

    Raises:
        StoreError: the folder is there and cannot be listed.

    """
    folder = layout.run_dir / "superseded"
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are what is wanted
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise store_error(folder, "read", error) from error


@dataclass(frozen=True, slots=True)
class Replaced:
    """An earlier go at an attempt, which was put aside when the run was taken up again."""

    stamp: str
    """The name of its folder below `superseded`."""
    stored: StoredAttempt


def replaced_attempts(
    layout: RunLayout,
    attempt: AttemptId,
    stamps: Sequence[str],
    now: StoredAttempt | UnreadableAttempt | None = None,
    *,
    scored: bool = False,
) -> list[Replaced]:
    """Return the earlier goes at an attempt that were put aside, the oldest first.

    An attempt that was only graded again is no earlier go; one that was before it was replaced
    is there once, as it was last. What cannot be read is passed over.

    Args:
        layout: the run.
        attempt: which one.
        stamps: the folders to look in, as `superseded_stamps` gives them.
        now: what is stored of it in its place.
        scored: read what graders said of it, too.

    """
    goes: dict[str, Replaced] = {}
    for stamp in stamps:
        found = read_attempt(layout.superseded(stamp), attempt, None if scored else ())
        if isinstance(found, StoredAttempt):
            goes[found.record.started_at] = Replaced(stamp, found)
    if isinstance(now, StoredAttempt):
        goes.pop(now.record.started_at, None)
    return list(goes.values())


def _move_scores(
    layout: RunLayout,
    aside: RunLayout,
    attempt: AttemptId,
    graders: Collection[str] | None = None,
) -> None:
    theirs = None if graders is None else {safe_name(grader) for grader in graders}
    for folder in score_folders(layout):
        if theirs is not None and folder not in theirs:
            continue
        _move(layout.score_in(folder, attempt), aside.score_in(folder, attempt))


def _move(path: str, target: str) -> None:
    if not os.path.exists(path):  # noqa: PTH110
        return
    try:
        if os.path.exists(target):  # noqa: PTH110 - put aside by a process that is lost since
            os.unlink(path)  # noqa: PTH108
            return
        make_folder(os.path.dirname(target))  # noqa: PTH120
        os.replace(path, target)  # noqa: PTH105
    except OSError as error:
        raise store_error(path, "moved to superseded/", error) from error


def _copy(path: str, target: str) -> None:
    """Give a file a second name, or copy it where the file system knows no such thing.

    The file itself is never written to again: others take its place.
    """
    if os.path.exists(target):  # noqa: PTH110
        return
    try:
        os.link(path, target)
    except OSError:
        shutil.copy2(path, target)
