"""Whether what a tool answered is what an outcome check asks for. Pure; nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pytest_mst.domain.case import JsonPathCheck, OutcomeCheck
from pytest_mst.domain.json_text import NotJsonError, json_from_text
from pytest_mst.domain.json_value import JsonObject, JsonValue, canonical_json, json_equal
from pytest_mst.grading.matching import match_arguments
from pytest_mst.grading.pattern_search import SEARCH
from pytest_mst.grading.shown import canonical_text, described, listed, shown

if TYPE_CHECKING:
    from jsonpath import JSONPath
    from jsonschema.protocols import Validator

SEARCH_LIMIT_S: Final = 2.0
"""How long one pattern may search one result, in seconds."""
_PROBLEMS_SHOWN: Final = 3


class CannotTellError(Exception):
    """A check cannot be made with what there is: it neither holds nor fails."""


def problems_in(check: OutcomeCheck, result: JsonObject) -> list[str]:
    """Say what a check asks for and a result does not have; nothing where all of it holds.

    Args:
        check: with the attempt's id in its texts.
        result: a raw `tools/call` result.

    Raises:
        CannotTellError: the tool answered with an error of which the check says nothing, or a
            part of the check cannot be used.

    """
    try:
        return _problems_in(check, result)
    except RecursionError as error:
        msg = "the result is nested too deeply to be looked at"
        raise CannotTellError(msg) from error


def _problems_in(check: OutcomeCheck, result: JsonObject) -> list[str]:
    text, is_error = result_text(result), result.get("isError") is True
    if check.is_error is None and is_error:
        msg = (
            f"the tool answered with an error: {shown(text)}; where that is what there is to "
            "find, write isError: true, and isError: false where it is a failure"
        )
        raise CannotTellError(msg)
    found: list[str] = []
    if check.is_error is not None and check.is_error is not is_error:
        said = "an error" if is_error else "no error"
        found.append(f"the tool answered with {said}: {shown(text)}")
    found += _in_text(check, text)
    if check.json_path or check.schema_ is not None:
        found += _in_json(check, result, text)
    return found


def unusable_parts(check: OutcomeCheck) -> Iterator[str]:
    """Say which parts of a check can never be used: queries and schemas that are none."""
    for one in check.json_path:
        try:
            _query(one.path)
        except ValueError as error:
            yield f"jsonPath {shown(one.path)} is not a query: {error}"
    if check.schema_ is not None:
        try:
            _schema(canonical_json(check.schema_))
        except ValueError as error:
            yield f"schema cannot be used: {error}"


def result_text(result: JsonObject) -> str:
    """Return the text of a result: its texts, a line each; else its structured content."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [text for block in blocks if isinstance(block, Mapping) for text in _texts(block)]
    if not texts and result.get("structuredContent") is not None:
        return canonical_json(result["structuredContent"])
    return "\n".join(texts)


def _texts(block: Mapping[str, Any]) -> Iterator[str]:
    held = block.get("resource") if block.get("type") == "resource" else block
    text = held.get("text") if isinstance(held, Mapping) else None
    if isinstance(text, str):
        yield text


def _in_text(check: OutcomeCheck, text: str) -> Iterator[str]:
    there = canonical_text(text)
    for wanted in check.contains_text or ():
        if canonical_text(wanted) not in there:
            yield f"{shown(wanted)} is not in {shown(text)}"
    for unwanted in check.lacks_text or ():
        if canonical_text(unwanted) in there:
            yield f"{shown(unwanted)} is in {shown(text)}, and is not to be"
    for pattern in check.matches_pattern or ():
        if not _is_found(pattern, text):
            yield f"{shown(pattern)} is not found in {shown(text)}"


def _is_found(pattern: str, text: str) -> bool:
    try:
        return SEARCH.found(pattern, text, SEARCH_LIMIT_S)
    except TimeoutError:
        msg = (
            f"{shown(pattern)} searched the result ({len(text)} characters) for "
            f"{SEARCH_LIMIT_S:g} s without an end"
        )
        raise CannotTellError(msg) from None
    except ValueError as error:
        msg = f"{shown(pattern)} is not a regular expression: {error}"
        raise CannotTellError(msg) from error


