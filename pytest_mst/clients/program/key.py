"""The key of a model's API, which stays in the environment until a program is given it."""

from __future__ import annotations

import os

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope


def key_of(name: str) -> str | None:
    """Return the key that a variable holds; `None` where it is not set, or empty."""
    return os.environ.get(name) or None


def missing_key(name: str, model: str | None) -> InfrastructureFailure:
    """Return what it means that there is no key."""
    which = "the model" if model is None else f"model {model!r}"
    return InfrastructureFailure(
        Broke.SETUP,
        f"{name} is not set: {which} cannot be asked; set it, or name another variable with "
        "apiKeyEnv",
        retryable=False,
        scope=Scope.VARIANT,
        accepted=False,
    )
