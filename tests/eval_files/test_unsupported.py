from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.eval_files.unsupported import IN_CONFIG
from tests.eval_files.evals import DATA, load, only_problem, problems, write


def config(folder: Path, text: str, server: str = "", case: str = "judges: [correctness]") -> Path:
    return write(
        folder,
        f"name: team\n"
        f"servers: {{web: {{transport: http, serverUrl: http://x, {server}}}}}\n"
        f"cases: [{{id: a, input: x, {case}}}]\n"
        f"{text}\n",
    )


@pytest.mark.parametrize(
    ("text", "key", "what"),
    [
        ("redactStoredResponses: true", "redactStoredResponses", "redactStoredResponses"),
        ("variants: [{name: v, tools: [t]}]", "variants[0].tools", "tools"),
    ],
)
def test_what_a_config_cannot_ask_for_yet_is_refused(
    tmp_path: Path, text: str, key: str, what: str
) -> None:
    error = only_problem(config(tmp_path, text))
    assert (error.place.line, error.place.key) == (4, key)
    assert error.problem == f"{what} is not supported yet"


def test_how_it_is_written_does_not_matter_then(tmp_path: Path) -> None:
    error = only_problem(config(tmp_path, "variants: [{name: v, tools: {lst: 3}}]"))
    assert error.problem == "tools is not supported yet"


def test_what_asks_for_nothing_is_no_matter(tmp_path: Path) -> None:
    nothing = "direct: false, dispatchers: {}, plannedWriteKey: null, start: null"
    text = (
        "setup: []\ncleanup: []\nredactStoredResponses: false\nvariants: [{name: v, tools: null}]"
    )
    assert load(config(tmp_path, text, nothing)).cases


@pytest.mark.parametrize(
    "text",
    [
        "pricing: {m: {input: 1, output: 2}}",
        "metrics: [cost]",
        "writes: {web: unguarded}",
        "writes: {web: server-planned}",
    ],
)
def test_the_rest_of_the_format_is_supported(tmp_path: Path, text: str) -> None:
    server = "plannedWriteKey: _planned, dispatchers: {run: {tool: name}}"
    assert load(config(tmp_path, text, server)).cases


def test_every_entry_of_the_table_is_met_by_a_config_of_the_whole_format() -> None:
    found = [
        error
        for error in problems(DATA / "whole-format.eval.yaml")
        if error.problem.endswith("not supported yet")
    ]
    assert len(found) >= len(IN_CONFIG)
