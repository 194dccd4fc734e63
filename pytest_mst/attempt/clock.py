"""How long an attempt takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pytest_mst.domain.run import utc_text


@dataclass(slots=True)
class Clock:
    """When an attempt began, and how long it has taken by a clock that does not jump."""

    started_at: str = field(default_factory=lambda: utc_text(datetime.now(UTC)))
    _start_s: float = field(default_factory=time.perf_counter)
    _left_out_s: float = 0.0

    @property
    def elapsed_ms(self) -> int:
        """Whole milliseconds since the start, less what was left out."""
        return round((time.perf_counter() - self._start_s - self._left_out_s) * 1000)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out what happens meanwhile."""
        since_s = time.perf_counter()
        try:
            yield
        finally:
            self._left_out_s += time.perf_counter() - since_s
