"""The smallest value that a JSON Schema accepts, checked with the schema before it is given out."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from pytest_mst.domain.json_value import canonical_json
from pytest_mst.proxy.pattern_text import texts_matching
from pytest_mst.proxy.subschema import UnresolvedReferenceError, merged, resolved

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

_DEPTHS = (1, 2, 3, 4, 5, 6, 8, 12, 24, 48)
"""Nesting is tried from shallow to deep, so that a recursive schema ends where it first can."""
_STEP_LIMIT = 20_000
_CANDIDATES = 64

_TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")
_TYPE_BY_KEYWORD = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "contains", "uniqueItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_TEXT_BY_FORMAT = {
    "date-time": "1970-01-01T00:00:00Z",
    "date": "1970-01-01",
    "time": "00:00:00Z",
    "duration": "PT0S",
    "email": "a@example.com",
    "idn-email": "a@example.com",
    "hostname": "example.com",
    "idn-hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "http://example.com/",
    "iri": "http://example.com/",
    "uri-reference": "/",
    "iri-reference": "/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "json-pointer": "",
    "regex": "a",
}


class CannotGenerateError(ValueError):
    """No value was found that the schema accepts."""


def smallest_instance(schema: Mapping[str, Any], *, truth: bool = False) -> Any:
    """Find a small value that a schema accepts.

    Args:
        schema: the schema.
        truth: which of the two booleans is tried first.

    Raises:
        CannotGenerateError: none was found, or the schema cannot be used.

    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(dict(schema))
        search = _Search(kind(schema, registry=Registry()), schema, truth)
        for depth in _DEPTHS:
            for value in search.fitting(schema, depth):
                return value
    except (
        SchemaError,
        Unresolvable,
        UnresolvedReferenceError,
        RecursionError,
        re.error,
        ArithmeticError,
    ) as error:
        msg = f"its schema cannot be used: {type(error).__name__}"
        raise CannotGenerateError(msg) from error
    msg = "found no value that its schema accepts"
    raise CannotGenerateError(msg)


