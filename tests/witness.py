"""What the servers of the tests say of themselves: each write that one of them has carried out.

A server calls `executed` when it does a write, not when it is asked for one. It inherits next to
nothing of a test run's environment, so the run is found by its process: the nearest ancestor that
has opened a record. Imported by servers that are to start at once, and only when they write.
"""

from __future__ import annotations

import os
from contextlib import suppress

FOLDER = f"/tmp/mst-tests-{os.getuid()}"
"""Known to both sides, whatever `TMPDIR` is."""


def open_record() -> str:
    """Open an empty record for this process and all that it starts; gives its path."""
    os.makedirs(FOLDER, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib is slow to import
    for pid in os.listdir(FOLDER):  # noqa: PTH208 - as above
        if not _is_alive(int(pid)):
            with suppress(FileNotFoundError):
                os.unlink(f"{FOLDER}/{pid}")  # noqa: PTH108 - as above
    path = f"{FOLDER}/{os.getpid()}"
    with open(path, "w", encoding="utf-8"):  # noqa: PTH123 - as above
        return path


def executed(tool: str) -> None:
    """Bear witness that a write has been carried out."""
    pid = os.getpid()
    while pid > 1:
        path = f"{FOLDER}/{pid}"
        if os.path.exists(path):  # noqa: PTH110 - as above
            with open(path, "a", encoding="utf-8") as record:  # noqa: PTH123 - as above
                record.write(tool + "\n")
            return
        pid = _parent(pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # the number is another user's by now
        return True
    return True


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - as above
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:  # it has ended, or this is not Linux
        return 0
