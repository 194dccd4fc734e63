"""What an eval config or a case says of a judge, and which judges a case has."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from pytest_mst.domain.case import Case
from pytest_mst.domain.eval_config import OBJECT_PATTERN, check_object
from pytest_mst.domain.json_value import json_type
from pytest_mst.domain.model import (
    Count,
    JsonDict,
    ListOf,
    Milliseconds,
    Name,
    NonBlank,
    Share,
    UserModel,
)

RubricName: TypeAlias = Literal[
    "correctness", "completeness", "groundedness", "instruction-following", "conciseness"
]
"""The rubrics that are built in."""

RUBRIC_NAMES: tuple[str, ...] = get_args(RubricName)
RUBRIC, FUNCTION = "rubric", "function"
"""The types of judges that are built in; any other is the name of a registered one."""

DEFAULT_THRESHOLD = 0.7
"""From which value on a rubric's score passes."""


def _named_or_own(text: str) -> str:
    """Refuse a word that is all but the name of a built-in rubric: it would be graded as a text."""
    if text not in RUBRIC_NAMES and len(text.split()) == 1:
        near = difflib.get_close_matches(text.lower().replace("_", "-"), RUBRIC_NAMES, 1, 0.75)
        if near:
            msg = (
                f"there is no rubric {text!r}; did you mean {near[0]!r}? "
                "(a rubric of your own is a sentence)"
            )
            raise ValueError(msg)
    return text


class Criterion(UserModel):
    """One thing that a rubric grades, with a score of its own."""

    name: Name
    text: NonBlank
    """What is graded, for the judge to read."""


Some = Field(min_length=1)
"""Of a list that must not be empty."""


def _some(criteria: object) -> object:
    """Refuse a rubric that grades nothing, and one whose form cannot be."""
    if isinstance(criteria, list | tuple) and not criteria:
        msg = "is empty, so that there is nothing to grade by"
        raise ValueError(msg)
    if not isinstance(criteria, str | list | tuple):
        msg = f"expected the name of a rubric, a text or a list of them, got {json_type(criteria)}"
        raise ValueError(msg)
    return (criteria,) if isinstance(criteria, str) else criteria


def _criterion(given: object) -> object:
    """Let a name or a text stand for a criterion."""
    if not isinstance(given, str):
        return given
    text = _named_or_own(given)
    name = text if len(text.split()) == 1 else RUBRIC
    return {"name": name, "text": text}


