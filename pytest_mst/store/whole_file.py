"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from itertools import count as numbers_from
from pathlib import Path

from pytest_mst.store.failure import store_error

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_TEMPORARY = ".tmp"
_process_token = secrets.token_hex(4)
_numbers = numbers_from()


def write_whole(path: str, chunks: Iterable[bytes]) -> None:
    """Write a file under another name in the same folder, then give it its own.

    Folders are made where they are missing. Files and folders are private to their owner.

    Args:
        path: the file; one that is there is replaced in one step.
        chunks: its content, written as it comes.

    Raises:
        StoreError: the file could not be written. What was there before is still there.

    """
    folder, name = os.path.split(path)
    temporary = f"{folder}/.{name}.{os.getpid()}-{_process_token}-{next(_numbers)}{_TEMPORARY}"
    try:
        descriptor = open_making_folders(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                for chunk in chunks:
                    _write_all(descriptor, chunk)
            finally:
                os.close(descriptor)
            os.replace(temporary, path)  # noqa: PTH105
        except BaseException:
            with suppress(OSError):  # what went wrong first is what is told
                os.unlink(temporary)  # noqa: PTH108
            raise
    except OSError as error:
        raise store_error(path, "written", error) from error


def remove_half_written(folder: Path) -> int:
    """Remove what processes that were killed have left half-written below a folder; count it.

    Only where no other process writes there.

    Raises:
        StoreError: such a file cannot be removed.

    """
    count = 0
    for path in folder.rglob(f".*{_TEMPORARY}"):
        try:
            path.unlink()
        except OSError as error:
            raise store_error(path, "removed", error) from error
        count += 1
    return count


def open_making_folders(path: str, flags: int) -> int:
    """Open a file for its owner only, and make its folders where they are missing.

    Raises:
        OSError: as `os.open` and `os.mkdir` raise it.

    """
    flags |= os.O_CLOEXEC
    try:
        return os.open(path, flags, FILE_MODE)
    except FileNotFoundError:
        make_folder(os.path.dirname(path))  # noqa: PTH120
        return os.open(path, flags, FILE_MODE)


def make_folder(path: str) -> None:
    """Make a folder and those above it; another process may be making the same ones.

    Raises:
        OSError: as `os.mkdir` raises it, except where the folder is there.

    """
    try:
        _make_one_folder(path)
    except FileNotFoundError:
        above = os.path.dirname(path)  # noqa: PTH120
        if not os.path.isdir(above):  # noqa: PTH112 - else another process has made it just now
            make_folder(above)
        _make_one_folder(path)  # once more and no oftener: some file systems let nobody do so


def _make_one_folder(path: str) -> None:
    try:
        os.mkdir(path, FOLDER_MODE)  # noqa: PTH102
    except FileExistsError:
        if not os.path.isdir(path):  # noqa: PTH112
            raise


def _write_all(descriptor: int, chunk: bytes) -> None:
    """Write all of it: on a disk that fills up, one call may take only a part."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
