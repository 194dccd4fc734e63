"""What the load check asks of live servers before anything is written for real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.attempt.live_check import check_live
from pytest_mst.attempt.load_check import needed_labels
from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.errors import LoadCheckError, LoadCheckErrors
from tests.attempt.evals import BROKEN
from tests.attempt.ledgers import FOUND, MARKER, PURGE, SEED, WRITES_AND_FINDS, Ledger
from tests.plugin.servers.ledger import TOOLS

ANSWERS = {"assertions": {"containsText": "done"}}


def prepared(
    folder: Path,
    *cases: Mapping[str, Any],
    gone: Sequence[str] = (),
    **keys: Any,
) -> PreparedEval:
    loaded = Ledger(folder).loaded(cases=cases, **keys)
    tools = {tool["name"]: tool for tool in TOOLS}
    states = {
        label: ServerState(label, {}, failure=BROKEN)
        if label in gone
        else ServerState(label, tools)
        for label in loaded.config.servers
    }
    return PreparedEval(loaded, states)


def check(one: PreparedEval, *, allowed: bool = True) -> None:
    check_live(one, one.loaded.config.variants_or_default, allowed=allowed)


def problems(one: PreparedEval) -> list[LoadCheckError]:
    with pytest.raises(LoadCheckErrors) as caught:
        check(one)
    assert str(caught.value) == "\n".join(map(str, caught.value.errors))
    return list(caught.value.errors)


def test_live_writes_need_leave(tmp_path: Path) -> None:
    one = prepared(tmp_path, WRITES_AND_FINDS)
    with pytest.raises(LoadCheckError) as caught:
        check(one, allowed=False)
    assert caught.value.server == "ledger"
    assert caught.value.tools == ("add", "purge", "refuse", "reject", "die")
    assert "(tools that write: ledger: add, purge, refuse, reject, die)" in str(caught.value)
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith("add --allow-live-writes where that is meant")
    check(one)


def test_leave_is_asked_for_the_chosen_variants_only(tmp_path: Path) -> None:
    variants = [{"name": "a", "writes": "planned"}, {"name": "b"}]
    one = prepared(tmp_path, {**WRITES_AND_FINDS, **ANSWERS}, variants=variants)
    planned, live = one.loaded.config.variants
    check_live(one, [planned], allowed=False)
    with pytest.raises(LoadCheckError):
        check_live(one, [planned, live], allowed=False)


def test_a_server_that_only_reads_is_not_live(tmp_path: Path) -> None:
    reads = [tool["name"] for tool in TOOLS]
    ledger = Ledger(tmp_path).server(readOnlyTools=reads)
    check(prepared(tmp_path, ANSWERS, servers={"ledger": ledger}), allowed=False)


def test_one_that_cannot_be_listed_is_live_as_it_says(tmp_path: Path) -> None:
    one = prepared(tmp_path, WRITES_AND_FINDS, gone=["ledger"])
    with pytest.raises(LoadCheckError, match="unknown"):
        check(one, allowed=False)
    check(one)  # nothing reaches it, and its attempts are setup failures


@pytest.mark.parametrize("writes", [[], [{"tool": "add"}]])
def test_a_write_case_needs_a_check_steps_and_the_attempts_id(
    tmp_path: Path, writes: list[Any]
) -> None:
    case = {"input": "pay", "expected": {"writes": writes}}
    (error,) = problems(prepared(tmp_path, ANSWERS, case, setup=[], cleanup=[]))
    assert (error.place.line, error.place.key) == (11, "cases[1]")
    assert (error.server, error.tools[0]) == ("ledger", "add")
    assert error.problem == (
        "server 'ledger' is live (tools that write: add, purge, refuse, reject, die), and the "
        "write case 'c1' has not all that live writes need; missing: an outcome check, a set-up "
        "step, a cleanup step, {{trial.id}} in its input"
    )
    assert error.remedy is not None
    for way_out in ("`expected.outcome`", "`setup`", "`cleanup`", "`inputTemplate`"):
        assert way_out in error.remedy


@pytest.mark.parametrize(
    ("lacks", "missing"),
    [
        ({"setup": []}, "a set-up step"),
        ({"cleanup": []}, "a cleanup step"),
        ({"inputTemplate": "Be brief. pay"}, "{{trial.id}} in its input"),
    ],
)
def test_a_case_that_may_write_needs_each_of_them(
    tmp_path: Path, lacks: dict[str, Any], missing: str
) -> None:
    case = {"expected": {"outcome": [FOUND]}}
    (error,) = problems(prepared(tmp_path, case, **lacks))
    assert error.problem.endswith(f"; missing: {missing}")


def test_the_id_may_be_in_the_template_of_a_variant(tmp_path: Path) -> None:
    variants = [{"name": "v", "inputTemplate": "{{input}} (ref {{trial.id}})"}]
    check(prepared(tmp_path, {"input": "pay", **WRITES_AND_FINDS}, variants=variants))


def test_cases_that_are_skipped_or_stopped_need_none_of_it(tmp_path: Path) -> None:
    skipped = {"skip": "later", "input": "pay", "expected": {"writes": []}}
    check(prepared(tmp_path, skipped, {"input": "pay", **ANSWERS}, setup=[], cleanup=[]))


def test_all_that_is_wrong_is_said_at_once_and_once(tmp_path: Path) -> None:
    bad = {**FOUND, "jsonPath": [{"path": "entries"}], "schema": {"type": "list"}}
    one = prepared(
        tmp_path,
        {"expected": {"outcome": [{**FOUND, "tool": "fnd"}, {**FOUND, "tool": "add"}, bad]}},
        setup=[SEED, {**SEED, "tool": "ad"}],
        cleanup=[{**PURGE, "tool": "wipe"}],
        variants=[{"name": "a"}, {"name": "b"}],
    )
    found = [(error.place.key, error.problem, error.remedy) for error in problems(one)]
    assert [(key, problem) for key, problem, _ in found][:4] == [
        ("setup[1]", "setup[1] calls 'ad', which server 'ledger' does not list"),
        ("cleanup[0]", "cleanup[0] calls 'wipe', which server 'ledger' does not list"),
        (
            "cases[0].expected.outcome[0]",
            "expected.outcome[0] of case 'c0' calls 'fnd', which server 'ledger' does not list",
        ),
        (
            "cases[0].expected.outcome[1]",
            "expected.outcome[1] of case 'c0' reads with 'add', which server 'ledger' does not "
            "list as read-only",
        ),
    ]
    assert found[0][2] == "did you mean 'add'?"
    assert "`servers.ledger.readOnlyTools`" in str(found[3][2])
    assert ["jsonPath" in problem or "schema" in problem for _, problem, _ in found[4:]] == [
        True,
        True,
    ]


def test_the_attempts_id_may_be_a_part_of_a_query_and_of_a_schema(tmp_path: Path) -> None:
    schema = {"$ref": "#/$defs/{{trial.id}}", "$defs": {"{{trial.id}}": {"type": "object"}}}
    asks = {**FOUND, "jsonPath": [{"path": "$.entries.{{trial.id}}"}], "schema": schema}
    check(prepared(tmp_path, {"expected": {"outcome": [asks]}}))


def with_schemas(one: PreparedEval, schema: object) -> PreparedEval:
    """Return the eval as if each tool of its server took arguments of this schema."""
    tools = {
        name: {**tool, "inputSchema": schema} for name, tool in one.servers["ledger"].tools.items()
    }
    return PreparedEval(one.loaded, {"ledger": ServerState("ledger", tools)})


def test_arguments_that_a_tool_does_not_take_are_told_before_anything_is_called(
    tmp_path: Path,
) -> None:
    marker = {"type": "string", "pattern": "^[a-z0-9]{11}$"}
    takes = {"type": "object", "properties": {"marker": marker}, "required": ["marker"]}
    one = prepared(
        tmp_path,
        {"expected": {"outcome": [{**FOUND, "arguments": {}}, FOUND]}},
        setup=[SEED, {**SEED, "arguments": {"marker": 7}}],
        cleanup=[PURGE],
    )
    found = problems(with_schemas(one, takes))
    assert [(error.place.key, error.problem, error.remedy) for error in found] == [
        (
            "setup[1]",
            "setup[1] calls 'add' of server 'ledger' with arguments that do not fit its "
            "inputSchema: ['marker']: 7 is not of type 'string'",
            "it takes: marker",
        ),
        (
            "cases[0].expected.outcome[0]",
            "expected.outcome[0] of case 'c0' calls 'find' of server 'ledger' with arguments that "
            "do not fit its inputSchema: 'marker' is a required property",
            "it takes: marker",
        ),
    ]


@pytest.mark.parametrize(
    "schema", [{"type": "objekt"}, {"$ref": "https://example.org/s.json"}, "object", None]
)
def test_any_arguments_fit_a_schema_that_cannot_be_used(tmp_path: Path, schema: object) -> None:
    check(with_schemas(prepared(tmp_path, WRITES_AND_FINDS), schema))


def test_a_tool_that_the_config_calls_a_read_may_read_outcomes(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path).server(readOnlyTools=["purge"])
    check(
        prepared(
            tmp_path,
            {"expected": {"outcome": [{**FOUND, "tool": "purge"}]}},
            servers={"ledger": ledger},
        )
    )


def test_a_case_that_only_an_outcome_grades_is_ungraded_where_nothing_is_live(
    tmp_path: Path,
) -> None:
    variants = [{"name": "a", "writes": "planned"}]
    one = prepared(tmp_path, {"expected": {"outcome": [FOUND]}}, variants=variants)
    (error,) = problems(one)
    assert error.problem.startswith("case 'c0' by variant 'a' has nothing that a trial of it could")
    check(prepared(tmp_path, {"expected": {"outcome": [FOUND]}, **ANSWERS}, variants=variants))
    judged = [{**variants[0], "judges": [{"type": "rubric"}]}]
    check(prepared(tmp_path, {"expected": {"outcome": [FOUND]}}, variants=judged))


def test_servers_that_only_our_own_calls_go_to_are_listed_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path).server()
    servers = {"audit": ledger, "other": ledger, "ledger": ledger, "admin": ledger}
    check_in_audit = {"server": "audit", "tool": "find", "arguments": MARKER, "isError": False}
    loaded = prepared(
        tmp_path,
        {"expected": {"outcome": [check_in_audit]}},
        servers=servers,
        setup=[{**SEED, "server": "admin"}],
        cleanup=[{**PURGE, "server": "admin"}],
        variants=[{"name": "v", "servers": ["ledger"]}],
    ).loaded
    assert needed_labels(loaded, loaded.config.variants) == ("audit", "ledger", "admin")
    planned = loaded.config.model_copy(update={"writes": "planned"})
    assert needed_labels(
        type(loaded)(loaded.path, planned, loaded.cases, (), {}), planned.variants
    ) == ("ledger",)
