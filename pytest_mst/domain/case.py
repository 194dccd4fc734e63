"""A case: one input for the client, and what a good result is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from pytest_mst.domain.model import UserModel


def _one_or_many(value: object) -> object:
    """Let one text stand for a list of one."""
    return (value,) if isinstance(value, str) else _as_tuple(value)


def _as_tuple(value: object) -> object:
    """Let strict models take a JSON list where they hold a tuple."""
    return tuple(value) if isinstance(value, list) else value


def _calls_shorthand(value: object) -> object:
    """Let a list of calls stand for `{calls: [...]}`."""
    return {"calls": value} if isinstance(value, list) else value


def _not_blank(text: str) -> str:
    if not text.strip():
        msg = "must not be blank"
        raise ValueError(msg)
    return text


Texts = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
"""A text or a list of texts."""

NonBlank = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
JsonDict = dict[str, Any]
"""A JSON object of the user's own: held as it was written."""


class ExpectedWrite(UserModel):
    """One write that a case expects. Arguments match partially."""

    server: str | None = None
    """The server's label; any server without it."""
    tool: NonBlank
    arguments: JsonDict = {}
    required: bool = True


class ExpectedWrites(UserModel):
    """The writes a case expects; an empty list expects none."""

    calls: Annotated[tuple[ExpectedWrite, ...], BeforeValidator(_as_tuple)]
    order: Literal["any", "strict"] = "any"
    exclusive: bool = False
    """Whether any other write fails the trial."""


class ExpectedToolCall(UserModel):
    """One tool call that a case expects in the trace. Arguments match partially."""

    name: NonBlank
    """The tool's name, or `label.tool`."""
    arguments: JsonDict = {}
    required: bool = True


class ToolsTriggered(UserModel):
    """The tool calls a case expects in the trace."""

    calls: Annotated[tuple[ExpectedToolCall, ...], BeforeValidator(_as_tuple)]
    order: Literal["any", "strict"] = "any"
    exclusive: bool = False


class ToolCallCount(UserModel):
    """How many tool calls a trial may make."""

    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None
    exact: Annotated[int, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> ToolCallCount:
        if self.min is None and self.max is None and self.exact is None:
            msg = "needs one of min, max, exact"
            raise ValueError(msg)
        return self


class Assertions(UserModel):
    """Checks of a trial by code."""

    contains_text: Texts | None = None
    matches_pattern: Texts | None = None
    """Regular expressions, each searched for in the answer."""
    tools_triggered: Annotated[ToolsTriggered, BeforeValidator(_calls_shorthand)] | None = None
    tool_call_count: ToolCallCount | None = None
    passes_judge: Any = None
    """Of older datasets: a judge, asked for in this place."""

    @field_validator("matches_pattern")
    @classmethod
    def _compiles(cls, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for pattern in patterns or ():
            try:
                re.compile(pattern)
            except re.error as error:
                msg = f"{pattern!r} is not a regular expression: {error}"
                raise ValueError(msg) from error
        return patterns


class OutcomeCheck(UserModel):
    """A read through our own connection after a live attempt."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, frozen=True, strict=True)

    server: NonBlank
    tool: NonBlank
    arguments: JsonDict = {}


class Expected(UserModel):
    """What a good result is. Other keys are the user's own, for judges to read."""

    model_config = ConfigDict(
        extra="allow",
        alias_generator=to_camel,
        serialize_by_alias=True,
        frozen=True,
        strict=True,
    )

    answer: Any = None
    criteria: Any = None
    writes: Annotated[ExpectedWrites, BeforeValidator(_calls_shorthand)] | None = None
    outcome: Annotated[tuple[OutcomeCheck, ...], BeforeValidator(_as_tuple)] | None = None


class Case(UserModel):
    """One input for the client, and what a good result is."""

    id: Annotated[str, Field(min_length=1)]
    """Any text without control characters; unique in a run."""
    input: NonBlank
    description: str | None = None
    tags: Annotated[tuple[str, ...], BeforeValidator(_as_tuple)] = ()
    skip: Annotated[str, Field(min_length=1)] | None = None
    """Why the case is not run. Such a case is outside the ledger and shown as skipped."""
    trials: Count | None = None
    pass_threshold: Share | None = None
    client: str | None = None
    model: str | None = None
    client_options: JsonDict = {}
    expected: Expected = Expected()
    assertions: Assertions = Assertions()
    judges: Annotated[tuple[Any, ...], BeforeValidator(_as_tuple)] = ()
    judge_reps: Count = 1
    metadata: Mapping[str, Any] = {}

    @field_validator("id")
    @classmethod
    def _printable(cls, case_id: str) -> str:
        _not_blank(case_id)
        if any(ord(char) < 32 or ord(char) == 127 for char in case_id):  # noqa: PLR2004
            msg = "must not hold control characters"
            raise ValueError(msg)
        return case_id

    @property
    def grades_something(self) -> bool:
        """Whether the case has anything that a trial of it can fail."""
        assertions = self.assertions
        return bool(
            assertions.contains_text
            or assertions.matches_pattern
            or assertions.tool_call_count is not None
            or _can_fail(assertions.tools_triggered)
            or assertions.passes_judge is not None
            or self.expected.writes is not None
            or self.expected.outcome
            or self.judges
        )


def _can_fail(triggered: ToolsTriggered | None) -> bool:
    return triggered is not None and (triggered.exclusive or bool(triggered.calls))


class Dataset(UserModel):
    """A named list of cases, in a file of its own."""

    schema_: Annotated[Any, Field(alias="$schema")] = None
    name: NonBlank
    description: str | None = None
    cases: Annotated[tuple[Case, ...], BeforeValidator(_as_tuple)]
    metadata: Mapping[str, Any] = {}
