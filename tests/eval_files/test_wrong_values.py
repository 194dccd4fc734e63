from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.domain.errors import EvalFileErrors
from tests.eval_files.evals import CASE, DATA, load, only_problem, problems, write


def config(folder: Path, text: str) -> Path:
    return write(folder, f"name: team\ncases: [{CASE}]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ('trials: "3"', 'expected a whole number, got string "3"', "write it without quotes"),
        ("trials: 1e1", 'expected a whole number, got string "1e1"', "write it without quotes"),
        ("trials: 1.5", "expected a whole number, got number 1.5", None),
        ("trials: true", "expected a whole number, got boolean", None),
        ("trials: 0", "must be at least 1, got 0", None),
        ("trials:", "expected a whole number, got null", None),
        ("passThreshold: 1.5", "must be at most 1, got 1.5", None),
        ("passThreshold: -1", "must be at least 0, got -1", None),
        ("passThreshold: half", 'expected a number, got string "half"', "write it without quotes"),
        ("model: 4", "expected a string, got number", "put it in quotes"),
        ("client: ''", "must not be blank", None),
        ("client: [x]", "expected a string, got array", None),
        ("filterTags: smoke", "expected a list, got string", None),
        ("servers: [x]", "expected an object, got array", None),
        ("clientOptions: [x]", "expected an object, got array", None),
        ("redactStoredResponses: no", 'expected true or false, got string "no"', None),
        ("timeout: 0.5", "expected a whole number, got number 0.5", None),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_is_right_and_what_was_found(
    tmp_path: Path, text: str, problem: str, remedy: str | None
) -> None:
    path = config(tmp_path, text)
    error = next(one for one in problems(path) if "supported" not in one.problem)
    assert (error.place.line, error.place.key) == (3, text.partition(":")[0])
    assert (error.problem, error.remedy) == (problem, remedy)


@pytest.mark.parametrize(
    ("server", "key", "problem"),
    [
        ("{command: x}", "transport", 'the key "transport" is missing'),
        ("{transport: sse}", "transport", 'there is no transport "sse"'),
        ("{transport: 3}", "transport", "there is no transport number"),
        ("{transport: stdio}", "command", 'the key "command" is missing'),
        ("{transport: http, serverUrl: 3}", "serverUrl", "expected a string, got number"),
        (
            "{transport: python, object: server}",
            "object",
            "expected module:attribute, such as servers.local:server",
        ),
        (
            "{transport: stdio, command: x, protocol: new}",
            "protocol",
            "expected legacy, auto, or a protocol revision such as 2025-06-18",
        ),
        (
            "{transport: stdio, command: x, isolation: run}",
            "isolation",
            '"run" is not one of the choices',
        ),
        ("{transport: http, serverUrl: ftp://x}", "serverUrl", "is not an HTTP address"),
        (
            "{transport: stdio, command: x, readOnlyTools: [a, b], alwaysWriteTools: [b]}",
            None,
            "has 'b' both in readOnlyTools and in alwaysWriteTools",
        ),
        (
            "{transport: http, serverUrl: http://x, auth: {accessTokenEnv: T},"
            " headers: {authorization: x}}",
            None,
            "has both auth and an Authorization header; keep one of the two",
        ),
        ("text", None, "expected an object, got string"),
    ],
)
def test_a_wrong_server_gives_one_error_not_one_for_each_transport(
    tmp_path: Path, server: str, key: str | None, problem: str
) -> None:
    error = only_problem(config(tmp_path, f"servers: {{chat: {server}}}"), {"T": "x" * 9})
    assert error.place.key == ("servers.chat" if key is None else f"servers.chat.{key}")
    assert error.problem == problem


def test_an_unknown_transport_lists_the_valid_ones(tmp_path: Path) -> None:
    error = only_problem(config(tmp_path, "servers: {chat: {transport: htpp}}"))
    assert error.remedy == 'did you mean "http"? valid: stdio, http, python'


WRITES_EXPECTED = (
    "expected planned or simulated for every server, "
    "or a mode for each label such as {chat: unguarded}"
)


@pytest.mark.parametrize(
    ("writes", "key", "problem"),
    [
        (
            "live",
            "writes",
            f"{WRITES_EXPECTED}, got 'live'",
        ),
        (
            "[planned]",
            "writes",
            f"{WRITES_EXPECTED}, got array",
        ),
        ("{chat: simulate}", "writes.chat", '"simulate" is not one of the choices'),
        ("{chat: 3}", "writes.chat", "number is not one of the choices"),
        ("{chat: read-only}", "writes.chat", '"read-only" is not one of the choices'),
    ],
)
def test_wrong_write_modes_give_one_error_not_one_for_each_way_to_write_them(
    tmp_path: Path, writes: str, key: str, problem: str
) -> None:
    error = only_problem(
        config(tmp_path, f"servers: {{chat: {{transport: stdio, command: x}}}}\nwrites: {writes}")
    )
    assert (error.place.line, error.place.key, error.problem) == (4, key, problem)


def test_a_wrong_label_is_refused(tmp_path: Path) -> None:
    error = only_problem(config(tmp_path, "servers: {' ': {transport: stdio, command: x}}"))
    assert (error.place.key, error.problem) == ('servers[" "]', "must not be blank")


@pytest.mark.parametrize(
    ("lines", "line", "key", "problem"),
    [
        (
            "assertions: {containsText: 3}",
            5,
            "assertions.containsText",
            "expected a string or a list of strings, got number",
        ),
        (
            "assertions: {containsText: ['']}",
            5,
            "assertions.containsText[0]",
            "must not be empty: an empty text is found in every answer",
        ),
        (
            "assertions: {matchesPattern: ''}",
            5,
            "assertions.matchesPattern",
            "must not be empty: an empty text is found in every answer",
        ),
        (
            "assertions: {matchesPattern: [x, '(']}",
            5,
            "assertions.matchesPattern",
            "'(' is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            "assertions: {toolsTriggered: x}",
            5,
            "assertions.toolsTriggered",
            "expected a list of calls, or an object with calls, got string",
        ),
        (
            "assertions: {toolCallCount: {}}",
            5,
            "assertions.toolCallCount",
            "needs one of min, max, exact",
        ),
        (
            "assertions: {toolCallCount: {min: 3, max: 1}}",
            5,
            "assertions.toolCallCount",
            "no number is at least 3 and at most 1",
        ),
        (
            "assertions: {toolCallCount: {exact: 1, max: 1}}",
            5,
            "assertions.toolCallCount",
            "has exact beside min or max; keep one of the two",
        ),
        ("assertions: []", 5, "assertions", "expected an object, got array"),
        (
            "expected:\n      writes:",
            6,
            "expected.writes",
            "is null; write [] where no write is expected, or leave the key out",
        ),
        (
            "expected:\n      writes:\n        - tool: t\n        - {tool: ' '}",
            8,
            "expected.writes[1].tool",
            "must not be blank",
        ),
        (
            "expected:\n      writes:\n        calls:\n        - {}",
            8,
            "expected.writes.calls[0].tool",
            'the key "tool" is missing',
        ),
        (
            "expected: {writes: t}",
            5,
            "expected.writes",
            "expected a list of calls, or an object with calls, got string",
        ),
        (
            "expected: {writes: {calls: [], order: strickt}}",
            5,
            "expected.writes.order",
            '"strickt" is not one of the choices',
        ),
        ("skip: true", 5, "skip", "expected a string, got boolean"),
        ("skip: ''", 5, "skip", "must not be blank"),
        ("trials: 0", 5, "trials", "must be at least 1, got 0"),
    ],
)
def test_a_wrong_value_in_a_case_has_the_line_it_is_written_in(
    tmp_path: Path, lines: str, line: int, key: str, problem: str
) -> None:
    error = only_problem(
        write(tmp_path, f"name: team\ncases:\n  - id: a\n    input: x\n    {lines}\n")
    )
    assert (error.place.line, error.place.key) == (line, f"cases[0].{key}")
    assert error.problem == problem


def test_a_whole_number_may_be_written_with_a_fraction_of_nothing(tmp_path: Path) -> None:
    loaded = load(config(tmp_path, "trials: 3.0"))
    assert loaded.config.trials == 3
    assert type(loaded.config.trials) is int


@pytest.mark.parametrize(
    "given_id", ["", "   ", "a\u0000b", "a\nb", "a\tb", "a\u001b[31mb", "a\u009bb"]
)
def test_an_id_that_is_blank_or_holds_control_characters_is_refused(
    tmp_path: Path, given_id: str
) -> None:
    content = {"name": "team", "cases": [{"id": given_id, "input": "x", "judges": ["correctness"]}]}
    error = only_problem(write(tmp_path, json.dumps(content), "x.eval.json"))
    assert error.place.key == "cases[0].id"
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    "given_id",
    ["../escaped", "Create", 'a:b?c*d|e"f<g>h', "CON", "a ", " lead", "-rf", "日本語", "x" * 300],
)
def test_any_other_text_is_an_id(tmp_path: Path, given_id: str) -> None:
    content = {"name": "team", "cases": [{"id": given_id, "input": "x", "judges": ["correctness"]}]}
    loaded = load(write(tmp_path, json.dumps(content), "x.eval.json"))
    assert loaded.cases[0].case.id == given_id


whole = json.loads((DATA / "whole-format.eval.json").read_text(encoding="utf-8"))
other_values: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        "",
        " ",
        "text",
        "\ud800",
        [],
        [1],
        [[]],
        {},
        {"a": 1},
        {"transport": "x"},
    ]
)


def mutated(value: Any, data: st.DataObject) -> Any:
    """Put another value somewhere into a config."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)) > 0:
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)) > 0:
        index = data.draw(st.integers(0, len(value) - 1))
        return [*value[:index], mutated(value[index], data), *value[index + 1 :]]
    return data.draw(other_values)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_is_wrong_is_told_in_our_own_words_at_a_place_in_the_file(
    tmp_path_factory: Any, data: st.DataObject
) -> None:
    folder: Path = tmp_path_factory.mktemp("evals")
    path = folder / "x.eval.json"
    path.write_text(json.dumps(mutated(whole, data), indent=1), encoding="utf-8")
    with pytest.raises(EvalFileErrors) as refused:  # it holds what is not supported yet
        load(path)
    for error in refused.value.errors:
        assert error.place.line is not None
        for words in ("Input should", "Value error", "valid dictionary", "tag"):
            assert words not in error.problem
