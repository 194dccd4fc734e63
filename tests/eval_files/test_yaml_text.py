from __future__ import annotations

from textwrap import dedent

import pytest

from pytest_mst.domain.errors import EvalFileErrors
from pytest_mst.domain.json_value import json_type
from pytest_mst.eval_files.document import Document
from pytest_mst.eval_files.yaml_text import MAX_COPIED, read_yaml


def read(text: str) -> Document:
    document = read_yaml(dedent(text), "f.yaml")
    assert document.problems == ()
    return document


def found(text: str) -> list[tuple[int | None, str | None]]:
    return [(e.place.line, e.place.key) for e in read_yaml(dedent(text), "f.yaml").problems]


def refusal(text: str) -> tuple[int | None, str]:
    with pytest.raises(EvalFileErrors) as refused:
        read_yaml(text, "f.yaml")
    (error,) = refused.value.errors
    return error.place.line, error.problem


@pytest.mark.parametrize(
    "written",
    [
        *("yes", "no", "on", "off", "y", "True", "TRUE", "Null", "NULL", "~", "False"),
        *("2024-01-05", "2024-01-05T10:00:00Z", "12:30", "1:30:00"),
        *("02142", "007", "0x10", "0b1", "0o7", "1_000", "+1", "1.", ".5", "1e3", "1.5E3"),
        *(".inf", "-.inf", ".nan", "NaN", "Infinity", "--", "1.2.3", "=", "١٢"),
    ],
)
def test_a_plain_scalar_that_json_does_not_have_stays_the_text_as_written(written: str) -> None:
    assert read(f"key: {written}").value == {"key": written}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("null", None),
        ("", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-0", 0),
        ("42", 42),
        ("-7", -7),
        ("0.5", 0.5),
        ("-1.25", -1.25),
        ("1.0", 1.0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_a_plain_scalar_in_jsons_grammar_is_that_value(written: str, value: object) -> None:
    held = read(f"key: {written}").value
    assert held == {"key": value}
    assert isinstance(held, dict)
    assert type(held["key"]) is type(value)


@pytest.mark.parametrize("written", ["'1'", '"true"', "'null'", "''", '"0.5"'])
def test_quotes_make_a_text_of_anything(written: str) -> None:
    assert read(f"key: {written}").value == {"key": written[1:-1]}


def test_unquoted_words_in_a_case_stay_text() -> None:
    assert read("id: c1\nprompt: yes\ntags: [on, smoke]").value == {
        "id": "c1",
        "prompt": "yes",
        "tags": ["on", "smoke"],
    }


def test_a_postcode_with_a_leading_zero_is_never_octal() -> None:
    assert read("arguments: {postal_code: 02142}").value == {"arguments": {"postal_code": "02142"}}


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("1: a\ntrue: b\nnull: c\n2026-01-01: d\n1e3: e").value == {
        "1": "a",
        "true": "b",
        "null": "c",
        "2026-01-01": "d",
        "1e3": "e",
    }


def test_a_repeated_key_is_told_with_both_lines() -> None:
    (error,) = read_yaml("- id: a\n  prompt: one\n  prompt: two\n", "f.yaml").problems
    assert (error.place.file, error.place.line, error.place.key) == ("f.yaml", 3, "[0].prompt")
    assert error.problem == 'the key "prompt" is written twice, in line 2 and in line 3'


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("arguments: {x: {y: {z: 1, z: 2}}}", "arguments.x.y.z"),
        ("{a: 1, 'a': 2}", "a"),
        ("{1: x, '1': y}", "1"),
        ("a: {<<: {b: 1}, <<: {c: 2}}", 'a["<<"]'),
    ],
)
def test_a_repeated_key_is_found_at_any_depth_and_in_any_spelling(text: str, key: str) -> None:
    assert found(text) == [(1, key)]


def test_two_repeated_keys_are_both_told() -> None:
    assert found("a: 1\na: 2\nb:\n  c: 1\n  c: 2\n") == [(2, "a"), (5, "b.c")]


def test_a_repeated_key_below_an_alias_is_told_once() -> None:
    assert found("a: &a {x: 1, x: 2}\nb: *a\nc: *a\n") == [(1, "a.x")]


def test_a_merged_key_gives_way_to_one_that_is_written() -> None:
    document = read(
        """
        base: &b {t: 1, u: 1}
        c:
          <<: *b
          t: 2
        """
    )
    assert document.value == {"base": {"t": 1, "u": 1}, "c": {"t": 2, "u": 1}}


