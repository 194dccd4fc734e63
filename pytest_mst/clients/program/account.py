"""What programs print of themselves, and what the same things in it mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope

DOES_NOT_FIT = InfrastructureFailure(
    Broke.SETUP,
    "the input, the system prompt and the servers' tools do not fit the model's context",
    retryable=False,
    scope=Scope.CASE,
    accepted=False,
)
"""What it means that the context was full before the model had said anything."""


def record_in(line: str) -> Mapping[str, Any] | None:
    """Return the JSON object that a line is; what is none is not the client's account."""
    try:
        read = json.loads(line)
    except ValueError:
        return None
    return read if isinstance(read, Mapping) else None
