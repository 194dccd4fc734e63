"""Checks a document against a model and says in our own words what does not fit."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import ValidationError

from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.json_value import json_type
from pytest_mst.domain.model import UserModel
from pytest_mst.eval_files.contract import choices, known_keys, written_path
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.quoted import quoted
from pytest_mst.eval_files.suggestion import suggest

ModelT = TypeVar("ModelT", bound=UserModel)

_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
}
"""What pydantic's error types ask for (https://docs.pydantic.dev/latest/errors/)."""

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}

_TRANSPORTS = ("stdio", "http", "python")


def check_model(
    document: Document, model: type[ModelT]
) -> tuple[ModelT | None, list[EvalFileError]]:
    """Build a model from a document.

    Returns:
        The model, or `None` where the document does not fit it; and all that does not fit.

    """
    try:
        return model.model_validate(document.value), []
    except ValidationError as error:
        found = error.errors(include_url=False)
        return None, [_in_our_words(document, model, one) for one in found]


def _in_our_words(document: Document, model: type[UserModel], found: Any) -> EvalFileError:
    """Write one of pydantic's errors as ours; `found` is a `pydantic_core.ErrorDetails`."""
    location: KeyPath = found["loc"]
    if location[-1:] == ("[key]",):  # what is wrong is the key itself
        location = location[:-1]
    path = written_path(location, document.value)
    value = found["input"]
    kind: str = found["type"]
    if kind == "extra_forbidden":
        key, valid = str(location[-1]), known_keys(model, location[:-1])
        return document.error(path, f"unknown key {quoted(key)}", suggest(key, valid, "keys here"))
    if kind == "missing":
        return document.error(path, f"the key {quoted(str(location[-1]))} is missing")
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _transport(document, path, value)
    if kind == "literal_error":
        valid = choices(model, location)
        given = quoted(value) if isinstance(value, str) else json_type(value)
        remedy = suggest(str(value), valid, "valid")
        return document.error(path, f"{given} is not one of the choices", remedy)
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        problem = f"must be {words} {found['ctx'][bound]:g}, got {value}"
        return document.error(path, problem)
    if kind == "value_error":
        return document.error(path, str(found["ctx"]["error"]))
    if kind == "string_unicode":  # only keys are looked at as Unicode
        return document.error(path, "a key here holds half of a surrogate pair")
    if kind not in _EXPECTED:
        return document.error(path, found["msg"])
    return _wrong_type(document, path, kind, value)


def _wrong_type(document: Document, path: KeyPath, kind: str, value: object) -> EvalFileError:
    got = json_type(value)
    remedy = None
    if kind == "string_type" and got in ("number", "boolean"):
        remedy = "put it in quotes"
    elif got == "string" and kind in ("int_type", "float_type", "bool_type"):
        # No field with a number or a boolean can hold a secret, so the text may be shown.
        got = f"string {quoted(str(value))}"
        remedy = "write it without quotes" if kind != "bool_type" else None
    elif kind == "int_type" and got == "number":
        got = f"number {value}"
    return document.error(path, f"expected {_EXPECTED[kind]}, got {got}", remedy)


def _transport(document: Document, path: KeyPath, value: Any) -> EvalFileError:
    given = value.get("transport") if isinstance(value, dict) else None
    if given is None:
        problem = 'the key "transport" is missing'
        return document.error((*path, "transport"), problem, f"valid: {', '.join(_TRANSPORTS)}")
    shown = quoted(given) if isinstance(given, str) else json_type(given)
    remedy = suggest(str(given), _TRANSPORTS, "valid")
    return document.error((*path, "transport"), f"there is no transport {shown}", remedy)