def test_of_several_merged_objects_the_first_wins() -> None:
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}"
    value = read(text).value
    assert isinstance(value, dict)
    assert value["c"] == {"x": 1, "y": 2}


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert read('{"<<": {a: 1}}').value == {"<<": {"a": 1}}


@pytest.mark.parametrize("merged", ["1", "[1]", "[{a: 1}, x]", "text"])
def test_only_objects_can_be_merged(merged: str) -> None:
    assert found(f"a: {{<<: {merged}}}") == [(1, "a")]


def test_an_alias_is_a_value_of_its_own() -> None:
    value = read("base: &b {tags: [x]}\nc1: *b\nc2: *b\n").value
    assert isinstance(value, dict)
    first, second = value["c1"], value["c2"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert isinstance(first["tags"], list)
    first["tags"].append("y")
    assert second == {"tags": ["x"]}


def test_what_merges_share_is_a_value_of_its_own_each_time_it_is_read() -> None:
    text = "base: &b {writes: [{tool: a}]}\nc1:\n  <<: *b\nc2:\n  <<: *b\n"
    value = read(text).value
    assert isinstance(value, dict)
    first = value["c1"]
    assert isinstance(first, dict)
    assert isinstance(first["writes"], list)
    first["writes"].append({"tool": "b"})
    assert value["c2"] == {"writes": [{"tool": "a"}]}
    assert read(text).value == {key: {"writes": [{"tool": "a"}]} for key in ("base", "c1", "c2")}


def test_aliases_that_multiply_are_refused_before_they_fill_the_memory() -> None:
    levels = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))
    line, problem = refusal(f"a0: &a0 [x, x, x, x]\n{levels}")
    assert line is not None
    assert f"{MAX_COPIED:,}" in problem


def test_merges_that_multiply_are_read_in_no_time() -> None:
    levels = "\n".join(
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 40)
    )
    value = read(f"a0: &a0 {{x: 1}}\n{levels}").value
    assert isinstance(value, dict)
    assert value["a39"] == {"x": 1}


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "[" * 150 + "]" * 150])
def test_a_value_inside_itself_and_one_that_is_too_deep_are_refused(text: str) -> None:
    assert refusal(text) == (1, "values are nested more than 100 levels deep")


def test_a_mapping_merged_into_itself_adds_nothing() -> None:
    assert read("a: &a {<<: *a, b: 1}").value == {"a": {"b": 1}}


@pytest.mark.parametrize(
    "tagged",
    [
        "!!python/object/apply:os.system ['true']",
        "!!str 12",
        "!!binary aGk=",
        "!mine x",
        "!!map {}",
    ],
)
def test_tags_are_refused_with_their_line(tagged: str) -> None:
    assert found(f"ok: 1\nkey: {tagged}") == [(2, "key")]


def test_a_list_or_an_object_is_no_key() -> None:
    assert found("a: 1\n? [b]\n: 2\n") == [(2, None)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("# nothing but a remark\n", 1),
        ("a: [1,\n", 2),
        ("a:\n\t- b\n", 2),
        ("a: 1\n---\nb: 2\n", 2),
        ("a: 1\nb: *nowhere\n", 2),
        ("a: 1\nb: \x07\n", 2),
        ('a: "\\ud800"\n', 1),
    ],
)
def test_what_is_not_one_yaml_document_is_refused_with_its_line(text: str, line: int) -> None:
    assert refusal(text)[0] == line


def test_a_number_that_no_float_or_integer_holds_is_told() -> None:
    assert found(f"a: 1\nb: {'9' * 5000}\nc: {'9' * 400}.5\n") == [(2, "b"), (3, "c")]


def test_everything_has_the_line_it_is_written_in() -> None:
    document = read(
        """\
        name: x
        base: &b
          tool: t
        cases:
          - id: a
            expected:
              writes:
                - tool: t
                - <<: *b
        """
    )
    lines = {
        path: document.place(path).line
        for path in [
            (),
            ("name",),
            ("cases",),
            ("cases", 0),
            ("cases", 0, "expected", "writes"),
            ("cases", 0, "expected", "writes", 1),
            ("cases", 0, "expected", "writes", 1, "tool"),
            ("cases", 0, "nowhere", "deeper"),
            ("cases", 7),
        ]
    }
    assert list(lines.values()) == [1, 1, 4, 5, 7, 9, 3, 5, 4]


def test_json_type_names_what_yaml_gave() -> None:
    value = read("[null, true, 1, 0.5, text, [], {}]").value
    assert isinstance(value, list)
    assert [json_type(item) for item in value] == [
        *("null", "boolean", "number", "number", "string", "array", "object")
    ]
