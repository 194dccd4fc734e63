"""What the loopback provider does with one request: the steps of a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

FailureKind: TypeAlias = Literal["rate", "context", "billing", "auth", "not_found", "plain"]


@dataclass(frozen=True)
class Tool:
    """A tool that the model asks for, by its name or the end of it; `@any`: the first offered."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A text is sent as it is, also where it is no JSON (OpenAI's APIs only)."""


@dataclass(frozen=True)
class Answer:
    """What the model says: text, calls, or both; `stop` in the API's own words."""

    text: str = ""
    tools: tuple[Tool, ...] = ()
    stop: str | None = None
    usage: tuple[int, int] = (10, 5)
    """Input and output tokens."""
    cut_after: int | None = None
    """The connection ends after so many events of the stream."""
    stream_error: str | None = None
    """An error of this type comes inside the stream that has begun."""


@dataclass(frozen=True)
class Structured:
    """An answer in the form that was asked for: by a tool, by a schema, or in text."""

    content: Mapping[str, Any]
    usage: tuple[int, int] = (10, 5)


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    kind: FailureKind = "plain"
    retry_after_s: float | None = None
    message: str | None = None


@dataclass(frozen=True)
class Refuse:
    """The model, or a filter before it, refuses."""

    text: str = "I cannot help with that."


@dataclass(frozen=True)
class OutputLimit:
    """The answer is cut by the limit of output tokens."""

    text: str = ""


@dataclass(frozen=True)
class Hang:
    """No answer until the provider closes."""


@dataclass(frozen=True)
class Raw:
    """An answer that is none of the API's."""

    status: int = 200
    body: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


Step: TypeAlias = Answer | Structured | Fail | Refuse | OutputLimit | Hang | Raw


def say(text: str, **more: Any) -> Answer:
    """Answer with text."""
    return Answer(text, **more)


def use(*tools: Tool, text: str = "", **more: Any) -> Answer:
    """Ask for tools, side by side."""
    return Answer(text, tools, **more)


def cut(after: int = 1, *, text: str = "half an answer") -> Answer:
    """End the connection in the middle of the answer."""
    return Answer(text, cut_after=after)


def context_overflow() -> Fail:
    """Say that the request is longer than the model's context."""
    return Fail(400, "context")


def step_from_json(stored: Mapping[str, Any]) -> Step:
    """Read a step of a script in JSON, as `python -m tests.model_provider` takes it."""
    if "status" in stored:
        return Fail(stored["status"], stored.get("kind", "plain"), stored.get("retry_after_s"))
    if "structured" in stored:
        return Structured(stored["structured"])
    if "refuse" in stored:
        return Refuse(stored["refuse"])
    if "output_limit" in stored:
        return OutputLimit(stored["output_limit"])
    if not {"text", "tools"} & set(stored):
        msg = f"not a step of a script: {stored!r}"
        raise ValueError(msg)
    tools = tuple(Tool(one["name"], one.get("arguments", {})) for one in stored.get("tools", ()))
    return Answer(stored.get("text", ""), tools)