def _names_once(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    """Number criteria of one name, so that each has a score of its own."""
    seen: dict[str, int] = {}
    told = []
    for one in criteria:
        seen[one.name] = number = seen.get(one.name, 0) + 1
        name = one.name if number == 1 else f"{one.name} {number}"
        told.append(one.model_copy(update={"name": name}))
    return tuple(told)


class JudgeBase(UserModel):
    """What every judge has."""

    name: Name | None = None
    """What its scores are kept under; a case's judge changes the eval's judge of its name."""
    threshold: Share | None = None
    """From which value on, 0 to 1, its score passes."""
    timeout: Milliseconds = 300_000
    """How long it may take for one trial, in milliseconds, waits included."""


class RubricConfig(JudgeBase):
    """A judge that asks a model, by a rubric."""

    type: Literal["rubric"] = "rubric"
    rubric: Annotated[
        ListOf[
            Annotated[
                Criterion, BeforeValidator(_criterion, json_schema_input_type=Criterion | NonBlank)
            ]
        ],
        BeforeValidator(
            _some,
            json_schema_input_type=NonBlank | Annotated[tuple[Criterion | NonBlank, ...], Some],
        ),
        AfterValidator(_names_once),
    ] = (Criterion.model_validate({"name": "correctness", "text": "correctness"}),)
    """The name of a built-in rubric, a text, or a list of criteria, each scored by itself."""
    reference: Any = None
    """What a good answer is, for the judge to compare with."""
    reps: Count | None = None
    """How many times it is asked about a trial."""
    model: NonBlank | None = None
    """Which model is asked; by default as `mst_judge_model` or `MST_JUDGE_MODEL` says."""
    provider: Literal["anthropic", "openai", "openai-responses", "google"] | None = None
    """Of the API; by default told from the model's id."""
    base_url: NonBlank | None = None
    """Where the API is; by default as its own variable says, else the public one."""
    api_key_env: NonBlank | None = None
    """The name of the environment variable that holds the key."""
    temperature: float | None = None
    max_tokens: Count | None = None


class FunctionConfig(JudgeBase):
    """A judge that is a Python function."""

    type: Literal["function"]
    object: Annotated[
        str,
        AfterValidator(partial(check_object, example="judges:is_polite")),
        WithJsonSchema({"type": "string", "pattern": OBJECT_PATTERN}),
    ]
    """`module:attribute`; modules are looked up beside the eval config first."""
    options: JsonDict = {}
    """Handed to it by name."""


class RegisteredConfig(JudgeBase):
    """A judge that a plugin or a conftest registered; other keys are its own options."""

    model_config = ConfigDict(extra="allow")

    type: Annotated[
        NonBlank,
        WithJsonSchema(
            {"type": "string", "pattern": r"\S", "not": {"enum": [RUBRIC, FUNCTION]}},
        ),
    ]
    """The name it was registered under."""

    @property
    def options(self) -> JsonDict:
        """Its own options."""
        return dict(self.model_extra or {})


JudgeConfig: TypeAlias = RubricConfig | FunctionConfig | RegisteredConfig


def entry_of(given: object) -> dict[str, Any]:
    """Return what stands for a judge in a file as the object that it is short for.

    A word is the name of a built-in rubric, else of a registered judge; a longer text is a rubric.

    Raises:
        ValueError: it is neither a text nor an object.

    """
    if isinstance(given, str) and given.strip():
        if given in RUBRIC_NAMES or len(given.split()) > 1:
            return {"type": RUBRIC, "rubric": given}
        return {"type": given}
    if not isinstance(given, Mapping):
        msg = f"expected a rubric, the name of a judge, or an object with type, got {_shown(given)}"
        raise ValueError(msg)
    entry = dict(given)
    if "type" not in entry:
        kind = RUBRIC if "rubric" in entry else FUNCTION if "object" in entry else None
        entry = entry if kind is None else {"type": kind, **entry}
    return entry


def _shown(given: object) -> str:
    return "a blank text" if isinstance(given, str) else json_type(given)


def older_entries(case: Case) -> Iterator[dict[str, Any]]:
    """Yield the judges that older datasets ask for among the assertions.

    Raises:
        ValueError: what is asked for is no judge.

    """
    asked = case.assertions.passes_judge
    for one in asked if isinstance(asked, list | tuple) else (asked,):
        if one is None or one is False:
            continue
        given: Any = {"rubric": "correctness"} if one is True else one
        entry = entry_of({"rubric": given} if isinstance(given, str) else given)
        yield entry if "type" in entry else {"type": RUBRIC, **entry}


def config_class(entry: Mapping[str, Any]) -> type[JudgeConfig]:
    """Return what a judge's entry is to be read as, by its type."""
    match entry.get("type"):
        case "rubric":
            return RubricConfig
        case "function":
            return FunctionConfig
        case _:
            return RegisteredConfig


def entry_name(entry: Mapping[str, Any]) -> str:
    """Return what a judge is called: its name, else its built-in rubric, function or type."""
    name = entry.get("name")
    if isinstance(name, str) and name.strip():
        return name
    rubric, target = entry.get("rubric", "correctness"), entry.get("object")
    kind = entry.get("type")
    if kind == RUBRIC and isinstance(rubric, str) and rubric in RUBRIC_NAMES:
        return rubric
    if kind == FUNCTION and isinstance(target, str):
        return target.rpartition(":")[2].rpartition(".")[2] or FUNCTION
    return kind if isinstance(kind, str) and kind.strip() else "judge"


def judge_entries(case: Case, configured: Sequence[object]) -> list[dict[str, Any]]:
    """Return the judges of a case: the eval's or the variant's, with the case's over them.

    A judge of the case that has the name of a configured one changes what it says, and takes its
    place where it is of another type; any other is one more. One that has no type is only there to
    change another.

    Args:
        case: the case.
        configured: the judges of the eval, or of the variant in their place.

    Raises:
        ValueError: one of them is no judge.

    """
    entries: dict[str, dict[str, Any]] = {}
    for given in configured:
        entry = entry_of(given)
        if "judge_reps" in case.model_fields_set and entry.get("type") == RUBRIC:
            entry["reps"] = case.judge_reps
        entries[free_name(entry_name(entry), entries)] = entry
    own: set[str] = set()
    for said in (*map(entry_of, case.judges), *older_entries(case)):
        name = entry_name(said)
        before = entries.get(name) if name not in own else None
        if before is None and "type" not in said:
            continue
        if before is None:
            name = free_name(name, entries)
        changes = before is not None and said.get("type", before.get("type")) == before.get("type")
        entries[name] = {**(before or {}), **said} if changes else said
        own.add(name)
    return [{**entry, "name": name} for name, entry in entries.items()]


def reps_of(config: RubricConfig, case: Case) -> int:
    """Return how many times a rubric's judge is asked about a trial of a case."""
    return config.reps or case.judge_reps


def free_name(name: str, taken: Container[str]) -> str:
    """Number a name that is taken, so that no score is kept in another's place."""
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}-{number}"
    return free
