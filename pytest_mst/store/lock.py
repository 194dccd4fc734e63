"""A run is in use by one session at a time; its processes hold a lock that ends with them."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from pytest_mst.domain.errors import StoreError
from pytest_mst.store.failure import store_error
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.whole_file import open_making_folders

_POLL_S = 0.05


class RunLock:
    """Holds a run for a session.

    The lock is the system's, on the open file: it ends with the process however that ends, and
    stays behind when a run's folder is copied to another machine. Every process of a session
    shares it, so that a worker that outlives its controller for a moment still keeps others out.
    """

    def __init__(self, layout: RunLayout) -> None:
        self._path = layout.lock
        self._descriptor: int | None = None

    def take(self, wait_s: float) -> None:
        """Take a run that is there for a new session.

        Args:
            wait_s: how long to wait for the processes of a session that is just ending.

        Raises:
            StoreError: another session uses the run.

        """
        descriptor = self._open()
        deadline_s = time.monotonic() + wait_s
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline_s:
                os.close(descriptor)
                raise StoreError(
                    str(self._path.parent),
                    f"the run is in use by {self._holder()}",
                    "wait until that session has ended; where none is running, see which process "
                    "still has the file `lock` open",
                )
            time.sleep(_POLL_S)
        self._write_holder(descriptor)
        if not _try_lock(descriptor, fcntl.LOCK_SH):  # another took it in between
            os.close(descriptor)
            raise StoreError(
                str(self._path.parent), "another session takes the run up at this moment"
            )
        self._descriptor = descriptor

    def share(self) -> None:
        """Hold the run as one of the processes of the session that uses it.

        Raises:
            StoreError: the lock's file cannot be opened, or another session uses the run.

        """
        if self._descriptor is not None:
            return
        descriptor = self._open()
        if not _try_lock(descriptor, fcntl.LOCK_SH):
            os.close(descriptor)
            raise StoreError(str(self._path.parent), f"the run is in use by {self._holder()}", None)
        if os.fstat(descriptor).st_size == 0:
            self._write_holder(descriptor)
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go of the run; a process that ends does so by itself."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        try:
            return open_making_folders(str(self._path), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise store_error(self._path, "opened", error) from error

    def _write_holder(self, descriptor: int) -> None:
        """Say who holds it, for whoever is kept out; that this fails changes nothing."""
        text = f"process {os.getpid()}\n"
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode("utf-8", "backslashreplace"), 0)
        except OSError:
            return

    def _holder(self) -> str:
        try:
            text = Path(self._path).read_text(encoding="utf-8", errors="backslashreplace").strip()
        except OSError:
            text = ""
        return text or "another process"


def _try_lock(descriptor: int, kind: int) -> bool:
    """Try to get a lock; a file system that has none lets everybody in."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # such as on some network file systems: nobody can be kept out there
    return True
