"""What a judge asks a model, and what comes of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import BaseModel

from pytest_mst.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class AskedModel:
    """Which model a judge asks, and how."""

    model: str | None = None
    """`None`: the one that the run's judges ask where nothing else is said."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Where it is: `provider`, `baseUrl` and `apiKeyEnv`, as far as they are said."""
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model."""

    instructions: str
    """What the judge is to do; nothing in here came from a user, a model or a server."""
    text: str
    """The data."""
    reply: type[BaseModel]
    """The form of the reply."""
    asked: AskedModel


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply of the form that was asked for."""

    reply: BaseModel
    usage: Usage
    model: str


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No reply, or none of the form that was asked for: it is neither a pass nor a fail."""

    reason: str
    retryable: bool = True
    """Whether asking again, as it is, can help."""
    usage: Usage | None = None


Reply: TypeAlias = Answered | Unanswered
