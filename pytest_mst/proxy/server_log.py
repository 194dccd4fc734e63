"""What a server writes to its standard error: kept from its start, handed on to who asks later."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_TAIL_BYTES = 4096
_KEPT_BYTES = 1 << 20
"""The most of what came since the last time that is handed on; the newest counts."""
_LEFT_OUT = "[{} bytes are left out here]\n"


@dataclass(frozen=True, slots=True)
class _Redaction:
    """Takes secrets out of what is copied in parts, none of which may hold a part of one."""

    redact: Callable[[str], str]
    longest_bytes: int

    def text(self, written: bytes) -> str:
        return self.redact(written.decode(errors="replace"))

    def last_line_end(self, written: bytes) -> int:
        """Return the last line's end before what may be the beginning of a secret; 0 for none."""
        safe = max(0, len(written) - max(0, self.longest_bytes - 1))
        end = written.rfind(b"\n", 0, safe) + 1
        while end and self._cuts(written, end):
            end = written.rfind(b"\n", 0, end - 1) + 1
        return end

    def next_gap(self, written: bytes, at: int) -> int:
        """Return the next place from one on that is not within a secret."""
        while at < len(written) and self._cuts(written, at):
            at += 1
        return at

    def _cuts(self, written: bytes, at: int) -> bool:
        """Tell whether a place is within a secret that is there as a whole."""
        before = written[max(0, at - self.longest_bytes) : at]
        after = written[at : at + self.longest_bytes]
        return self.text(before + after) != self.text(before) + self.text(after)


class ServerLog:
    """The standard error of one process: a file of no name, so that nothing can fill up and block.

    A shared server is started before there is a run. What it writes is copied into the files
    that its users name, from its first line, whenever `flush` is called.
    """

    def __init__(self) -> None:
        self.fd = -1
        """Where the process writes; open between entering and leaving."""
        self._copied: dict[Path, int] = {}
        """By file: how many bytes have been seen to."""
        self._redaction: dict[Path, _Redaction] = {}

    def __enter__(self) -> Self:
        self.fd, name = tempfile.mkstemp(prefix="mst-server-")
        Path(name).unlink()
        # also where the process opens its standard error once more
        fcntl.fcntl(self.fd, fcntl.F_SETFL, os.O_APPEND)
        return self

    def __exit__(self, *_: object) -> None:
        self.flush(whole=True)
        os.close(self.fd)
        self.fd = -1

    def keep_in(
        self, path: Path, redact: Callable[[str], str], longest_secret_bytes: int = 0
    ) -> None:
        """Have everything copied into a file, too, which is made when there is something to copy.

        Args:
            path: the file; what is in it stays.
            redact: takes the secrets out of a text.
            longest_secret_bytes: of what it takes out.

        """
        self._copied.setdefault(path, 0)
        self._redaction.setdefault(path, _Redaction(redact, longest_secret_bytes))

    def flush(self, *, whole: bool = False) -> None:
        """Copy what is new: all of it, or up to a line's end that no secret can reach across.

        A file that cannot be written to is left as it is: no attempt is worse for it.
        """
        if self.fd < 0:
            return
        size = os.fstat(self.fd).st_size
        for path, start in self._copied.items():
            if size == start:
                continue
            redaction = self._redaction[path]
            lead = max(start, size - _KEPT_BYTES - redaction.longest_bytes)
            held = os.pread(self.fd, size - lead, lead)
            first = max(0, len(held) - _KEPT_BYTES)
            if first or lead > start:
                first = redaction.next_gap(held, first)
            new = held[first : None if whole else redaction.last_line_end(held)]
            if not new:
                continue
            begin = lead + first
            text = redaction.text(new)
            if begin > start:
                text = _LEFT_OUT.format(begin - start) + text
            with suppress(OSError):
                _append(path, text if text.endswith("\n") else f"{text}\n")
                self._copied[path] = begin + len(new)

    def tail(self) -> str:
        """Return the last that was written, from a line's beginning where there is one."""
        size = os.fstat(self.fd).st_size
        start = max(0, size - _TAIL_BYTES)
        written = os.pread(self.fd, size - start, start)
        if start:  # what is cut in two may be a secret, and nobody would know it again
            written = written[written.find(b"\n") + 1 :]
        return written.decode(errors="replace").strip()

    def note(self, text: str, source: str = "stdout") -> None:
        """Add a line of our own: what came on standard output, or what became of the process."""
        with suppress(OSError):
            os.write(self.fd, f"[{source}] {text}\n".encode(errors="replace"))


def _append(path: Path, text: str) -> None:
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)  # no further up: a run that is gone stays gone
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, text.encode(errors="backslashreplace"))
    finally:
        os.close(fd)
