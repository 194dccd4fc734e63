"""Arguments of a call against what a case expects of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.grading.matching import Mismatch, match_arguments

ANGSTROM_SIGN, A_WITH_RING = "\u212b", "\u00c5"


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        pytest.param({"amount": 1}, {"amount": 1.0}, id="one-is-one-point-zero"),
        pytest.param({"amount": 2.50}, {"amount": 2.5}, id="trailing-zeros"),
        pytest.param({}, {}, id="nothing-expected-nothing-sent"),
        pytest.param({}, None, id="nothing-expected-arguments-omitted"),
        pytest.param({}, {"any": "thing"}, id="nothing-expected-matches-anything"),
        pytest.param({"title": "T"}, {"title": "T", "due": None}, id="unset-optional-sent-as-null"),
        pytest.param({"due": None}, {"due": None}, id="null-is-null"),
        pytest.param({"id": 1}, {"id": 1, "labels": [], "meta": {}}, id="empty-optionals"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3}, id="partial-at-every-level"),
        pytest.param(
            {"items": [{"id": 1}]}, {"items": [{"id": 1, "n": 2}]}, id="partial-inside-lists"
        ),
        pytest.param({"name": "caf\u00e9"}, {"name": "cafe\u0301"}, id="canonically-equivalent"),
        pytest.param({"unit": ANGSTROM_SIGN}, {"unit": A_WITH_RING}, id="canonical-singleton"),
        pytest.param({"caf\u00e9": 1}, {"cafe\u0301": 1}, id="canonically-equivalent-keys"),
    ],
)
def test_arguments_match(expected: dict[str, Any], actual: dict[str, Any] | None) -> None:
    assert match_arguments(expected, actual) is None


@pytest.mark.parametrize(
    ("expected", "actual", "mismatch"),
    [
        (
            {"base": 10},
            {"base": 999},
            Mismatch("arguments.base", "number 10", "number 999"),
        ),
        (
            {"flag": False},
            {"flag": True},
            Mismatch("arguments.flag", "boolean false", "boolean true"),
        ),
        ({"n": True}, {"n": 1}, Mismatch("arguments.n", "boolean true", "number 1")),
        ({"n": 1}, {"n": True}, Mismatch("arguments.n", "number 1", "boolean true")),
        ({"n": "1"}, {"n": 1}, Mismatch("arguments.n", 'string "1"', "number 1")),
        ({"n": None}, {}, Mismatch("arguments.n", "null", "nothing")),
        ({"n": 0}, {"n": None}, Mismatch("arguments.n", "number 0", "null")),
        ({"filter": ""}, {}, Mismatch("arguments.filter", 'string ""', "nothing")),
        ({"filter": ""}, None, Mismatch("arguments.filter", 'string ""', "nothing")),
        (
            {"labels": []},
            {"labels": ["a"]},
            Mismatch("arguments.labels", "array []", 'array ["a"]', "0 expected, 1 found"),
        ),
        ({"labels": []}, {}, Mismatch("arguments.labels", "array []", "nothing")),
        ({"labels": []}, {"labels": {}}, Mismatch("arguments.labels", "array []", "object {}")),
        (
            {"labels": ["a", "b"]},
            {"labels": ["b", "a"]},
            Mismatch("arguments.labels[0]", 'string "a"', 'string "b"'),
        ),
        (
            {"labels": ["a", "a", "b"]},
            {"labels": ["a", "b", "b"]},
            Mismatch("arguments.labels[1]", 'string "a"', 'string "b"'),
        ),
        (
            {"items": [{"id": 1}, {"id": 2}, {"id": 3}]},
            {"items": [{"id": 1}, {"id": 2}, {"id": 4}]},
            Mismatch("arguments.items[2].id", "number 3", "number 4"),
        ),
        (
            {"odd key": {"": 1}},
            {"odd key": {"": 2}},
            Mismatch('arguments["odd key"][""]', "number 1", "number 2"),
        ),
        (
            {"at": "2026-01-05T10:00:00Z"},
            {"at": "2026-01-05T10:00:00.000+00:00"},
            Mismatch(
                "arguments.at",
                'string "2026-01-05T10:00:00Z"',
                'string "2026-01-05T10:00:00.000+00:00"',
            ),
        ),
        (
            {"price": "$8.540"},
            {"price": "$9.540"},
            Mismatch("arguments.price", 'string "$8.540"', 'string "$9.540"'),
        ),
    ],
)
def test_a_mismatch_names_the_path_and_both_values(
    expected: dict[str, Any], actual: dict[str, Any] | None, mismatch: Mismatch
) -> None:
    assert match_arguments(expected, actual) == mismatch


def _text_mismatch(expected: str, found: str) -> Mismatch:
    mismatch = match_arguments({"text": expected}, {"text": found})
    assert mismatch is not None
    return mismatch


@pytest.mark.parametrize(
    ("expected", "found", "note"),
    [
        (
            "\ufb01le",
            "file",
            "at character 0 expected U+FB01 LATIN SMALL LIGATURE FI, "
            "found U+0066 LATIN SMALL LETTER F",
        ),
        ("a\u00a0b", "a b", "at character 1 expected U+00A0 NO-BREAK SPACE, found U+0020 SPACE"),
        (
            "STRASSE",
            "stra\u00dfe",
            None,  # the first difference, of S and s, can be seen
        ),
        (
            "\u0430dmin",
            "admin",
            "at character 0 expected U+0430 CYRILLIC SMALL LETTER A, "
            "found U+0061 LATIN SMALL LETTER A",
        ),
        ("end", "end\u200b", "at character 3 expected the end, found U+200B ZERO WIDTH SPACE"),
        ("\ud800", "x", "at character 0 expected U+D800, found U+0078 LATIN SMALL LETTER X"),
    ],
)
def test_texts_that_may_look_the_same_are_told_apart_by_code_points(
    expected: str, found: str, note: str | None
) -> None:
    assert _text_mismatch(expected, found).note == note


def test_a_newline_at_the_end_of_a_text_can_be_seen() -> None:
    mismatch = _text_mismatch("hello\n", "hello")
    assert (mismatch.expected, mismatch.found) == (r'string "hello\n"', 'string "hello"')


def test_long_texts_are_shown_near_their_first_difference() -> None:
    mismatch = _text_mismatch("a" * 5000 + "X" + "b" * 5000, "a" * 5000 + "Y" + "b" * 5000)
    assert "aaX" in mismatch.expected
    assert "aaY" in mismatch.found
    assert mismatch.note == "shown near character 5000, of 10001 expected and 10001 found"
    assert len(str(mismatch)) < 500


def test_values_in_a_mismatch_are_bounded() -> None:
    mismatch = match_arguments({"rows": list(range(10_000))}, {"rows": {"k" * 5000: "v" * 5000}})
    assert mismatch is not None
    assert len(mismatch.expected) < 220
    assert len(mismatch.found) < 220


@pytest.mark.parametrize(
    ("expected", "found"),
    [(["a", "b"], '["a","b"]'), ({"t": 1}, ' {"t": 1}'), (5, "5"), (None, "null"), (True, "true")],
)
def test_a_value_that_arrived_json_encoded_is_named_so(expected: Any, found: str) -> None:
    mismatch = match_arguments({"labels": expected}, {"labels": found})
    assert mismatch is not None
    assert mismatch.note is not None
    assert mismatch.note.endswith("arrived JSON-encoded, as a string")


@pytest.mark.parametrize("found", ["not json", "[", "[" * 50_000, '{"a": 1}', ""])
def test_a_text_that_is_not_the_encoded_value_is_a_plain_mismatch(found: str) -> None:
    mismatch = match_arguments({"labels": ["a"]}, {"labels": found})
    assert mismatch is not None
    assert mismatch.note is None


def test_arguments_nested_deeper_than_the_stack_are_compared() -> None:
    deep: Any = "bottom"
    other: Any = "ground"
    for _ in range(5_000):
        deep, other = {"in": [deep]}, {"in": [other]}
    assert match_arguments(deep, deep) is None
    mismatch = match_arguments(deep, other)
    assert mismatch is not None
    assert mismatch.found == 'string "ground"'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=3), JSON, max_size=4)


@given(OBJECTS)
def test_arguments_match_themselves(arguments: dict[str, Any]) -> None:
    assert match_arguments(arguments, arguments) is None


@given(OBJECTS, OBJECTS)
def test_more_keys_do_not_matter(arguments: dict[str, Any], more: dict[str, Any]) -> None:
    assert match_arguments(arguments, {**more, **arguments}) is None


@given(OBJECTS, OBJECTS)
def test_a_mismatch_is_one_line_that_shows_everything(
    expected: dict[str, Any], actual: dict[str, Any]
) -> None:
    mismatch = match_arguments(expected, actual)
    if mismatch is not None:
        assert str(mismatch).isprintable()
