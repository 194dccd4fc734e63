"""Asking a model for an answer of a given form; prose is never read as one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pytest_mst.domain.turn_retry import TurnRetry
from pytest_mst.domain.usage import Usage
from pytest_mst.providers.asker import Asker
from pytest_mst.providers.endpoint import Endpoint
from pytest_mst.providers.model import Models

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.settings import ModelSettings

T = TypeVar("T", bound=BaseModel)

TOOL = "answer"
"""The tool whose call is the answer."""
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(?P<inner>.*?)\n?\s*```\s*", re.DOTALL | re.IGNORECASE)
_REPAIRS = 1
_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """An answer of the form that was asked for."""

    output: T
    usage: Usage


class UnfitAnswerError(Exception):
    """What a model answered is not of the form that was asked for, also when asked once more."""

    def __init__(self, problem: str, usage: Usage, *, truncated: bool = False) -> None:
        """Build the message.

        Args:
            problem: what does not fit.
            usage: what asking took all the same.
            truncated: the answer was cut by its limit of tokens, and will be again.

        """
        super().__init__(f"the model's answer is not of the form it was asked for: {problem}")
        self.usage = usage
        self.truncated = truncated


@dataclass(frozen=True, slots=True)
class AskSettings:
    """How a model is asked."""

    temperature: float | None = None
    max_tokens: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def for_model(self) -> ModelSettings:
        """Return them as pydantic-ai takes them."""
        said: Any = dict(self.extra)
        if self.temperature is not None:
            said["temperature"] = self.temperature
        if self.max_tokens is not None:
            said["max_tokens"] = self.max_tokens
        settings: ModelSettings = said
        return settings


async def ask(
    endpoint: Endpoint,
    instructions: str,
    text: str,
    output: type[T],
    *,
    settings: AskSettings | None = None,
    turns: TurnRetry | None = None,
    models: Models | None = None,
) -> Answer[T]:
    """Ask a model one question, and return its answer in the form that was asked for.

    It answers by calling a tool whose arguments have that form; the same as JSON text, fenced or
    not, is read as well. What does not fit is told the model once.

    Args:
        endpoint: the model.
        instructions: what it is to do.
        text: what it is asked about.
        output: the form of the answer.
        settings: how it is asked.
        turns: waits before a request is made again.
        models: where models are opened; those of the running event loop by default.

    Raises:
        ProviderError: there is no answer.
        InfrastructureError: the tries are used up, or do not fit the deadline.
        UnfitAnswerError: the answer is not of that form.

    """
    from pydantic_ai.messages import ModelRequest, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    asker = Asker(endpoint, turns, models=models)
    tool = ToolDefinition(
        name=TOOL,
        description=(output.__doc__ or "The answer.").strip(),
        parameters_json_schema=output.model_json_schema(),
        kind="output",
    )
    parameters = ModelRequestParameters(
        output_mode="tool", output_tools=[tool], allow_text_output=False
    )
    asked: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(text)], instructions=instructions)
    ]
    wished = (settings or AskSettings()).for_model()
    for repairs_left in range(_REPAIRS, -1, -1):
        response = await asker.ask(asked, wished, parameters)
        try:
            return Answer(_read(response, output), asker.usage)
        except ValueError as error:
            truncated = response.finish_reason == "length"
            if truncated or not repairs_left:
                problem = "it was cut at its limit of tokens" if truncated else _problem(error)
                raise UnfitAnswerError(problem, asker.usage, truncated=truncated) from error
            asked += [response, _told(response, _problem(error), instructions)]
    raise AssertionError


def _read(response: ModelResponse, output: type[T]) -> T:
    """Read an answer.

    Raises:
        ValueError: it has not the form.

    """
    from pydantic_ai.messages import ToolCallPart

    for part in response.parts:
        if isinstance(part, ToolCallPart) and part.tool_name == TOOL:
            given = part.args if part.args is not None else {}
            if isinstance(given, str):
                return output.model_validate_json(given)
            return output.model_validate(given)
    said = response.text or ""
    fenced = _FENCED.fullmatch(said)
    inner = fenced["inner"] if fenced else said
    try:
        return output.model_validate_json(inner)
    except ValidationError as error:
        if not inner.lstrip().startswith("{"):
            shown = said[:_SHOWN_CHARS] or "nothing"
            msg = f"it is text and no JSON: {shown!r}"
            raise ValueError(msg) from error
        raise


def _problem(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])


def _told(response: ModelResponse, problem: str, instructions: str) -> ModelMessage:
    from pydantic_ai.messages import (
        ModelRequest,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    said = f"That answer cannot be used: {problem}. Answer again by calling `{TOOL}`."
    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if not calls:
        return ModelRequest(parts=[UserPromptPart(said)], instructions=instructions)
    return ModelRequest(
        parts=[ToolReturnPart(one.tool_name, said, one.tool_call_id) for one in calls],
        instructions=instructions,
    )
