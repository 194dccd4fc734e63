"""What the models say may stand at a place in a file: its keys, or its choices."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from pytest_mst.domain.eval_config import BY_LABEL, FOR_ALL
from pytest_mst.domain.json_value import JsonValue
from pytest_mst.domain.model import UserModel
from pytest_mst.eval_files.document import KeyPath

Step: TypeAlias = str | int

_ABSENT = object()
"""What is not in the file, below which any step may be named."""


def known_keys(model: type[UserModel], location: KeyPath) -> tuple[str, ...]:
    """Return the keys that an object at a place may have, in the order of the contract.

    Args:
        model: what the file as a whole is.
        location: a place as pydantic names it, which includes the tags of unions.

    """
    keys: dict[str, None] = {}
    for arm in _arms_at(model, location):
        if _is_model(arm):
            keys.update(dict.fromkeys(_fields(arm)))
    return tuple(keys)


def choices(model: type[UserModel], location: KeyPath) -> tuple[str, ...]:
    """Return the texts that a place takes, where they are a closed set."""
    return tuple(
        choice
        for arm in _arms_at(model, location)
        if get_origin(arm) is Literal
        for choice in get_args(arm)
    )


def written_path(location: KeyPath, value: JsonValue) -> KeyPath:
    """Turn a place as pydantic names it into one of the file.

    Leaves out the tags of unions, and the steps into an object or list that a shorthand stands
    for: `calls` where `writes` is a list of calls, `path` where a dataset is only its path.

    Args:
        location: a place as pydantic names it.
        value: the content of the file.

    """
    path: list[Step] = []
    here: Any = value
    for index, step in enumerate(location):
        is_transport = index == 2 and location[0] == "servers"  # noqa: PLR2004  # after the label
        is_kind_of_writes = step in (FOR_ALL, BY_LABEL) and path[-1:] == ["writes"]
        is_shorthand = not isinstance(here, dict if isinstance(step, str) else list)
        if is_transport or is_kind_of_writes or (is_shorthand and here is not _ABSENT):
            continue
        path.append(step)
        here = _child(here, step)
    return tuple(path)


def _child(here: Any, step: Step) -> Any:
    if isinstance(here, dict):
        return here.get(step, _ABSENT)
    if isinstance(here, list) and isinstance(step, int) and step < len(here):
        return here[step]
    return _ABSENT


def _arms_at(model: type[UserModel], location: KeyPath) -> list[Any]:
    arms: list[Any] = [model]
    for step in location:
        arms = [deeper for arm in arms for deeper in _deeper(arm, step)]
    return arms


def _deeper(arm: Any, step: Step) -> Iterator[Any]:
    """Yield what an annotation holds one step down; a union's tag leads to the arm it names."""
    origin = get_origin(arm)
    if _is_model(arm):
        fields = _fields(arm)
        if step in fields:
            yield from _flat(fields[str(step)])
        elif "transport" in fields and step in get_args(fields["transport"]):
            yield arm
    elif (origin is tuple and isinstance(step, int)) or origin is dict:
        if step not in (BY_LABEL, FOR_ALL):
            yield from _flat(get_args(arm)[0 if origin is tuple else 1])
        else:
            yield arm
    elif origin is Literal and step == FOR_ALL:
        yield arm


def _flat(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _flat(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for arm in get_args(annotation):
            yield from _flat(arm)
    else:
        yield annotation


def _is_model(arm: Any) -> bool:
    return isinstance(arm, type) and issubclass(arm, UserModel)


def _fields(model: type[UserModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
