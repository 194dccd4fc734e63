"""The parts of a run: which attempt, its short name, and how moments are written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""32 characters that are not taken for one another when read aloud."""


@dataclass(frozen=True, slots=True, order=True)
class AttemptId:
    """Which attempt: variant, case and 0-based trial number."""

    variant: str
    case: str
    trial: int


@lru_cache(maxsize=4096)
def locator(run_id: str, attempt: AttemptId) -> str:
    """Return the short name of one attempt, `@` and eight characters, printed beside it."""
    text = "\0".join((run_id, attempt.variant, attempt.case, str(attempt.trial)))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
    return "@" + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:8])


def utc_text(at: datetime) -> str:
    """Write a moment as stored runs hold it: ISO 8601, UTC, milliseconds, `Z` at the end.

    Args:
        at: the moment, with a time zone.

    Raises:
        ValueError: the moment has no time zone, so that nobody can tell when it was.

    """
    if at.tzinfo is None:
        msg = f"{at.isoformat()} has no time zone"
        raise ValueError(msg)
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
