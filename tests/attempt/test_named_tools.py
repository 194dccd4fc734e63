"""Tools that an eval config names: each is one that its server lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.attempt.named_tools import check_named_tools
from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.write import WriteMode
from tests.attempt.evals import eval_of, state
from tests.attempt.setting import small_config

FOLDER = Path(__file__).parent


def check(kind: str = "writes", mode: WriteMode = WriteMode.SIMULATED, **keys: Any) -> None:
    loaded = eval_of(FOLDER, servers={"notes": small_config(**keys)})
    check_named_tools(PreparedEval(loaded, {"notes": state("notes", kind)}), {"notes": mode})


def test_names_that_the_server_lists_are_let_through() -> None:
    check(readOnlyTools=["purge"], alwaysWriteTools=["fail"], replies={"write_note": {"ok": True}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("readOnlyTools", ["purg"]),
        ("alwaysWriteTools", ["purge", "purg"]),
        ("replies", {"purg": {"ok": True}}),
        ("dispatchers", {"purg": {"tool": "name"}}),
    ],
)
def test_a_name_that_the_server_does_not_list_is_refused_with_the_nearest(
    key: str, value: Any
) -> None:
    with pytest.raises(LoadCheckError) as caught:
        check(**{key: value})
    assert f"servers.notes.{key} names 'purg'" in caught.value.problem
    assert (caught.value.server, caught.value.tools) == ("notes", ("purg",))
    assert caught.value.remedy == "did you mean 'purge'?"


def test_a_name_that_is_near_to_none_is_told_with_those_there_are() -> None:
    with pytest.raises(LoadCheckError) as caught:
        check(alwaysWriteTools=["zzz"])
    assert (caught.value.remedy or "").startswith("it lists: read_note, slow,")


def test_a_server_that_could_not_be_listed_is_left_alone() -> None:
    check("gone", alwaysWriteTools=["zzz"])


def run_tool(**schema: Any) -> ServerState:
    return ServerState("notes", {"run": {"name": "run", "inputSchema": schema}})


def check_run(state: ServerState, **dispatcher: Any) -> None:
    loaded = eval_of(FOLDER, servers={"notes": small_config(dispatchers={"run": dispatcher})})
    check_named_tools(PreparedEval(loaded, {"notes": state}), {"notes": WriteMode.PLANNED})


NAMED: dict[str, Any] = {"properties": {"tool_name": {}, "params": {}, "operations": {}}}


def test_arguments_that_a_dispatcher_has_are_let_through() -> None:
    check_run(run_tool(**NAMED), tool="tool_name", arguments="params", readTargets=["any"])
    check_run(run_tool(**NAMED), tool="tool_name")
    # what its calls are made of, the schema of a batch may leave open
    check_run(run_tool(**NAMED), tool="name", arguments="args", batch="operations")


@pytest.mark.parametrize(
    ("dispatcher", "key", "remedy"),
    [
        ({"tool": "toolname"}, "tool", "did you mean 'tool_name'?"),
        ({"tool": "tool_name", "arguments": "zzz"}, "arguments", "it has: tool_name, params,"),
        ({"tool": "tool_name", "batch": "operation"}, "batch", "did you mean 'operations'?"),
    ],
)
def test_an_argument_that_a_dispatcher_does_not_have_is_refused(
    dispatcher: dict[str, Any], key: str, remedy: str
) -> None:
    with pytest.raises(LoadCheckError) as caught:
        check_run(run_tool(**NAMED), **dispatcher)
    assert f"servers.notes.dispatchers.run.{key} names " in caught.value.problem
    assert (caught.value.server, caught.value.tools) == ("notes", ("run",))
    assert (caught.value.remedy or "").startswith(remedy)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {}},
        {"properties": 3},
        {**NAMED, "additionalProperties": True},
        {**NAMED, "additionalProperties": {"type": "string"}},
        {**NAMED, "allOf": [{"properties": {"x": {}}}]},
    ],
)
def test_a_schema_that_does_not_name_all_arguments_refuses_none(schema: dict[str, Any]) -> None:
    check_run(run_tool(**schema), tool="x")
