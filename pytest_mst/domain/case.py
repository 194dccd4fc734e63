"""A case: one input for the client, and what a good result is."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from pytest_mst.domain.json_value import json_type
from pytest_mst.domain.model import (
    Count,
    JsonDict,
    ListOf,
    Name,
    NaturalNumber,
    NonBlank,
    Share,
    Texts,
    UserModel,
)


def _calls_shorthand(value: object) -> object:
    """Let a list of calls stand for `{calls: [...]}`."""
    if isinstance(value, list | tuple):
        return {"calls": value}
    if not isinstance(value, dict | UserModel):
        msg = f"expected a list of calls, or an object with calls, got {json_type(value)}"
        raise ValueError(msg)
    return value


def _writes_shorthand(value: object) -> object:
    """Refuse `writes:` with nothing after it, which could mean any write or none."""
    if value is None:
        msg = "is null; write [] where no write is expected, or leave the key out"
        raise ValueError(msg)
    return _calls_shorthand(value)


def _each_compiles(patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    for pattern in patterns or ():
        try:
            re.compile(pattern)
        except re.error as error:
            msg = f"{pattern!r} is not a regular expression: {error}"
            raise ValueError(msg) from error
    return patterns


class ExpectedWrite(UserModel):
    """One write that a case expects. Arguments match partially."""

    server: str | None = None
    """The server's label; any server without it."""
    tool: NonBlank
    arguments: JsonDict = {}
    required: bool = True


class ExpectedWrites(UserModel):
    """The writes a case expects; an empty list expects none."""

    calls: ListOf[ExpectedWrite]
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

    calls: ListOf[ExpectedToolCall]
    order: Literal["any", "strict"] = "any"
    exclusive: bool = False
    """Whether any other tool call fails the trial."""

    @property
    def can_fail(self) -> bool:
        """Whether there is a trace that does not fit."""
        return self.exclusive or any(call.required for call in self.calls)


class ToolCallCount(UserModel):
    """How many tool calls a trial may make: `exact`, or `min` and `max`."""

    min: NaturalNumber | None = None
    max: NaturalNumber | None = None
    exact: NaturalNumber | None = None

    @model_validator(mode="after")
    def _says_something(self) -> ToolCallCount:
        if self.min is None and self.max is None and self.exact is None:
            msg = "needs one of min, max, exact"
            raise ValueError(msg)
        if self.exact is not None and (self.min is not None or self.max is not None):
            msg = "has exact beside min or max; keep one of the two"
            raise ValueError(msg)
        if self.min is not None and self.max is not None and self.min > self.max:
            msg = f"no number is at least {self.min} and at most {self.max}"
            raise ValueError(msg)
        return self

    @property
    def can_fail(self) -> bool:
        """Whether there is a number of calls that does not fit."""
        return self.exact is not None or self.max is not None or bool(self.min)


class Assertions(UserModel):
    """Checks of a trial by code."""

    contains_text: Texts | None = None
    """Texts that are all in the answer."""
    matches_pattern: Texts | None = None
    """Regular expressions, each searched for in the answer."""
    tools_triggered: (
        Annotated[
            ToolsTriggered,
            BeforeValidator(
                _calls_shorthand,
                json_schema_input_type=ToolsTriggered | tuple[ExpectedToolCall, ...],
            ),
        ]
        | None
    ) = None
    tool_call_count: ToolCallCount | None = None
    passes_judge: Any = None
    """Of older datasets: a judge, asked for in this place."""

    _compiles = field_validator("matches_pattern")(_each_compiles)

    @property
    def can_fail(self) -> bool:
        """Whether there is a trial that these checks would fail."""
        return bool(
            self.contains_text
            or self.matches_pattern
            or (self.tools_triggered is not None and self.tools_triggered.can_fail)
            or (self.tool_call_count is not None and self.tool_call_count.can_fail)
            or self.passes_judge not in (None, False, [], ())
        )


