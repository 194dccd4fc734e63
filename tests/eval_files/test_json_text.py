from __future__ import annotations

import pytest

from pytest_mst.domain.errors import EvalFileErrors
from pytest_mst.eval_files.json_text import read_json


def refusal(text: str) -> tuple[int | None, str]:
    with pytest.raises(EvalFileErrors) as refused:
        read_json(text, "f.json")
    (error,) = refused.value.errors
    return error.place.line, error.problem


def test_numbers_are_jsons_own() -> None:
    text = '{"e": 1e3, "big": 123456789012345678901234567890, "one": 1.0, "neg": -2.5E-1}'
    assert read_json(text, "f.json").value == {
        "e": 1000.0,
        "big": 123456789012345678901234567890,
        "one": 1.0,
        "neg": -0.25,
    }


def test_a_lone_surrogate_survives() -> None:
    assert read_json('{"a": "\\ud800x"}', "f.json").value == {"a": "\ud800x"}


def test_repeated_keys_are_told_with_both_lines_at_any_depth() -> None:
    text = '{"a": 1,\n "b": [{"c": 1,\n "\\u0063": 2}],\n "a": {"d": 1, "d": 2}}'
    errors = read_json(text, "f.json").problems
    assert {(e.place.line, e.place.key, e.problem) for e in errors} == {
        (3, "b[0].c", 'the key "c" is written twice, in line 2 and in line 3'),
        (4, "a", 'the key "a" is written twice, in line 1 and in line 4'),
        (4, "a.d", 'the key "d" is written twice, in line 4 and in line 4'),
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("  \n", 1),
        ('{"a": 1,\n}', 2),
        ('{"a": 1}\n{"b": 2}', 2),
        ("{'a': 1}", 1),
        ('{"a":\n NaN}', 2),
        ('{"a":\n -Infinity}', 2),
        ('{"a": 1,\n "b": 1e999}', 2),
        ('{"a": 1,\n "b": ' + "9" * 5000 + "}", 2),
        ("[" * 150 + "]" * 150, 1),
        ("[" * 100_000, 1),
        ("no: json", 1),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, line: int) -> None:
    assert refusal(text)[0] == line


def test_a_merge_key_means_nothing_in_json() -> None:
    assert read_json('{"<<": {"a": 1}}', "f.json").value == {"<<": {"a": 1}}


def test_everything_has_the_line_it_is_written_in() -> None:
    text = (
        '\n{"name": "x]}",\n "empty": {}, "none": [],\n'
        ' "cases": [\n  {"id": 1},\n  {\n   "id": "\\"b"}]}'
    )
    document = read_json(text, "f.json")
    lines = [
        document.place(path).line
        for path in [
            (),
            ("name",),
            ("empty", "x"),
            ("none", 0),
            ("cases",),
            ("cases", 0, "id"),
            ("cases", 1),
            ("cases", 1, "id"),
            ("cases", 2),
            ("name", "deeper"),
        ]
    ]
    assert lines == [2, 2, 3, 3, 4, 5, 6, 7, 4, 2]
