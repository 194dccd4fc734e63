"""Deciding calls: pure, and closed where nothing is known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.eval_config import Dispatcher
from pytest_mst.domain.write import ServerTools, WriteMode
from pytest_mst.proxy.policy import (
    Decision,
    Forward,
    Recorded,
    RefuseArguments,
    RefuseUnknown,
    ReplyError,
    ServerPolicy,
    Stop,
    Withhold,
)
from pytest_mst.proxy.policy_shelf import PolicyShelf
from pytest_mst.proxy.replies import ReplyFacts
from pytest_mst.proxy.upstream_spec import ServerListing
from tests.proxy.setting import wild

STOPPING = [WriteMode.READ_ONLY, WriteMode.PLANNED, WriteMode.SIMULATED]
READ = {"readOnlyHint": True}


def policy(
    *tools: dict[str, Any],
    mode: WriteMode = WriteMode.PLANNED,
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
    templates: dict[str, Any] | None = None,
) -> ServerPolicy:
    listed = {str(tool["name"]): tool for tool in tools}
    known = ServerTools("s", listed, frozenset(reads), frozenset(writes))
    return ServerPolicy(known, mode, templates or {})


def reply(decision: Decision, **arguments: Any) -> dict[str, Any]:
    assert isinstance(decision, Stop)
    return decision.reply.make(ReplyFacts(arguments, "t1"))


@pytest.mark.parametrize("mode", STOPPING)
@pytest.mark.parametrize(
    "annotations",
    [
        None,
        {},
        {"title": "x"},
        {"readOnlyHint": False},
        {"destructiveHint": False},
        {"idempotentHint": True},
        {"readOnlyHint": "true"},
        {"readOnlyHint": 1},
        {"readOnlyHint": True, "destructiveHint": True},
        [],
    ],
)
def test_only_a_real_read_only_hint_makes_a_read(annotations: object, mode: WriteMode) -> None:
    decided = policy({"name": "t", "annotations": annotations}, mode=mode).decide("t", {})
    assert isinstance(decided, Stop)


@pytest.mark.parametrize("mode", STOPPING)
def test_reads_are_forwarded_whatever_their_arguments(mode: WriteMode) -> None:
    schema = {"type": "object", "required": ["id"]}
    tools = policy({"name": "t", "annotations": READ, "inputSchema": schema}, mode=mode)
    assert tools.decide("t", {}) == Forward(is_read=True)


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT 1) DELETE FROM t",
        "/* a */ INSERT INTO t VALUES (1)",
        "select 1; drop table t",
        "SELECT 'delete'",
    ],
)
def test_a_tool_named_as_a_write_is_stopped_whatever_it_is_given(sql: str) -> None:
    query = {"name": "query", "annotations": READ}
    assert policy(query).decide("query", {"sql": sql}) == Forward(is_read=True)
    assert isinstance(policy(query, writes=("query",)).decide("query", {"sql": sql}), Stop)


def test_several_tools_can_be_overruled_at_once() -> None:
    names = ["get_a", "create_a", "delete_a", "call_surface"]
    tools = policy(*({"name": n, "annotations": READ} for n in names), writes=tuple(names[1:]))
    stopped = [name for name in names if isinstance(tools.decide(name, {}), Stop)]
    assert stopped == ["create_a", "delete_a", "call_surface"]


@pytest.mark.parametrize("mode", STOPPING)
def test_what_is_not_listed_is_refused(mode: WriteMode) -> None:
    assert policy({"name": "t"}, mode=mode).decide("u", {}) == RefuseUnknown("u")


@pytest.mark.parametrize("mode", STOPPING)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"titel": "x"}, "'title'"), ({"title": 1}, "['title']"), (["x"], "array"), ("x", "string")],
)
def test_arguments_that_do_not_fit_are_refused_by_what_is_wrong(
    arguments: object, words: str, mode: WriteMode
) -> None:
    schema = {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    }
    decided = policy({"name": "t", "inputSchema": schema}, mode=mode).decide("t", arguments)
    assert isinstance(decided, RefuseArguments)
    result = decided.result()
    assert result["isError"] is True
    assert words in result["content"][0]["text"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "https://example.invalid/schema.json"},
        {"$ref": "#/nowhere"},
        {"$ref": "#"},
        {"properties": {"a": {"pattern": "\\p{Letter}"}}},
        {"required": "a"},
        "not a schema",
        None,
    ],
)
@pytest.mark.parametrize("kind", ["inputSchema", "outputSchema"])
def test_a_schema_that_cannot_be_used_never_lets_a_write_through(schema: object, kind: str) -> None:
    tools = policy({"name": "t", kind: schema})
    try:
        assert isinstance(tools.decide("t", {"a": "b"}), Stop)
    except ReplyError as error:
        assert (kind, error.tool) == ("outputSchema", "t")  # noqa: PT017


def test_unguarded_calls_are_all_forwarded() -> None:
    tools = policy({"name": "r", "annotations": READ}, {"name": "w"}, mode=WriteMode.UNGUARDED)
    assert [tools.decide(name, None) for name in ("r", "w", "nobody")] == [
        Forward(is_read=True),
        Forward(is_read=False),
        Forward(is_read=False),
    ]


def test_a_planned_reply_says_that_nothing_was_done() -> None:
    result = reply(policy({"name": "post"}).decide("post", {}))
    assert result.keys() == {"content"}
    assert "post on s was recorded and NOT executed" in result["content"][0]["text"]


RECORD = {
    "type": "object",
    "properties": {"id": {"type": "string"}, "created": {"type": "boolean"}},
    "required": ["id", "created"],
}


@pytest.mark.parametrize(("mode", "created"), [("planned", False), ("simulated", True)])
def test_a_reply_satisfies_the_output_schema(mode: str, created: bool) -> None:
    tools = policy({"name": "t", "outputSchema": RECORD}, mode=WriteMode(mode))
    assert reply(tools.decide("t", {}))["structuredContent"] == {"id": "", "created": created}


def test_an_output_schema_that_nothing_fits_is_told_with_the_tool() -> None:
    impossible = {"type": "object", "required": ["a"], "properties": {"a": False}}
    for mode in (WriteMode.PLANNED, WriteMode.SIMULATED):
        with pytest.raises(ReplyError) as caught:
            policy({"name": "t", "outputSchema": impossible}, mode=mode).decide("t", {})
        assert caught.value.tool == "t"
        assert "replies.t" in caught.value.remedy


def test_a_simulated_reply_without_template_or_schema_says_that_it_is_done() -> None:
    tools = policy({"name": "t"}, mode=WriteMode.SIMULATED)
    first, second = (reply(tools.decide("t", {"a": 1}), a=1) for _ in range(2))
    value = first["structuredContent"]
    assert (value["ok"], value["result"]) == (True, {"a": 1})
    assert value["id"] != second["structuredContent"]["id"]


def test_a_template_that_cannot_fit_is_found_before_any_call() -> None:
    with pytest.raises(ReplyError, match="'created' is a required property"):
        policy(
            {"name": "t", "outputSchema": RECORD},
            mode=WriteMode.SIMULATED,
            templates={"t": {"id": "{{uuid}}"}},
        )
    with pytest.raises(ReplyError, match=r"argument\.id"):
        policy({"name": "t"}, mode=WriteMode.SIMULATED, templates={"t": {"id": "{{argument.id}}"}})


def test_a_template_that_does_not_fit_in_a_call_is_never_sent() -> None:
    tools = policy(
        {"name": "t", "outputSchema": RECORD},
        mode=WriteMode.SIMULATED,
        templates={"t": {"id": "{{arguments.id}}", "created": True}},
    )
    fits = reply(tools.decide("t", {"id": "a"}), id="a")
    assert fits["structuredContent"] == {"id": "a", "created": True}
    with pytest.raises(ReplyError, match="is not of type 'string'"):
        reply(tools.decide("t", {"id": 1}), id=1)
    with pytest.raises(ReplyError, match=r"arguments\.id"):
        reply(tools.decide("t", {}))


def test_templates_are_only_for_simulated_writes() -> None:
    templates = {"t": {"ok": "{{nothing}}"}}
    result = reply(policy({"name": "t"}, templates=templates).decide("t", {}))
    assert "NOT executed" in result["content"][0]["text"]


# Dispatchers

EXECUTE = {"tool": "name", "arguments": "arguments", "batch": "calls"}
NAMES = st.sampled_from(["reads", "writes", "run", "other:reads", ""])
SENT = st.recursive(
    st.none() | st.integers() | NAMES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(sorted(EXECUTE.values())), inner)
        | inner.map(json.dumps)
    ),
    max_leaves=8,
)


def dispatching(mode: WriteMode, key: str | None = None) -> ServerPolicy:
    listed = {"reads": {"annotations": READ}, "writes": {}, "run": {"annotations": READ}}
    run = Dispatcher.model_validate(EXECUTE)
    known = ServerTools("s", listed, dispatchers={"run": run})
    return ServerPolicy(known, mode, {}, planned_write_key=key)


@given(st.sampled_from(WriteMode), SENT)
def test_only_a_dispatched_read_is_forwarded_where_writes_are_stopped(
    mode: WriteMode, arguments: Any
) -> None:
    tools = dispatching(mode)
    call, decided = tools.read("run", arguments), tools.decide("run", arguments)
    if mode in STOPPING:
        assert isinstance(decided, Forward) is call.is_read
    elif mode is WriteMode.LIVE:
        assert isinstance(decided, Withhold) is (call.unparsed is not None)
    else:
        assert decided == Forward(call.is_read)


@pytest.mark.parametrize(
    ("mode", "reply", "expected"),
    [
        (WriteMode.UNGUARDED, {}, Recorded(unclassified=True)),
        (WriteMode.SERVER_PLANNED, {}, Recorded(unclassified=True)),
        (WriteMode.SERVER_PLANNED, {"isError": True}, Recorded(unclassified=True)),
        (WriteMode.SERVER_PLANNED, {"structuredContent": {"_p": 1}}, Recorded()),
        (WriteMode.SERVER_PLANNED, {"error": {"code": -32602}}, Recorded(unclassified=True)),
        (WriteMode.LIVE, {}, Recorded()),
        (WriteMode.LIVE, {"isError": True}, Recorded(refused="unknown-tool")),
        (WriteMode.LIVE, {"error": {"code": -32602}}, Recorded(refused="unknown-tool")),
        (WriteMode.LIVE, {"error": {"code": -32001}}, Recorded()),
    ],
)
def test_what_was_forwarded_is_recorded_by_what_came_back(
    mode: WriteMode, reply: dict[str, Any], expected: Recorded
) -> None:
    tools = dispatching(mode, "_p")
    nobody = tools.read("nobody", None)
    assert tools.recorded(nobody, "nobody", None, reply) == expected
    listed = tools.recorded(tools.read("writes", {}), "writes", {}, reply)
    assert listed == (Recorded() if mode is WriteMode.LIVE else expected)
    if expected.unclassified or mode is WriteMode.LIVE:
        assert tools.recorded(tools.read("reads", {}), "reads", {}, reply) is None


# Lists that change


def listing(*tools: dict[str, Any]) -> ServerListing:
    named = {str(tool["name"]): tool for tool in tools}
    return ServerListing("wild", named, None, None, "2025-11-25")


@pytest.mark.parametrize("hint", [1, 1.0])
def test_a_hint_that_is_only_equal_to_true_makes_no_read_of_what_was_one(hint: float) -> None:
    shelf, spec = PolicyShelf(), wild()
    sure = {"name": "look", "annotations": {"readOnlyHint": True}}
    unsure = {"name": "look", "annotations": {"readOnlyHint": hint}}
    before = shelf.policy(spec, WriteMode.PLANNED, listing(sure))
    assert before.decide("look", {}) == Forward(is_read=True)
    assert shelf.policy(spec, WriteMode.PLANNED, listing(dict(sure))) is before
    after = shelf.policy(spec, WriteMode.PLANNED, listing(unsure))
    assert isinstance(after.decide("look", {}), Stop)