class JsonPathCheck(UserModel):
    """What a JSONPath query (RFC 9535) selects in a result.

    `path` alone holds where it selects something, whatever that is.
    """

    path: NonBlank
    """The query; `match` and `search` are not known in it."""
    exists: bool = True
    """Whether it is to select something."""
    equals: Any = None
    """It selects one value, equal to this."""
    contains: Any = None
    """One of the values it selects has this in it, as arguments of expected writes match."""
    count: NaturalNumber | None = None
    """How many values it selects."""

    @property
    def has_equals(self) -> bool:
        """Whether `equals` was written; null is a value, too."""
        return "equals" in self.model_fields_set

    @property
    def has_contains(self) -> bool:
        """Whether `contains` was written; null is a value, too."""
        return "contains" in self.model_fields_set

    @model_validator(mode="after")
    def _can_hold(self) -> JsonPathCheck:
        if not self.exists and (self.has_equals or self.has_contains or self.count):
            msg = "has exists: false beside what is to be selected; keep one of the two"
            raise ValueError(msg)
        return self


class OutcomeCheck(UserModel):
    """A read through our own connection after a live attempt, and what it is to find.

    `{{trial.id}}` stands for the attempt's own id in every text. All that is said has to hold.
    """

    server: NonBlank
    """The server's label."""
    tool: NonBlank
    """A tool that only reads."""
    arguments: JsonDict = {}
    contains_text: Texts | None = None
    """Texts that are all in the result's text."""
    lacks_text: Texts | None = None
    """Texts none of which is in the result's text."""
    matches_pattern: Texts | None = None
    """Regular expressions, each searched for in the result's text."""
    json_path: ListOf[JsonPathCheck] = ()
    """What queries select in the structured content, else in the text, read as JSON."""
    schema_: Annotated[JsonDict | None, Field(alias="schema")] = None
    """A JSON Schema that the structured content fits, else the text, read as JSON."""
    is_error: bool | None = None
    """Whether the tool is to answer with an error. Not said, an error is no reading at all."""
    within_ms: NaturalNumber = 5_000
    """How long to go on reading until all of it holds, in milliseconds."""

    _compiles = field_validator("matches_pattern")(_each_compiles)

    @model_validator(mode="after")
    def _says_something(self) -> OutcomeCheck:
        if not (
            self.contains_text
            or self.lacks_text
            or self.matches_pattern
            or self.json_path
            or self.schema_ is not None
            or self.is_error is not None
        ):
            msg = (
                "says nothing that is to be found; add containsText, lacksText, matchesPattern, "
                "jsonPath, schema or isError"
            )
            raise ValueError(msg)
        return self


class Expected(UserModel):
    """What a good result is. Other keys are the user's own, for judges to read."""

    model_config = ConfigDict(extra="allow")

    answer: Any = None
    criteria: Any = None
    writes: Annotated[
        ExpectedWrites | None,
        BeforeValidator(
            _writes_shorthand, json_schema_input_type=ExpectedWrites | tuple[ExpectedWrite, ...]
        ),
    ] = None
    """A list is short for `{calls: [...]}`; an empty one means that no write is expected."""
    outcome: ListOf[OutcomeCheck] | None = None


class Case(UserModel):
    """One input for the client, and what a good result is."""

    id: Name
    """Any text without control characters; unique in a run."""
    input: NonBlank
    """What the client is given, as a user would say it."""
    description: str | None = None
    tags: ListOf[str] = ()
    skip: NonBlank | None = None
    """Why the case is not run. Such a case is outside the ledger and shown as skipped."""
    trials: Count | None = None
    """How many attempts at this case are planned; by default what the eval config says."""
    pass_threshold: Share | None = None
    """The share of trials that must pass; by default what the eval config says."""
    client: NonBlank | None = None
    model: NonBlank | None = None
    client_options: JsonDict = {}
    """Laid over the client options of the variant and the eval config."""
    expected: Expected = Expected()
    assertions: Assertions = Assertions()
    judges: ListOf[Any] = ()
    judge_reps: Count = 1
    """How many times each judge is asked about a trial."""
    metadata: JsonDict = {}

    @property
    def grades_something(self) -> bool:
        """Whether the case has anything that a trial of it can fail."""
        return bool(
            self.assertions.can_fail
            or self.expected.writes is not None
            or self.expected.outcome
            or self.judges
        )


class Dataset(UserModel):
    """A named list of cases, in a file of its own."""

    schema_: Annotated[Any, Field(alias="$schema")] = None
    """Where an editor finds the JSON Schema of this file."""
    name: Name
    description: str | None = None
    cases: ListOf[Case]
    metadata: JsonDict = {}
