"""The base of everything a user writes in a file, and the types its fields are made of.

Keys are camelCase, unknown keys are refused, JSON's types are kept apart (`"3"` is not `3`), and
what was read does not change.
"""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict
from pydantic import WithJsonSchema as JsonSchema
from pydantic.alias_generators import to_camel

from pytest_mst.domain.json_value import json_type


class UserModel(BaseModel):
    """A part of an eval config or a dataset."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )


def _not_blank(text: str) -> str:
    if not text.strip():
        msg = "must not be blank"
        raise ValueError(msg)
    return text


def _printable(text: str) -> str:
    if any(unicodedata.category(char) == "Cc" for char in text):
        msg = "must not hold control characters"
        raise ValueError(msg)
    return _not_blank(text)


def _not_empty(text: str) -> str:
    if not text:
        msg = "must not be empty: an empty text is found in every answer"
        raise ValueError(msg)
    return text


def _whole(value: object) -> object:
    """Take `3.0` for `3`, as JSON Schema does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _one_or_many(value: object) -> object:
    """Let one text stand for a list of one."""
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple):
        msg = f"expected a string or a list of strings, got {json_type(value)}"
        raise ValueError(msg)
    return value


# Constraints on strings are functions, not `Field(min_length=...)`: pydantic's own refuse a text
# with a lone surrogate, which JSON can hold.

NonBlank = Annotated[
    str, AfterValidator(_not_blank), JsonSchema({"type": "string", "pattern": r"\S"})
]
"""A text that is more than white space."""

Name = Annotated[
    str,
    AfterValidator(_printable),
    JsonSchema(
        {"type": "string", "pattern": r"^(?=.*\S)[^\u0000-\u001f\u007f-\u009f]+$"},
    ),
]
"""A text that names something: not blank, without control characters."""

NonEmpty = Annotated[
    str, AfterValidator(_not_empty), JsonSchema({"type": "string", "minLength": 1})
]

Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole, 0 to 1."""

_Positive = Annotated[int, Field(ge=1)]
_Natural = Annotated[int, Field(ge=0)]

Count = Annotated[_Positive, BeforeValidator(_whole, json_schema_input_type=_Positive)]
"""A number of things, 1 or more."""

NaturalNumber = Annotated[_Natural, BeforeValidator(_whole, json_schema_input_type=_Natural)]
"""A number of things, 0 or more."""

Milliseconds = Count
"""A length of time, 1 ms or more."""

JsonDict: TypeAlias = dict[str, Any]
"""A JSON object of the user's own: held as it was written."""

T = TypeVar("T")

ListOf: TypeAlias = Annotated[tuple[T, ...], Strict(False)]
"""A JSON list, held as a tuple. Its items are as strict as everything else."""

Texts = Annotated[
    tuple[NonEmpty, ...],
    Strict(False),
    BeforeValidator(_one_or_many, json_schema_input_type=NonEmpty | tuple[NonEmpty, ...]),
]
"""A text or a list of texts."""
