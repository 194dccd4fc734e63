"""A run: what was planned, and the names of its parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
"""32 characters that are not taken for one another when read aloud."""


@dataclass(frozen=True, slots=True, order=True)
class AttemptId:
    """Which attempt: variant, case and 0-based trial number."""

    variant: str
    case: str
    trial: int


def locator(run_id: str, attempt: AttemptId) -> str:
    """Return the short name of one attempt, `@` and eight characters, printed beside it."""
    text = "\0".join((run_id, attempt.variant, attempt.case, str(attempt.trial)))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()
    return "@" + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:8])
