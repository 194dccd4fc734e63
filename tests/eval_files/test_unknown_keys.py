from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.domain.errors import Place
from tests.eval_files.evals import CASE, load, only_problem, problems, write


def in_case(folder: Path, line: str) -> Path:
    return write(
        folder,
        f"name: team\ncases:\n  - id: a\n    input: x\n    judges: [correctness]\n    {line}\n",
    )


@pytest.mark.parametrize(
    ("line", "key", "meant"),
    [
        (
            "expected: {writes: [{tool: create, argument: {id: 1}}]}",
            "expected.writes[0].argument",
            "arguments",
        ),
        (
            "expected: {writes: {calls: [], exlusive: true}}",
            "expected.writes.exlusive",
            "exclusive",
        ),
        ("assertions: {containText: x}", "assertions.containText", "containsText"),
        ("assertions: {contains_text: x}", "assertions.contains_text", "containsText"),
        ("assertions: {toolsTriggered: [{nmae: x}]}", "assertions.toolsTriggered[0].nmae", "name"),
        ("assertions: {toolCallCount: {maxx: 3}}", "assertions.toolCallCount.maxx", "max"),
        ("PassThreshold: 1", "PassThreshold", "passThreshold"),
        ("trails: 3", "trails", "trials"),
    ],
)
def test_a_misspelt_key_of_a_case_names_the_place_and_the_key_that_was_meant(
    tmp_path: Path, line: str, key: str, meant: str
) -> None:
    path = in_case(tmp_path, line)
    error = next(one for one in problems(path) if one.problem.startswith("unknown key"))
    assert error.place == Place("team.eval.yaml", 6, f"cases[0].{key}")
    assert error.remedy is not None
    assert error.remedy.startswith(f'did you mean "{meant}"')


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("trails: 3", "trails", "trials"),
        ("client_options: {}", "client_options", "clientOptions"),
        ("servers: {chat: {transport: stdio, command: x, argz: []}}", "servers.chat.argz", "args"),
        ("servers: {stdio: {transport: stdio, command: x, stdio: 1}}", "servers.stdio.stdio", None),
        (
            "servers: {d: {transport: http, serverUrl: http://x, headerz: {}}}",
            "servers.d.headerz",
            "headers",
        ),
        (
            "servers: {p: {transport: python, object: 'a:b', objects: 1}}",
            "servers.p.objects",
            "object",
        ),
        ("datasets: [{path: x, recurse: true}]", "datasets[0].recurse", "recursive"),
        ("variants: [{name: v, modle: m}]", "variants[0].modle", "model"),
        ("pricing: {m: {input: 1, output: 2, cacheReed: 3}}", "pricing.m.cacheReed", "cacheRead"),
        ("results: {stores: {}}", "results.stores", "store"),
    ],
)
def test_a_misspelt_key_of_a_config_names_the_place_and_the_key_that_was_meant(
    tmp_path: Path, text: str, key: str, meant: str | None
) -> None:
    path = write(tmp_path, f"name: team\ncases: [{CASE}]\n{text}\n")
    error = next(one for one in problems(path) if one.problem.startswith("unknown key"))
    assert error.place == Place("team.eval.yaml", 3, key)
    assert error.remedy is not None
    assert error.remedy.startswith(f'did you mean "{meant}"' if meant else "keys here: ")


def test_a_key_that_is_near_to_none_gets_the_list_of_keys(tmp_path: Path) -> None:
    error = only_problem(write(tmp_path, f"name: team\ncases: [{CASE}]\nresults: {{zzz: 1}}\n"))
    assert error.problem == 'unknown key "zzz"'
    assert error.remedy == "keys here: store"


def test_a_key_is_shown_so_that_no_terminal_obeys_it(tmp_path: Path) -> None:
    write(tmp_path, '{"name": "d", "cases": [], "\\u001b[31m": 1}', "cases.json")
    error = only_problem(write(tmp_path, "name: team\ndatasets: [cases.json]"))
    assert error.place.key == r'["\x1b[31m"]'
    assert "\x1b" not in str(error)


@pytest.mark.parametrize("where", ["", '"cases": [{"id": "a", "expected": {'])
def test_a_key_that_is_no_unicode_text_is_refused(tmp_path: Path, where: str) -> None:
    text = '{"name": "d", ' + where + '"\\ud800": 1' + ("}}]" if where else "") + "}"
    found = problems(write(tmp_path, text, "team.eval.json"))
    assert "a key here holds half of a surrogate pair" in [error.problem for error in found]


@pytest.mark.parametrize("meant", ["{calls: [{tool: t}]}", "[{tool: t}]"])
@pytest.mark.parametrize("key", ["wirtes", "write", "Writes", "outcomes"])
def test_a_free_key_that_was_meant_to_be_checked_is_refused(
    tmp_path: Path, key: str, meant: str
) -> None:
    error = only_problem(in_case(tmp_path, f"expected: {{{key}: {meant}}}"))
    assert error.place == Place("team.eval.yaml", 6, f"cases[0].expected.{key}")


@pytest.mark.parametrize("free", ["write: it down", "outcomes: [good]", "tools: [{tool: t}]"])
def test_free_keys_under_expected_are_the_users_own(tmp_path: Path, free: str) -> None:
    path = in_case(tmp_path, f"expected: {{{free}}}")
    extra = load(path).cases[0].case.expected.model_extra
    assert extra is not None
    assert list(extra) == [free.partition(":")[0]]
