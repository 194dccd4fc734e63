"""The smallest value that a schema accepts."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.proxy.smallest import CannotGenerateError, smallest_instance
from tests.proxy.output_schemas import OF_REAL_SERVERS


@pytest.mark.parametrize("name", OF_REAL_SERVERS)
def test_output_schemas_of_real_servers_are_satisfied(name: str) -> None:
    schema = OF_REAL_SERVERS[name]
    jsonschema.validate(smallest_instance(schema), schema)


LINKED = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["next"],
        }
    },
    "$ref": "#/$defs/node",
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object"}, {}),
        ({"type": "object", "required": ["a"]}, {"a": None}),
        ({"type": "string", "minLength": 2}, "xx"),
        ({"type": "string", "format": "date"}, "1970-01-01"),
        ({"type": "string", "pattern": "^[A-Z]{2}-\\d+$"}, "AA-0"),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
        ({"type": "integer", "maximum": -3, "multipleOf": 7}, -7),
        ({"type": "array", "items": {"const": "a"}, "minItems": 2}, ["a", "a"]),
        (
            {"type": "array", "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True},
            [0, 1],
        ),
        ({"type": "array", "prefixItems": [{"const": 1}], "minItems": 1}, [1]),
        ({"type": "array", "contains": {"const": "x"}}, ["x"]),
        ({"type": ["string", "null"]}, None),
        ({"enum": ["b", "a"]}, "b"),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 0}]}, -1),
        ({"allOf": [{"required": ["a"]}, {"properties": {"a": {"const": 1}}}]}, {"a": 1}),
        ({"type": "object", "minProperties": 1, "properties": {"a": {"const": 1}}}, {"a": 1}),
        ({"type": "object", "minProperties": 1, "additionalProperties": {"const": 1}}, {"p0": 1}),
        ({"required": ["a"], "dependentRequired": {"a": ["b"]}}, {"a": None, "b": None}),
        (
            {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}},
            {"ok": False},
        ),
        ({"if": {"type": "null"}, "then": False, "type": ["null", "boolean"]}, False),
        (LINKED, {"next": None}),
    ],
)
def test_it_is_small_and_valid(schema: dict[str, Any], value: Any) -> None:
    found = smallest_instance(schema)
    jsonschema.validate(found, schema)
    assert found == value


def test_booleans_say_what_is_asked_of_them_where_both_fit() -> None:
    assert smallest_instance({"type": "boolean"}, truth=True) is True
    assert smallest_instance({"const": False}, truth=True) is False


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [{"type": "string"}, {"type": "null"}]},
        {"not": {}},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"$ref": "https://example.invalid/x"},
        {"$ref": "#"},
        {"$ref": "#/$defs/none"},
        {"type": "nonsense"},
        {
            "$defs": {
                "n": {
                    "type": "object",
                    "required": ["n"],
                    "properties": {"n": {"$ref": "#/$defs/n"}},
                }
            },
            "$ref": "#/$defs/n",
            "type": "object",
        },
    ],
)
def test_what_nothing_fits_is_a_typed_error(schema: dict[str, Any]) -> None:
    with pytest.raises(CannotGenerateError):
        smallest_instance(schema)


def objects(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from("abcd")
    return st.builds(
        lambda properties, required, more: {
            "type": "object",
            "properties": properties,
            "required": [name for name in required if name in properties],
            "additionalProperties": more,
        },
        st.dictionaries(names, parts, max_size=3),
        st.lists(names, unique=True),
        st.booleans(),
    )


def arrays(parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda items, least: {"type": "array", "items": items, "minItems": least},
        parts,
        st.integers(0, 3),
    )


NUMBERS = st.builds(
    lambda kind, low, span: {"type": kind, "minimum": low, "maximum": low + span},
    st.sampled_from(["integer", "number"]),
    st.integers(-50, 50),
    st.integers(0, 20),
)
TEXTS = st.builds(
    lambda least, span: {"type": "string", "minLength": least, "maxLength": least + span},
    st.integers(0, 5),
    st.integers(0, 3),
)
LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    NUMBERS,
    TEXTS,
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {}]),
    st.lists(st.integers() | st.text(max_size=3), min_size=1, max_size=3).map(
        lambda values: {"enum": values}
    ),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        objects(parts),
        arrays(parts),
        st.lists(parts, min_size=1, max_size=3).map(lambda several: {"anyOf": several}),
    ),
    max_leaves=8,
)


@given(SCHEMAS, st.booleans())
@settings(max_examples=100, deadline=None)
def test_whatever_the_schema_the_value_fits_it(schema: dict[str, Any], referred: bool) -> None:
    whole = {"$defs": {"x": schema}, "$ref": "#/$defs/x"} if referred else schema
    jsonschema.validate(smallest_instance(whole), whole)
