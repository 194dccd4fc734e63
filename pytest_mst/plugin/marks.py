"""The markers `mst` and `writes`, read into the case that they describe."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import MarkerError

MST_KEYS = ("input", "config", "trials", "pass_threshold", "tags", "timeout", "variants")
WRITES_KEYS = ("server", "tool", "arguments", "required", "exclusive", "order")

INPUT_FROM_BODY = "(the test body gives the input)"
"""Stands for the input of a case whose body runs the client itself."""


@dataclass(frozen=True, slots=True)
class Marked:
    """What the markers of one test function say."""

    input: str | None = None
    config: str | None = None
    trials: int | None = None
    pass_threshold: float | None = None
    tags: tuple[str, ...] = ()
    timeout_s: float | None = None
    variants: tuple[str, ...] = ()
    writes: Mapping[str, Any] | None = None
    """As `expected.writes` takes them; `None` where no marker says which."""
    declared_writes: bool = False
    """A bare `writes` marker: the case makes writes, whichever they are."""

    def case(self, case_id: str) -> Case:
        """Return the case that the markers describe."""
        content: dict[str, Any] = {
            "id": case_id,
            "input": self.input or INPUT_FROM_BODY,
            "tags": list(self.tags),
        }
        if self.writes is not None:
            content["expected"] = {"writes": self.writes}
        return Case.model_validate(content)


def marked(node: pytest.Item) -> Marked | None:
    """Read the markers of a test function; `None` for one that is no eval case.

    Raises:
        MarkerError: a marker is not as it has to be.

    """
    where = node.nodeid
    mst = node.get_closest_marker("mst")
    writes = list(node.iter_markers("writes"))
    if mst is None:
        if writes:
            raise MarkerError(where, "writes", "stands without `mst`", "add @pytest.mark.mst(...)")
        return None
    _keywords_only(where, mst, MST_KEYS)
    given = mst.kwargs
    timeout_ms = _whole(where, given, "timeout")
    return Marked(
        input=_typed(where, given, "input", str, "a text"),
        config=_typed(where, given, "config", str, "the path of an eval config"),
        trials=_whole(where, given, "trials"),
        pass_threshold=_share(where, given),
        tags=_texts(where, given, "tags"),
        timeout_s=timeout_ms / 1000 if timeout_ms else None,
        variants=_texts(where, given, "variants"),
        writes=_writes(where, writes),
        declared_writes=any(not mark.kwargs and not mark.args for mark in writes),
    )


def _writes(where: str, marks: Sequence[pytest.Mark]) -> Mapping[str, Any] | None:
    """Join the `writes` markers in the order a reader meets them: decorators apply bottom up."""
    calls: list[dict[str, Any]] = []
    joined: dict[str, Any] = {}
    for mark in reversed(marks):
        _keywords_only(where, mark, WRITES_KEYS, "writes")
        call = dict(mark.kwargs)
        for key in ("exclusive", "order"):
            if key in call:
                joined[key] = call.pop(key)
        if call:
            calls.append(call)
    if not calls and not joined:
        return None
    content = {"calls": calls, **joined}
    try:
        Case.model_validate({"id": "x", "input": "x", "expected": {"writes": content}})
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"][3:])
        raise MarkerError(
            where,
            "writes",
            f"{key or 'its arguments'} cannot be {first['input']!r}",
            "a tool's name is needed; arguments are an object, required and exclusive booleans, "
            "order is 'any' or 'strict'",
        ) from None
    return content


def _keywords_only(where: str, mark: pytest.Mark, valid: Iterable[str], name: str = "mst") -> None:
    if mark.args:
        raise MarkerError(
            where, name, f"takes no positional arguments, got {mark.args!r}", _takes(valid)
        )
    for key in mark.kwargs:
        if key not in valid:
            near = difflib.get_close_matches(key, valid, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise MarkerError(where, name, f"does not take {key!r}", hint + _takes(valid))


def _takes(valid: Iterable[str]) -> str:
    return "it takes " + ", ".join(f"{key}=" for key in valid)


def _typed(where: str, given: Mapping[str, Any], key: str, kind: type, expected: str) -> Any:
    value = given.get(key)
    if value is not None and (not isinstance(value, kind) or not value):
        raise MarkerError(where, "mst", f"{key}={value!r} is not one", f"{key} takes {expected}")
    return value


def _whole(where: str, given: Mapping[str, Any], key: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        expected = f"{key} takes a whole number from 1"
        raise MarkerError(where, "mst", f"{key}={value!r} is not one", expected)
    return value


def _share(where: str, given: Mapping[str, Any]) -> float | None:
    value = given.get("pass_threshold")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        expected = "pass_threshold takes a share, 0 to 1"
        raise MarkerError(where, "mst", f"pass_threshold={value!r} is not one", expected)
    return float(value)


def _texts(where: str, given: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = given.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple | set) or not all(isinstance(v, str) for v in value):
        expected = f"{key} takes a text or a list of texts"
        raise MarkerError(where, "mst", f"{key}={value!r} is not one", expected)
    return tuple(value)
