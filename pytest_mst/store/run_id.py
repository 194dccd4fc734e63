"""Ids of runs: when a run was started, and six random hex digits, which are its short form."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

_SHORT_DIGITS = 6


def new_run_id(now: datetime) -> str:
    """Return an id such as `20261130T094500Z-7f3c2a`.

    Args:
        now: the moment, with a time zone. Runs of one second differ by their random digits.

    """
    return f"{now.astimezone(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(_SHORT_DIGITS // 2)}"


def short_form(run_id: str) -> str:
    """Return the part of a run's id that people type: `7f3c2a`."""
    return run_id.rpartition("-")[2]
