"""Trying again inside an attempt: what a failure says of when, and how it is shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

TRIES = 4
"""How often one attempt is tried, in all."""
SHARED = "shared with other attempts"
"""Ends the reason of a wait before the first try, after what others were told."""

_SECONDS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?", re.ASCII)
_BAD_DATE = (ValueError, TypeError, IndexError, OverflowError)
"""What `parsedate_to_datetime` raises for what is no date, depending on what is wrong with it."""


class RetryKind(StrEnum):
    """Why the client could not begin. The set is closed."""

    RATE_LIMIT = "rate_limit"
    """The endpoint takes no more requests for now (HTTP 429)."""
    OVERLOADED = "overloaded"
    """The endpoint has more to do than it can (HTTP 529)."""
    UNAVAILABLE = "unavailable"
    """The endpoint is not there for now (HTTP 503)."""
    NETWORK = "network"
    """No connection was made."""
    NOT_STARTED = "not_started"
    """The client's own program or machine did not take the input."""

    @property
    def is_answer(self) -> bool:
        """Whether the endpoint itself said so."""
        return self in (RetryKind.RATE_LIMIT, RetryKind.OVERLOADED, RetryKind.UNAVAILABLE)

    @property
    def of_endpoint(self) -> bool:
        """Whether others that use the same endpoint had better wait too."""
        return self is not RetryKind.NOT_STARTED


@dataclass(frozen=True, slots=True)
class RetryHint:
    """What whoever met a failure knows of trying again."""

    kind: RetryKind
    after_s: float | None = None
    """How long the endpoint asks to be left alone, in seconds, not below 0; `None`: not said."""


def retry_after_s(value: str, now: datetime) -> float | None:
    """Read the value of a `Retry-After` header (RFC 9110, 10.2.3).

    Args:
        value: seconds, also with a fraction, or an HTTP date.
        now: what a date is compared with, with a time zone.

    Returns:
        Seconds, not below 0; `None` where the value is neither.

    """
    text = value.strip()
    if _SECONDS.fullmatch(text):
        seconds = float(text)
        return max(0.0, seconds) if seconds < float("inf") else None
    try:
        at = parsedate_to_datetime(text)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return max(0.0, (at - now).total_seconds())
    except _BAD_DATE:
        return None


def retry_text(next_try: int, of: int, reason: str, wait_ms: int) -> str:
    """Say that an attempt waits: `turn retry 2/4 (rate_limit) — waiting 8s`.

    Args:
        next_try: the try that it waits for, 1-based.
        of: how many tries there are at most.
        reason: why, a kind of `RetryKind` first.
        wait_ms: how long.

    """
    return f"turn retry {next_try}/{of} ({reason}) — waiting {wait_text(wait_ms / 1000)}"


def wait_text(wait_s: float) -> str:
    """Write a wait down: `8s`, `0.5s`, `12.3s`."""
    return f"{round(wait_s, 1):g}s"
