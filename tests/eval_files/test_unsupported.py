from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.eval_files.unsupported import IN_CASES, IN_CONFIG
from tests.eval_files.evals import DATA, load, only_problem, problems, write


def config(folder: Path, text: str, server: str = "", case: str = "judges: [1]") -> Path:
    return write(
        folder,
        f"name: team\n"
        f"servers: {{web: {{transport: http, serverUrl: http://x, {server}}}}}\n"
        f"cases: [{{id: a, input: x, {case}}}]\n"
        f"{text}\n",
    )


@pytest.mark.parametrize(
    ("server", "key"),
    [
        ("start: {command: x, readyUrl: http://x}", "start"),
        ("dispatchers: {run: {tool: name}}", "dispatchers"),
        ("plannedWriteKey: _planned", "plannedWriteKey"),
        ("direct: true", "direct"),
    ],
)
def test_what_a_server_cannot_have_yet_is_refused(tmp_path: Path, server: str, key: str) -> None:
    error = only_problem(config(tmp_path, "", server))
    assert (error.place.line, error.place.key) == (2, f"servers.web.{key}")
    assert error.problem == f"{key} is not supported yet"


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ("setup: [{server: web, tool: t}]", "setup", "setup"),
        ("cleanup: [{server: web, tool: t}]", "cleanup", "cleanup"),
        ("redactStoredResponses: true", "redactStoredResponses", "redactStoredResponses"),
        ("variants: [{name: v, tools: [t]}]", "variants[0].tools", "tools"),
        ("writes: {web: live}", "writes.web", "the write mode live"),
        ("writes: {web: server-planned}", "writes.web", "the write mode server-planned"),
        (
            "variants: [{name: v, writes: {web: live}}]",
            "variants[0].writes.web",
            "the write mode live",
        ),
    ],
)
def test_what_a_config_cannot_ask_for_yet_is_refused(
    tmp_path: Path, text: str, key: str, what: str
) -> None:
    error = only_problem(config(tmp_path, text))
    assert (error.place.line, error.place.key) == (4, key)
    assert error.problem == f"{what} is not supported yet"


def test_outcome_checks_are_refused_wherever_cases_are(tmp_path: Path) -> None:
    case = "expected: {outcome: [{server: web, tool: t}]}"
    write(tmp_path, f"name: d\ncases: [{{id: b, input: x, {case}}}]", "cases.yaml")
    path = config(tmp_path, "datasets: [cases.yaml]", case=case)
    assert [(error.place.file, error.place.key, error.problem) for error in problems(path)] == [
        (name, "cases[0].expected.outcome", "outcome is not supported yet")
        for name in ("team.eval.yaml", "cases.yaml")
    ]


def test_how_it_is_written_does_not_matter_then(tmp_path: Path) -> None:
    error = only_problem(config(tmp_path, "", "start: {comand: 3}"))
    assert error.problem == "start is not supported yet"


def test_what_asks_for_nothing_is_no_matter(tmp_path: Path) -> None:
    nothing = "direct: false, dispatchers: {}, plannedWriteKey: null, start: null"
    text = (
        "setup: []\ncleanup: []\nredactStoredResponses: false\nvariants: [{name: v, tools: null}]"
    )
    assert load(config(tmp_path, text, nothing)).cases


@pytest.mark.parametrize(
    "text",
    ["pricing: {m: {input: 1, output: 2}}", "metrics: [cost]", "writes: {web: unguarded}"],
)
def test_the_rest_of_the_format_is_supported(tmp_path: Path, text: str) -> None:
    assert load(config(tmp_path, text)).cases


def test_every_entry_of_the_table_is_met_by_a_config_of_the_whole_format() -> None:
    found = [
        error
        for error in problems(DATA / "whole-format.eval.yaml")
        if error.problem.endswith("not supported yet")
    ]
    assert len(found) >= len(IN_CONFIG + IN_CASES)
