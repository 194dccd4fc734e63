"""Files that grow by one line at a time, also by several processes at once."""

from __future__ import annotations

import errno
import os
import threading

from pytest_mst.store.failure import store_error
from pytest_mst.store.whole_file import open_making_folders


class LineFile:
    """A file that is appended to, line by line; opened when its first line comes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._lock = threading.Lock()

    def append(self, line: str) -> None:
        """Append one line of ASCII text without a line break, in one call to the system.

        Raises:
            StoreError: the line is not there, or only a part of it, which readers skip.

        """
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                self._close()
                raise store_error(self.path, "written", error) from error

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        with self._lock:
            self._close()

    def _append(self, line: str) -> None:
        lead = ""
        if self._descriptor is None:
            self._descriptor, torn = self._open()
            lead = "\n" if torn else ""
        data = f"{lead}{line}\n".encode("ascii")
        if os.write(self._descriptor, data) != len(data):
            # Closed by the caller, so that the next line begins by ending this torn one.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _open(self) -> tuple[int, bool]:
        """Open the file, and tell whether its last line was cut short by a dying process."""
        descriptor = open_making_folders(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        size = os.fstat(descriptor).st_size
        return descriptor, size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"

    def _close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)