class _Search:
    """One search, with a bound on how much it may try."""

    def __init__(self, validator: Validator, root: Mapping[str, Any], truth: bool) -> None:
        self._validator = validator
        self._truth = truth
        self._root = root
        self._steps = 0

    def fitting(self, schema: Any, depth: int) -> Iterator[Any]:
        """Give values that fit a part of the schema, smaller ones first."""
        check = self._validator.evolve(schema=schema)
        for value in islice(self._candidates(schema, depth), _CANDIDATES):
            if check.is_valid(value):
                yield value

    def _first(self, schema: Any, depth: int, *, unlike: list[Any] | None = None) -> Any:
        taken = {canonical_json(value) for value in unlike or ()}
        for value in self.fitting(schema, depth):
            if canonical_json(value) not in taken:
                return value
        raise CannotGenerateError

    def _candidates(self, schema: Any, depth: int) -> Iterator[Any]:
        self._steps += 1
        if schema is False or depth < 0 or self._steps > _STEP_LIMIT:
            return
        if schema is True:
            schema = {}
        if "$ref" in schema:
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            target = resolved(self._root, schema["$ref"])
            yield from self._candidates(merged(target, rest), depth - 1)
            return
        if "const" in schema:
            yield schema["const"]
            return
        if "enum" in schema:
            yield from schema["enum"]
            return
        alternatives = _alternatives(schema)
        if alternatives is not None:
            for one in alternatives:
                yield from islice(self._candidates(one, depth), _CANDIDATES)
        else:
            for name in _types(schema):
                yield from self._of_type(name, schema, depth)
        if "default" in schema:
            yield schema["default"]
        yield from schema.get("examples") or ()

    def _of_type(self, name: str, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        match name:
            case "null":
                yield None
            case "boolean":
                yield from (self._truth, not self._truth)
            case "integer" | "number":
                yield from _numbers(schema, whole=name == "integer")
            case "string":
                yield from _texts(schema)
            case "array":
                yield from self._arrays(schema, depth - 1)
            case "object":
                yield from self._objects(schema, depth - 1)
            case _:
                return

    def _arrays(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        prefix = list(schema.get("prefixItems") or ())
        rest = schema.get("items", True)
        if isinstance(rest, list):  # drafts before 2020-12
            prefix, rest = rest, schema.get("additionalItems", True)
        least = schema.get("minItems", 0)
        special = schema.get("contains")
        wanted = schema.get("minContains", 1) if special is not None else 0
        values: list[Any] = []
        try:
            for index in range(max(least, wanted)):
                part = prefix[index] if index < len(prefix) else rest
                if index < wanted:
                    part = merged(part, special)
                unlike = values if schema.get("uniqueItems") else None
                values.append(self._first(part, depth, unlike=unlike))
        except CannotGenerateError:
            return
        yield values

    def _objects(self, schema: Mapping[str, Any], depth: int) -> Iterator[Any]:
        value: dict[str, Any] = {}
        names = list(schema.get("required") or ())
        try:
            while names:
                name = names.pop(0)
                if name not in value:
                    value[name] = self._first(_property(schema, name), depth)
                    names += _dependent(schema, name)
            for name in _spare_names(schema):
                if len(value) >= schema.get("minProperties", 0):
                    break
                if name not in value:
                    value[name] = self._first(_property(schema, name), depth)
        except CannotGenerateError:
            return
        yield value


def _alternatives(schema: Mapping[str, Any]) -> list[Any] | None:
    """Take a schema that is several at once, or one of several, apart into single ones."""
    for keyword in ("allOf", "anyOf", "oneOf"):
        parts = schema.get(keyword)
        if parts:
            rest = {name: value for name, value in schema.items() if name != keyword}
            if keyword != "allOf":
                return [merged(rest, part) for part in parts]
            whole: Any = rest
            for part in parts:
                whole = merged(whole, part)
            return [whole]
    if "if" in schema:
        rest = {k: v for k, v in schema.items() if k not in {"if", "then", "else"}}
        held = merged(merged(rest, schema["if"]), schema.get("then", True))
        return [rest, merged(rest, schema.get("else", True)), held]
    return None


def _types(schema: Mapping[str, Any]) -> list[str]:
    stated = schema.get("type")
    if isinstance(stated, str):
        return [stated]
    if isinstance(stated, list):
        return [name for name in _TYPES if name in stated]
    meant = [
        name
        for name, keywords in _TYPE_BY_KEYWORD.items()
        if any(keyword in schema for keyword in keywords)
    ]
    return meant + [name for name in _TYPES if name not in meant]


def _numbers(schema: Mapping[str, Any], *, whole: bool) -> Iterator[float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(above, bool):  # draft 4: a flag beside minimum
        above = low if above else None
    if isinstance(below, bool):
        below = high if below else None
    step = schema.get("multipleOf")
    bounds = [bound for bound in (low, above, high, below) if bound is not None]
    yield 0
    for bound in bounds:
        near = [bound, bound + 1, bound - 1]
        if step:
            near += [math.ceil(bound / step) * step, math.floor(bound / step) * step]
            near += [near[-2] + step, near[-1] - step]
        yield from (math.ceil(value) for value in near)
        yield from (math.floor(value) for value in near)
        if not whole:
            yield from near
    if not whole and len(bounds) > 1:
        yield (min(bounds) + max(bounds)) / 2
    for count in range(1, 9):
        yield count * (step or 1) + (math.ceil(bounds[0]) if bounds else 0)


def _texts(schema: Mapping[str, Any]) -> Iterator[str]:
    least = schema.get("minLength", 0)
    if schema.get("format") in _TEXT_BY_FORMAT:
        yield _TEXT_BY_FORMAT[schema["format"]]
    if isinstance(schema.get("pattern"), str):
        yield from texts_matching(schema["pattern"], least)
    for more in range(8):
        yield "x" * (least + more)


def _property(schema: Mapping[str, Any], name: str) -> Any:
    parts = [schema["properties"][name]] if name in schema.get("properties", {}) else []
    for pattern, part in schema.get("patternProperties", {}).items():
        if re.search(pattern, name):
            parts.append(part)
    if not parts:
        return schema.get("additionalProperties", True)
    whole = parts[0]
    for part in parts[1:]:
        whole = merged(whole, part)
    return whole


def _dependent(schema: Mapping[str, Any], name: str) -> list[str]:
    names = schema.get("dependentRequired", {}).get(name) or ()
    older = schema.get("dependencies", {}).get(name)
    return [*names, *(older if isinstance(older, list) else ())]


def _spare_names(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from schema.get("properties", {})
    for pattern in schema.get("patternProperties", {}):
        yield from texts_matching(pattern, 0)
    least = schema.get("minProperties", 0)
    yield from (f"p{index}" for index in range(least))
