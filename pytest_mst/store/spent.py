"""What a session has spent, over all its processes: a file of amounts, one a line."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path


class SpentFile:
    """Amounts in USD; added from any thread and process, and read by all."""

    def __init__(self, path: Path) -> None:
        """Take a file that may not be there yet.

        Args:
            path: where it is; its folder is there.

        """
        self.path = path
        self._lock = threading.Lock()
        self._read_bytes = 0
        self._total_usd = 0.0

    def add(self, amount_usd: float) -> None:
        """Note an amount. One that cannot be written down counts here all the same."""
        line = f"{amount_usd:.9f}\n".encode("ascii")
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            with self._lock:
                self._total_usd += amount_usd
            return
        try:
            os.write(descriptor, line)  # one write of a short line: whole, whoever else writes
        finally:
            os.close(descriptor)

    def total_usd(self) -> float:
        """Return what was spent so far."""
        with self._lock:
            with suppress(OSError), self.path.open("rb") as file:
                file.seek(self._read_bytes)
                *lines, _ = file.read().split(b"\n")
                for line in lines:
                    self._read_bytes += len(line) + 1
                    with suppress(ValueError):
                        self._total_usd += float(line)
            return self._total_usd
