"""Labels, variants and ids that a config or a case speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.domain.errors import Place
from tests.eval_files.evals import CASE, load, only_problem, problems, write

SERVERS = "servers: {chat: {transport: stdio, command: x}, docs: {transport: stdio, command: y}}"


def config(folder: Path, text: str, cases: str = CASE) -> Path:
    return write(folder, f"name: team\n{SERVERS}\ncases: [{cases}]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("writes: {chap: simulated}", "writes.chap"),
        ("variants: [{name: a, servers: [docs, chap]}]", "variants[0].servers[1]"),
        ("variants: [{name: a, writes: {chap: planned}}]", "variants[0].writes.chap"),
    ],
)
def test_a_label_that_no_server_has_gets_the_nearest_one(
    tmp_path: Path, text: str, key: str
) -> None:
    error = only_problem(config(tmp_path, text))
    assert error.place == Place("team.eval.yaml", 4, key)
    assert error.problem == 'there is no server "chap"'
    assert error.remedy == 'did you mean "chat"? labels: chat, docs'


@pytest.mark.parametrize(
    ("writes", "key"),
    [
        ("[{server: chap, tool: t}]", "expected.writes[0].server"),
        ("{calls: [{server: chap, tool: t}]}", "expected.writes.calls[0].server"),
    ],
)
def test_an_expected_write_names_a_server_that_is_there(
    tmp_path: Path, writes: str, key: str
) -> None:
    case = f"{{id: a, input: x, expected: {{writes: {writes}}}}}"
    error = only_problem(config(tmp_path, "", case))
    assert error.place.key == f"cases[0].{key}"
    assert error.problem == 'there is no server "chap"'


def test_a_label_is_written_once(tmp_path: Path) -> None:
    text = "name: team\nservers:\n  a: {transport: stdio, command: x}\n  a: {}\ncases: []\n"
    assert any(
        error.problem == 'the key "a" is written twice, in line 3 and in line 4'
        for error in problems(write(tmp_path, text))
    )


def test_variants_have_names_of_their_own(tmp_path: Path) -> None:
    error = only_problem(config(tmp_path, "variants:\n- name: a\n- name: b\n- name: a"))
    assert error.place == Place("team.eval.yaml", 7, "variants[2].name")
    assert error.problem == 'the variant "a" is there already, in line 5'


def test_a_variant_names_a_server_once(tmp_path: Path) -> None:
    error = only_problem(config(tmp_path, "variants: [{name: a, servers: [chat, docs, chat]}]"))
    assert error.place.key == "variants[0].servers[2]"


@pytest.mark.parametrize("name", ["''", "' '", '"a\\tb"'])
def test_a_variant_has_a_name_that_can_be_read(tmp_path: Path, name: str) -> None:
    assert only_problem(config(tmp_path, f"variants: [{{name: {name}}}]")).place.key == (
        "variants[0].name"
    )


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("baseline: b\nvariants: [{name: a}, {name: c}]", "variants: a, c"),
        ("baseline: lex\nvariants: [{name: ten}, {name: lax}]", None),
        ("baseline: first", "variants: default"),
    ],
)
def test_a_baseline_is_one_of_the_variants(tmp_path: Path, text: str, remedy: str | None) -> None:
    error = only_problem(config(tmp_path, text))
    assert error.place == Place("team.eval.yaml", 4, "baseline")
    if remedy is not None:
        assert error.remedy == remedy


def test_the_only_variant_can_be_named_as_baseline(tmp_path: Path) -> None:
    assert load(config(tmp_path, "baseline: default")).config.baseline == "default"


def test_two_cases_with_one_id_are_told_with_both_places(tmp_path: Path) -> None:
    dataset = "name: d\ncases:\n- {id: dup, input: x, judges: [correctness]}\n"
    write(tmp_path, dataset, "a.yaml")
    write(tmp_path, dataset, "b.yaml")
    error = only_problem(write(tmp_path, "name: team\ndatasets: [a.yaml, b.yaml]"))
    assert error.place == Place("b.yaml", 3, "cases[0]")
    assert error.problem == 'the id "dup" is there already, at a.yaml:3 (cases[0])'


def test_ids_that_differ_only_by_case_are_two_ids(tmp_path: Path) -> None:
    ids = ("Create", "create")
    cases = ", ".join(f"{{id: {one}, input: x, judges: [correctness]}}" for one in ids)
    assert len(load(config(tmp_path, "", cases)).cases) == 2


@pytest.mark.parametrize(
    "checks",
    [
        "tags: []",
        "assertions: {}",
        "assertions: {containsText: []}",
        "assertions: {matchesPattern: []}",
        "assertions: {toolsTriggered: []}",
        "assertions: {toolsTriggered: [{name: t, required: false}]}",
        "assertions: {toolCallCount: {min: 0}}",
        "expected: {answer: hello}",
        "judges: []",
    ],
)
def test_a_case_that_nothing_could_fail_is_refused(tmp_path: Path, checks: str) -> None:
    case = f"{{id: a, input: x, {checks}}}"
    error = only_problem(config(tmp_path, "", case))
    assert error.place == Place("team.eval.yaml", 3, "cases[0]")
    assert error.problem == 'the case "a" has nothing that a trial of it could fail'
    variant = "variants: [{name: v, judges: [correctness]}]"
    for config_with_judges in ("judges: [{type: rubric}]", variant):
        assert load(config(tmp_path, config_with_judges, case)).cases


@pytest.mark.parametrize(
    "checks",
    [
        "assertions: {containsText: x}",
        "assertions: {toolsTriggered: {calls: [], exclusive: true}}",
        "assertions: {toolCallCount: {max: 0}}",
        "assertions: {passesJudge: true}",
        "expected: {writes: []}",
        "judges: [{type: rubric}]",
        "skip: not yet",
    ],
)
def test_a_case_with_one_check_or_that_is_not_run_is_enough(tmp_path: Path, checks: str) -> None:
    assert load(config(tmp_path, "", f"{{id: a, input: x, {checks}}}")).cases


def test_a_variant_that_takes_the_judges_away_leaves_nothing_to_fail(tmp_path: Path) -> None:
    text = "judges: [correctness]\nvariants: [{name: judged}, {name: bare, judges: []}]"
    error = only_problem(config(tmp_path, text, "{id: a, input: x}"))
    assert error.problem == (
        'the case "a" has nothing that a trial of it could fail by variant "bare"'
    )


def test_an_expected_write_may_name_a_server_that_only_a_dispatcher_knows(tmp_path: Path) -> None:
    case = "{id: a, input: x, expected: {writes: [{server: github, tool: create_issue}]}}"
    text = (
        "name: team\n"
        "servers: {hub: {transport: stdio, command: x, dispatchers: {call: {tool: name}}}}\n"
        f"cases: [{case}]\n"
    )
    assert load(write(tmp_path, text)).cases


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("writes: {chat: server-planned}", "writes.chat"),
        (
            "variants: [{name: a}, {name: b, writes: {chat: server-planned}}]",
            "variants[1].writes.chat",
        ),
    ],
)
def test_a_server_that_plans_writes_itself_says_how_it_marks_them(
    tmp_path: Path, text: str, key: str
) -> None:
    error = only_problem(config(tmp_path, text))
    assert error.place == Place("team.eval.yaml", 4, key)
    assert error.problem == 'the server "chat" has no plannedWriteKey'
    assert "servers.chat" in (error.remedy or "")
    with_key = f"name: t\n{SERVERS.replace('command: x', 'command: x, plannedWriteKey: _planned')}"
    assert load(write(tmp_path, f"{with_key}\ncases: [{CASE}]\n{text}\n")).cases


@pytest.mark.parametrize(
    ("dispatcher", "words"),
    [
        ("tool: name, arguments: name", "one argument in two of tool, arguments and batch"),
        ("tool: name, arguments: a, batch: a", "one argument in two"),
        ("arguments: a", "tool"),
        ("tool: ' '", "blank"),
        ("tool: name, readTargets: list", "readTargets"),
        ("tool: name, readTargets: [1]", "readTargets"),
        ("tool: name, read_targets: [a]", "read_targets"),
    ],
)
def test_a_dispatcher_says_where_its_target_is(tmp_path: Path, dispatcher: str, words: str) -> None:
    server = f"{{transport: stdio, command: x, dispatchers: {{run: {{{dispatcher}}}}}}}"
    text = f"name: team\nservers: {{chat: {server}}}\ncases: [{CASE}]\n"
    error = only_problem(write(tmp_path, text))
    assert error.place.line == 2
    assert (error.place.key or "").startswith("servers.chat.dispatchers.run")
    assert words in f"{error.place.key} {error.problem}"


def test_a_dispatcher_is_no_read_only_tool(tmp_path: Path) -> None:
    server = (
        "{transport: stdio, command: x, readOnlyTools: [run], dispatchers: {run: {tool: name}}}"
    )
    text = f"name: team\nservers: {{chat: {server}}}\ncases: [{CASE}]\n"
    error = only_problem(write(tmp_path, text))
    assert error.place.key == "servers.chat"
    assert "'run' both in readOnlyTools and in dispatchers" in error.problem
