"""Lines out of a stream of bytes, however long they are."""

from __future__ import annotations

from collections.abc import Iterator


class LineBuffer:
    """Puts lines together from chunks; each byte is looked at once."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a chunk, and give the lines that are whole with it, without their ends."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._partial.append(end)
            line = b"".join(self._partial)
            self._partial.clear()
            yield line
        self._partial.append(rest)

    def rest(self) -> bytes:
        """Give what came after the last line's end; to be asked for once, when no more comes."""
        return b"".join(self._partial)
