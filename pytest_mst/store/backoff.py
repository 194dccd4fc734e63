"""When endpoints may be asked again: known to all attempts of a run, in all of its processes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.retry import RetryKind
from pytest_mst.domain.run import utc_text
from pytest_mst.domain.stored_field import number_field
from pytest_mst.store.layout import RUN_FORMAT
from pytest_mst.store.names import safe_name
from pytest_mst.store.whole_file import write_whole

CAP_S = 60.0
"""The longest that one failure holds an endpoint's users up."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """An endpoint that is to be left alone for now."""

    kind: RetryKind
    left_s: float
    """For how long, more than 0 and at most the cap."""


@dataclass(frozen=True, slots=True)
class _Held:
    """Until when an endpoint is left alone, by the clock of this process."""

    kind: RetryKind
    until_s: float


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found in an endpoint's file, and what that means by the clock of this process."""

    content: bytes
    held: _Held | None


class Backoffs:
    """The endpoints of one run that are to be left alone; used by one thread.

    Processes tell each other through one small file for each endpoint, by the time of day.
    What is found there is turned into a time by a clock that does not jump when it is first
    seen, and clamped to the cap, so that a time of day that jumps holds nobody up for longer.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        cap_s: float = CAP_S,
        clock: Callable[[], float] = time.monotonic,
        time_of_day: Callable[[], float] = time.time,
    ) -> None:
        """Make the times of one run.

        Args:
            folder: where other processes of the run are told; `None` where there are none.
            cap_s: the longest that one failure holds an endpoint's users up.
            clock: seconds, by a clock that does not jump.
            time_of_day: seconds since 1970.

        """
        self._folder = None if folder is None else str(folder)
        self._cap_s = cap_s
        self._clock = clock
        self._time_of_day = time_of_day
        self._own: dict[str, _Held] = {}
        self._seen: dict[str, _Seen] = {}

    def hold(self, endpoint: str, kind: RetryKind, wait_s: float) -> None:
        """Have an endpoint left alone for a while; what holds it for longer stays.

        Args:
            endpoint: any text that stands for it; no secret.
            kind: why.
            wait_s: for how long; not longer than the cap.

        """
        wait_s = min(wait_s, self._cap_s)
        known = self.left(endpoint)
        if wait_s <= 0 or (known is not None and known.left_s >= wait_s):
            return
        held = self._own[endpoint] = _Held(kind, self._clock() + wait_s)
        if self._folder is None:
            return
        until_s = self._time_of_day() + wait_s
        document = {
            "format": RUN_FORMAT,
            "kind": "backoff",
            "reason": kind.value,
            "untilMs": round(until_s * 1000),
            "until": utc_text(datetime.fromtimestamp(until_s, UTC)),
        }
        content = f"{json.dumps(document)}\n".encode("ascii")
        self._seen[endpoint] = _Seen(content, held)
        with suppress(StoreError):  # a courtesy to other processes; this one keeps to it anyway
            write_whole(self._file(endpoint), (content,))

    def left(self, endpoint: str) -> Backoff | None:
        """Tell for how long an endpoint is to be left alone; `None` when it may be asked."""
        now_s = self._clock()
        both = (self._own.get(endpoint), self._told(endpoint, now_s))
        until = [one for one in both if one is not None and one.until_s > now_s]
        if not until:
            return None
        longest = max(until, key=lambda one: one.until_s)
        return Backoff(longest.kind, min(longest.until_s - now_s, self._cap_s))

    def _told(self, endpoint: str, now_s: float) -> _Held | None:
        """Return what another process told last; what cannot be read tells nothing."""
        if self._folder is None:
            return None
        try:
            with open(self._file(endpoint), "rb") as file:  # noqa: PTH123
                content = file.read()
        except OSError:
            return None
        seen = self._seen.get(endpoint)
        if seen is None or seen.content != content:
            seen = self._seen[endpoint] = _Seen(content, self._read(content, now_s))
        return seen.held

    def _read(self, content: bytes, now_s: float) -> _Held | None:
        try:
            stored = json.loads(content)
            until_ms = number_field(stored, "untilMs")
            kind = RetryKind(stored.get("reason"))
        except (ValueError, AttributeError, RecursionError):
            return None
        if until_ms is None:
            return None
        left_s = until_ms / 1000 - self._time_of_day()
        return _Held(kind, now_s + min(left_s, self._cap_s))

    def _file(self, endpoint: str) -> str:
        return f"{self._folder}/{safe_name(endpoint)}.json"
