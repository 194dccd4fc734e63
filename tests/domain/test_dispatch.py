"""Reading a dispatcher's call: what it is really for, and whether that is a write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.dispatch import (
    MAX_NESTING,
    CallReading,
    is_write,
    read_call,
    with_parsed_text,
)
from pytest_mst.domain.eval_config import Dispatcher, StdioServer
from pytest_mst.domain.plan import ToolCounts
from pytest_mst.domain.write import ServerTools, WriteTarget

READ = {"annotations": {"readOnlyHint": True}}
WRITE = {"annotations": {"readOnlyHint": False}}
LISTED: dict[str, Any] = {
    "list_people": READ,
    "create_person": WRITE,
    "ns:list": READ,
    "unhinted": {},
    "execute_tool": {"annotations": {"readOnlyHint": True, "destructiveHint": False}},
    "call_tool_write": {},
    "executions": READ,
    "batch": {},
}
EXECUTE = {"tool": "toolName", "arguments": "arguments"}
DISPATCHERS: dict[str, Any] = {
    "execute_tool": EXECUTE,
    "call_tool_write": {"tool": "name", "arguments": "args_json"},
    "executions": {"tool": "action", "readTargets": ["list"]},
    "batch": {**EXECUTE, "batch": "operations"},
}


def tools(dispatchers: dict[str, Any] = DISPATCHERS, **config: Any) -> ServerTools:
    given = {"transport": "stdio", "command": "python", "dispatchers": dispatchers, **config}
    return ServerTools.as_configured("crm", LISTED, StdioServer.model_validate(given))


def read(tool: str, arguments: Any, **config: Any) -> CallReading:
    return read_call(tools(**config), tool, arguments)


def execute(name: str, arguments: Any = None, **config: Any) -> CallReading:
    return read("execute_tool", {"toolName": name, "arguments": arguments}, **config)


# Targets and their arguments


def test_a_target_that_writes_is_a_write_whatever_the_dispatchers_own_hint_says() -> None:
    call = execute("create_person", {"name": "A"})
    assert call == CallReading(
        is_read=False,
        targets=(WriteTarget("create_person", {"name": "A"}),),
        writes=(WriteTarget("create_person", {"name": "A"}),),
        listed=(WriteTarget("create_person", {"name": "A"}),),
    )


def test_a_target_that_the_server_lists_as_read_only_is_a_read() -> None:
    call = execute("list_people", {})
    assert call == CallReading(is_read=True, targets=(WriteTarget("list_people", {}),))


@pytest.mark.parametrize("name", ["emcp/insert-row", "unhinted", "List_people", " list_people"])
def test_a_target_nobody_knows_to_read_is_a_write(name: str) -> None:
    call = execute(name, {"v": 1})
    assert not call.is_read
    assert call.targets == call.writes == (WriteTarget(name, {"v": 1}),)


@pytest.mark.parametrize(
    ("sent", "arguments"),
    [
        ({"title": "T"}, {"title": "T"}),
        ('{"title":"T"}', {"title": "T"}),
        ('  {"id": 1915883588174806058} ', {"id": 1915883588174806058}),
        ("", {}),
        ("  ", {}),
        ("null", {}),
        (None, {}),
    ],
    ids=str,
)
def test_arguments_are_read_from_an_object_or_from_json_text(sent: Any, arguments: Any) -> None:
    assert execute("create_person", sent).targets == (WriteTarget("create_person", arguments),)


def test_arguments_that_are_left_out_are_none() -> None:
    call = read("execute_tool", {"toolName": "create_person"})
    assert call.targets == (WriteTarget("create_person", {}),)


@pytest.mark.parametrize("sent", ["{title:", "[]", "3", '"{}"', [], 3, True, '{"a":1,"a":2}'])
def test_arguments_that_cannot_be_read_leave_the_call_unparsed(sent: Any) -> None:
    for name in ("create_person", "list_people"):
        call = execute(name, sent)
        assert (call.is_read, call.targets, call.writes) == (False, (), ())
        assert call.unparsed is not None
        assert "'arguments'" in call.unparsed


@pytest.mark.parametrize("name", [None, "", " ", 3, True, ["list_people"], {"name": "x"}])
def test_a_call_that_names_no_target_is_unparsed(name: Any) -> None:
    call = execute(name, {})
    assert not call.is_read
    assert call.unparsed == "'toolName' names no target"


@pytest.mark.parametrize(
    "arguments", [None, {}, [], ["list_people"], 3, '{"toolName": "list_people"}']
)
def test_a_dispatcher_that_is_called_with_nothing_is_unparsed(arguments: Any) -> None:
    call = read("execute_tool", arguments)
    assert not call.is_read
    assert call.unparsed is not None


def test_a_tool_that_is_no_dispatcher_is_what_it_says_of_itself() -> None:
    assert read("list_people", {"toolName": "create_person"}) == CallReading(is_read=True)
    assert read("create_person", None) == CallReading(is_read=False)
    assert read("nobody", 3) == CallReading(is_read=False)


# Targets of other servers


def test_a_target_may_be_named_with_its_server() -> None:
    sent = {"name": "github:create_issue", "args_json": '{"title":"T"}'}
    call = read("call_tool_write", sent)
    assert call.targets == call.writes == (WriteTarget("create_issue", {"title": "T"}, "github"),)
    assert call.listed == ()


def test_a_tool_of_another_server_is_not_the_one_that_this_server_lists() -> None:
    assert not execute("github:list_people").is_read
    assert not execute("crm:list_people").is_read
    assert not execute("github:list_people", readOnlyTools=["list_people"]).is_read


def test_only_the_name_as_it_is_written_is_a_read_target() -> None:
    whole = {"execute_tool": {**EXECUTE, "readTargets": ["github:list_issues"]}}
    assert execute("github:list_issues", dispatchers=whole).is_read
    assert not execute("list_issues", dispatchers=whole).is_read
    bare = {"execute_tool": {**EXECUTE, "readTargets": ["list_issues"]}}
    assert execute("list_issues", dispatchers=bare).is_read
    assert not execute("github:list_issues", dispatchers=bare).is_read


def test_a_tool_that_is_listed_under_a_name_with_a_colon_is_that_tool() -> None:
    call = execute("ns:list", {"a": 1})
    assert (call.is_read, call.targets) == (True, (WriteTarget("ns:list", {"a": 1}),))


@pytest.mark.parametrize(
    "name",
    [
        "github:",
        ":create",
        ":",
        "/v1/items:batchGet",
        "GET /users/{id}:archive",
        "https://x/y",
        "a b:c",
        "a: b",
    ],
)
def test_what_is_no_prefix_is_a_part_of_the_name(name: str) -> None:
    assert execute(name).targets == (WriteTarget(name, {}),)


def test_the_first_colon_ends_the_servers_name() -> None:
    assert execute("a:b:c").targets == (WriteTarget("b:c", {}, "a"),)


# Actions


def test_an_action_has_the_whole_call_for_its_arguments() -> None:
    assert read("executions", {"action": "list"}).is_read
    call = read("executions", {"action": "delete", "id": 5})
    assert call.writes == (WriteTarget("delete", {"action": "delete", "id": 5}),)
    assert call.listed == ()


def test_an_action_is_no_tool_of_the_same_name() -> None:
    no_rule = {"executions": {"tool": "action"}}
    call = read("executions", {"action": "list_people"}, dispatchers=no_rule)
    assert not call.is_read


def test_without_a_rule_every_action_is_a_write() -> None:
    no_rule = {"executions": {"tool": "action"}}
    for action in ("list", "delete"):
        assert not read("executions", {"action": action}, dispatchers=no_rule).is_read


# Batches


def test_a_batch_is_a_read_only_when_each_of_its_calls_is() -> None:
    people = {"toolName": "list_people"}
    person = {"toolName": "create_person", "arguments": '{"name": "A"}'}
    assert read("batch", {"operations": [people, people]}).is_read
    for operations in (
        [people, person],
        json.dumps([people, person]),
        [people, json.dumps(person)],
    ):
        call = read("batch", {"operations": operations})
        assert not call.is_read
        assert [target.tool for target in call.targets] == ["list_people", "create_person"]
        assert call.writes == (WriteTarget("create_person", {"name": "A"}),)


def test_a_call_beside_a_batch_counts_too() -> None:
    sent = {"toolName": "create_person", "operations": [{"toolName": "list_people"}]}
    call = read("batch", sent)
    assert [target.tool for target in call.targets] == ["create_person", "list_people"]
    assert not call.is_read


@pytest.mark.parametrize("nothing", [None, "", "null"])
def test_a_batch_that_is_not_sent_leaves_the_call_itself(nothing: Any) -> None:
    assert read("batch", {"toolName": "list_people", "operations": nothing}).is_read


@pytest.mark.parametrize(
    "operations",
    [[], {}, "[]", "[", 3, "{}", [None], [3], [[]], ["list_people"], [{}], [{"toolName": 1}]],
    ids=str,
)
def test_a_batch_that_cannot_be_read_is_unparsed_as_a_whole(operations: Any) -> None:
    call = read("batch", {"operations": operations})
    assert (call.is_read, call.targets) == (False, ())
    assert call.unparsed is not None


def test_a_call_of_a_batch_that_has_a_batch_of_its_own_leaves_all_of_it_unparsed() -> None:
    within = {"toolName": "list_people", "operations": [{"toolName": "create_person"}]}
    call = read("batch", {"operations": [within]})
    assert (call.is_read, call.unparsed) == (
        False,
        "a call in 'operations' has 'operations' of its own",
    )


def test_one_call_that_cannot_be_read_leaves_its_batch_unparsed() -> None:
    people = {"toolName": "list_people"}
    assert read("batch", {"operations": [people, {"toolName": ""}]}).unparsed is not None


# Nesting


def nested(depth: int, name: str = "list_people") -> dict[str, Any]:
    call: dict[str, Any] = {"toolName": name, "arguments": {"a": 1}}
    for _ in range(depth - 1):
        call = {"toolName": "execute_tool", "arguments": call}
    return call


def test_of_nested_targets_the_innermost_counts() -> None:
    sent = {"toolName": "call_tool_write", "arguments": '{"name": "create_person"}'}
    assert read("execute_tool", sent).targets == (WriteTarget("create_person", {}),)
    assert read("execute_tool", nested(2)).is_read
    assert not read("execute_tool", nested(2, "create_person")).is_read


def test_a_dispatcher_under_read_targets_is_still_looked_into() -> None:
    lax = {**DISPATCHERS, "batch": {**DISPATCHERS["batch"], "readTargets": ["execute_tool"]}}
    sent = {"toolName": "execute_tool", "arguments": {"toolName": "create_person"}}
    assert not read("batch", sent, dispatchers=lax).is_read


def test_a_read_target_of_one_dispatcher_is_none_of_another() -> None:
    sent = {"toolName": "executions", "arguments": {"action": "list"}}
    assert read("execute_tool", sent).is_read
    assert not execute("list").is_read


def test_a_batch_in_a_batch_is_taken_apart() -> None:
    inner = {"toolName": "batch", "arguments": {"operations": [nested(1), nested(2, "x")]}}
    call = read("batch", {"operations": [inner, {"toolName": "y"}]})
    assert [target.tool for target in call.targets] == ["list_people", "x", "y"]


def test_a_tool_that_only_shares_a_dispatchers_name_is_none() -> None:
    sent = {"toolName": "other:execute_tool", "arguments": nested(1)}
    call = read("execute_tool", sent)
    assert call.targets == (WriteTarget("execute_tool", nested(1), "other"),)


def test_what_is_nested_too_deep_is_unparsed() -> None:
    assert read("execute_tool", nested(MAX_NESTING)).is_read
    assert read("execute_tool", nested(MAX_NESTING + 1)).unparsed is not None
    itself = {"loop": {"tool": "action"}}
    assert read("loop", {"action": "loop"}, dispatchers=itself).unparsed is not None


# The config's other words


def test_always_write_tools_overrule_every_rule_of_a_dispatcher() -> None:
    sure = {"alwaysWriteTools": ["list_people"]}
    assert not execute("list_people", **sure).is_read
    lax = {"execute_tool": {**EXECUTE, "readTargets": ["list_people"]}}
    assert not execute("list_people", dispatchers=lax, **sure).is_read
    call = read("executions", {"action": "list"}, alwaysWriteTools=["executions"])
    assert not call.is_read
    assert call.targets == call.writes == (WriteTarget("list", {"action": "list"}),)


def test_a_dispatcher_that_always_writes_does_so_at_any_depth() -> None:
    by_action = {"toolName": "executions", "arguments": {"action": "list"}}
    assert read("execute_tool", by_action).is_read
    for sure in ("executions", "execute_tool"):
        assert not read("execute_tool", by_action, alwaysWriteTools=[sure]).is_read


def test_read_only_tools_count_as_targets_too() -> None:
    assert execute("unhinted", readOnlyTools=["unhinted"]).is_read


def test_what_goes_through_a_dispatcher_that_is_not_listed_is_no_read() -> None:
    hidden = tools({**DISPATCHERS, "hidden": {**EXECUTE, "readTargets": ["find"]}})
    for target in ("list_people", "find"):
        call = read_call(hidden, "hidden", {"toolName": target})
        assert (call.is_read, [one.tool for one in call.targets]) == (False, [target])
    within = {"toolName": "hidden", "arguments": {"toolName": "list_people"}}
    assert read_call(hidden, "execute_tool", within).is_read


def test_a_dispatcher_is_a_declared_write() -> None:
    assert "execute_tool" in tools().writes
    assert not set(DISPATCHERS) & set(tools().unhinted)
    assert ToolCounts.of(tools()) == ToolCounts(total=8, reads=2, declared_writes=5, unhinted=1)


# What holds for all


NAMES = st.sampled_from(
    ["list_people", "create_person", "execute_tool", "batch", "executions", "list", "x:y", "", " "]
)
SENT = st.recursive(
    st.none() | st.booleans() | st.integers() | NAMES | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*EXECUTE.values(), "operations", "action"]), inner)
        | inner.map(json.dumps)
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(DISPATCHERS)), SENT)
def test_a_call_is_read_or_unparsed_and_a_read_has_reads_only(tool: str, arguments: Any) -> None:
    known = tools()
    call = read_call(known, tool, arguments)
    assert (call.unparsed is None) == bool(call.targets)
    assert call.is_read == (call.unparsed is None and not call.writes)
    assert is_write(known, tool, arguments) is not call.is_read
    assert set(map(id, call.listed)) <= set(map(id, call.writes)) <= set(map(id, call.targets))
    for target in call.targets:
        assert target.tool not in DISPATCHERS
        if target not in call.writes:
            assert target.tool in ("list_people", "list")


@given(st.sampled_from(sorted(DISPATCHERS)), SENT)
def test_text_in_place_of_an_object_makes_no_difference(tool: str, arguments: Any) -> None:
    known = tools()
    dispatcher = known.dispatchers[tool]
    if isinstance(arguments, dict) and read_call(known, tool, arguments).unparsed is None:
        as_object = with_parsed_text(dispatcher, arguments)
        assert read_call(known, tool, as_object).is_read == (not is_write(known, tool, arguments))


def test_text_that_cannot_be_read_counts_as_an_empty_value() -> None:
    batch = Dispatcher.model_validate(DISPATCHERS["batch"])
    sent = {"arguments": "{title:", "operations": "[", "toolName": "{}", "other": "[]"}
    assert with_parsed_text(batch, sent) == {**sent, "arguments": {}, "operations": []}