def _in_json(check: OutcomeCheck, result: JsonObject, text: str) -> Iterator[str]:
    value = result.get("structuredContent")
    if value is None:
        try:
            value = json_from_text(text)
        except NotJsonError as error:
            yield f"the result has no structured content, and its text is no JSON ({error}): " + (
                shown(text)
            )
            return
    found = [
        f"{one.path} {problem}"
        for one in check.json_path
        if (problem := _selected(one, value)) is not None
    ]
    if check.schema_ is not None:
        misfits = list(_misfits(check.schema_, value))
        if misfits:
            found.append(f"does not fit the schema: {listed(misfits)}")
    if found:
        yield f"{listed(found)}; read: {shown(value)}"


def _selected(check: JsonPathCheck, value: JsonValue) -> str | None:
    """Say how what a query selects is not what is asked for; `None` where it is."""
    from jsonpath import JSONPathError

    try:
        values: list[Any] = _query(check.path).findall(value)
    except (JSONPathError, RecursionError, ValueError) as error:
        msg = f"{check.path} cannot be evaluated: {_first_line(error)}"
        raise CannotTellError(msg) from error
    found = "selects nothing" if not values else f"selects {listed([shown(one) for one in values])}"
    if not check.exists:
        return f"{found}, and is not to select anything" if values else None
    if check.count is not None and len(values) != check.count:
        return f"selects {len(values)} values, not {check.count}" + (
            f": {listed([shown(one) for one in values])}" if values else ""
        )
    if check.has_equals and not (len(values) == 1 and json_equal(values[0], check.equals)):
        return f"{found}, not {described(check.equals)}"
    if check.has_contains and not any(_has(one, check.contains) for one in values):
        return f"{found}, none of which has {described(check.contains)}"
    if not values and check.count is None:
        return found
    return None


def _has(value: JsonValue, wanted: JsonValue) -> bool:
    return match_arguments({"value": wanted}, {"value": value}) is None


def _misfits(schema: Mapping[str, Any], value: JsonValue) -> Iterator[str]:
    from referencing.exceptions import Unresolvable

    try:
        validator = _schema(canonical_json(schema))
        for number, error in enumerate(validator.iter_errors(value)):
            if number == _PROBLEMS_SHOWN:
                return
            where = "".join(f"[{part!r}]" for part in error.absolute_path)
            yield shown(f"{where}: {error.message}" if where else error.message)
    except (ValueError, Unresolvable, RecursionError, re.error, ArithmeticError) as error:
        msg = f"the schema cannot be used: {_first_line(error)}"
        raise CannotTellError(msg) from error


@lru_cache(maxsize=256)
def _query(path: str) -> JSONPath:
    """Compile a query.

    The functions that take regular expressions are not known in it: one that never ends could not
    be stopped.

    Raises:
        ValueError: it is none.

    """
    from jsonpath import JSONPathEnvironment, JSONPathError

    environment = JSONPathEnvironment(strict=True)
    for name in ("match", "search"):
        environment.function_extensions.pop(name, None)
    try:
        query = environment.compile(path)
    except JSONPathError as error:
        raise ValueError(_first_line(error)) from error
    return query  # type: ignore[return-value]  # a compound query is none of the standard's


@lru_cache(maxsize=256)
def _schema(text: str) -> Validator:
    """Compile a schema, given its canonical text.

    Raises:
        ValueError: it is none.

    """
    import json

    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    schema = json.loads(text)
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except (SchemaError, RecursionError, re.error) as error:
        raise ValueError(_first_line(error)) from error
    _check_references(schema)
    bounded: type[Validator] = extend(  # type: ignore[no-untyped-call]  # its stub has no types
        kind, {"pattern": _pattern_misfits}
    )
    return bounded(schema, registry=Registry())  # in which nothing is, and nothing is fetched


def _pattern_misfits(_: object, pattern: str, value: object, __: object) -> Iterator[Any]:
    """Do as the keyword `pattern` does, with an end to it."""
    from jsonschema.exceptions import ValidationError

    if isinstance(value, str) and not _is_found(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _check_references(schema: Any) -> None:
    """Refuse a reference to what is not in the schema itself.

    Raises:
        ValueError: there is one.

    """
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    held = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().resolver_with_root(held)
    for reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable as error:
            msg = f"$ref {shown(reference)} is not in it, and nothing is fetched"
            raise ValueError(msg) from error


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference
        schema = list(schema.values())
    if isinstance(schema, list):
        for held in schema:
            yield from _references(held)


def _first_line(error: BaseException) -> str:
    message = getattr(error, "message", None) or str(error)  # of a schema's without the schema
    return (str(message).splitlines() or [type(error).__name__])[0]
