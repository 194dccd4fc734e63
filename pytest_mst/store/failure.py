"""Operating system errors as errors that a user can mend."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from pytest_mst.domain.errors import StoreError

_REMEDIES = {
    errno.ENOSPC: "free some space, or choose another folder with --mst-results",
    errno.EDQUOT: "free some space, or choose another folder with --mst-results",
    errno.EFBIG: "raise the limit of a file's size (`ulimit -f`), or free some space",
    errno.EACCES: "choose a folder that you may write to with --mst-results",
    errno.EPERM: "choose a folder that you may write to with --mst-results",
    errno.EROFS: "choose a folder that you may write to with --mst-results",
    errno.ENOENT: "choose a folder that can be made with --mst-results",
    errno.ENOTDIR: "a file is in the place of a folder: move it, or choose another --mst-results",
    errno.EISDIR: "a folder is in the place of a file: move it, or choose another --mst-results",
    errno.ENAMETOOLONG: "choose a folder with a shorter path with --mst-results",
    errno.EMFILE: "raise the limit of open files (`ulimit -n`), or lower --mst-concurrency",
    errno.ENFILE: "raise the limit of open files (`ulimit -n`), or lower --mst-concurrency",
}


def store_error(path: str | Path, doing: str, error: OSError) -> StoreError:
    """Say what could not be done to a file, why, and what helps.

    Args:
        path: the file, as it would have been named in the end.
        doing: what was tried, such as `written`.
        error: what the operating system said.

    """
    code = error.errno or 0
    why = os.strerror(code) if code else type(error).__name__
    return StoreError(str(path), f"cannot be {doing}: {why}", _REMEDIES.get(code))
