"""Servers that plan writes themselves: everything is forwarded, and the mark tells."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.write import WriteEntry, WriteMode, WriteTarget
from pytest_mst.proxy.planned_mark import is_marked
from pytest_mst.proxy.record import UnrecordedError
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.proxy.servers.desk import DISPATCHERS, done
from tests.proxy.setting import SERVERS, attempt, stdio

MARKS = pytest.mark.parametrize("mark", ["structured", "text"])


def desk(tmp_path: Path, mark: str = "structured", **config: Any) -> UpstreamSpec:
    arguments = ["--log", str(tmp_path / "desk.log"), "--mark", mark]
    given = {
        "dispatchers": DISPATCHERS,
        "plannedWriteKey": "_planned",
        "protocol": "legacy",
        **config,
    }
    return stdio("desk", "python", str(SERVERS / "desk.py"), *arguments, **given)


def did(tmp_path: Path) -> list[tuple[str, str]]:
    return [(one["did"], one["tool"]) for one in done(tmp_path / "desk.log")]


async def calls(spec: UpstreamSpec, *made: tuple[str, dict[str, Any]]) -> list[WriteEntry]:
    async with attempt(spec, mode=WriteMode.SERVER_PLANNED) as boundary:
        for tool, arguments in made:
            try:
                await boundary.call_tool("desk", tool, arguments)
            except ToolCallError:
                continue
    assert len(boundary.calls) == len(made)
    return boundary.entries


@MARKS
@pytest.mark.anyio
async def test_a_marked_call_is_a_write_with_the_servers_own_reply(
    tmp_path: Path, mark: str
) -> None:
    async with attempt(desk(tmp_path, mark), mode=WriteMode.SERVER_PLANNED) as boundary:
        reply = await boundary.call_tool("desk", "create_person", {"name": "A"})
    assert did(tmp_path) == [("planned", "create_person")]
    (entry,) = boundary.entries
    assert (entry.mode, entry.unclassified) == (WriteMode.SERVER_PLANNED, False)
    assert entry.reply == reply
    assert "planned" in json.dumps(reply)


@pytest.mark.lets_writes_through
@pytest.mark.anyio
async def test_an_unmarked_call_to_a_tool_that_may_write_is_unclassified(tmp_path: Path) -> None:
    entries = await calls(desk(tmp_path), ("touch", {}), ("list_people", {}), ("break", {}))
    entries += await calls(desk(tmp_path), ("refuse", {}), ("nobody_lists_this", {}))
    assert [(e.tool, e.unclassified, e.refused) for e in entries] == [
        ("touch", True, None),
        ("break", True, None),
        ("refuse", True, None),
        ("nobody_lists_this", False, None),
    ]


@pytest.mark.anyio
async def test_a_marked_answer_of_a_tool_that_says_it_reads_is_a_write_all_the_same(
    tmp_path: Path,
) -> None:
    entries = await calls(desk(tmp_path), ("peek", {"at": 1}))
    assert [(e.tool, e.arguments, e.unclassified) for e in entries] == [("peek", {"at": 1}, False)]
    for mode in (WriteMode.READ_ONLY, WriteMode.PLANNED):
        async with attempt(desk(tmp_path), mode=mode) as boundary:
            await boundary.call_tool("desk", "peek", {})
        assert [(e.tool, e.mode) for e in boundary.entries] == [("peek", mode)]


@pytest.mark.lets_writes_through
@pytest.mark.anyio
async def test_dispatched_calls_are_told_by_the_mark_and_recorded_by_their_targets(
    tmp_path: Path,
) -> None:
    person = {"toolName": "create_person", "arguments": '{"name": "A"}'}
    people, touch = {"toolName": "list_people"}, {"toolName": "touch"}
    entries = await calls(
        desk(tmp_path),
        ("execute_tool", person),
        ("execute_tool", people),
        ("execute_tool", touch),
        ("run_batch", {"operations": [people, person, touch]}),
        ("executions", {"action": "list"}),
        ("execute_tool", {"toolName": "peek"}),
    )
    assert [(e.call_seq, e.target, e.unclassified) for e in entries] == [
        (0, WriteTarget("create_person", {"name": "A"}), False),
        (1, WriteTarget("list_people", {}), True),
        (2, WriteTarget("touch", {}), True),
        (3, WriteTarget("create_person", {"name": "A"}), False),
        (3, WriteTarget("touch", {}), False),
        (4, WriteTarget("list", {"action": "list"}), True),
        (5, WriteTarget("peek", {}), False),
    ]
    assert ("planned", "create_person") in did(tmp_path)


@pytest.mark.lets_writes_through
@pytest.mark.anyio
async def test_what_cannot_be_read_is_forwarded_and_told_by_the_mark(tmp_path: Path) -> None:
    unread = {"toolName": "touch", "arguments": 3}
    marked = {"operations": {}, "toolName": "x"}
    entries = await calls(desk(tmp_path), ("execute_tool", unread), ("run_batch", marked))
    assert did(tmp_path) == [("wrote", "touch")]
    assert [(e.unparsed, e.unclassified, e.target, e.arguments) for e in entries] == [
        (True, True, None, unread),
        (True, True, None, marked),
    ]


@pytest.mark.anyio
async def test_another_key_is_no_mark(tmp_path: Path) -> None:
    spec = desk(tmp_path, plannedWriteKey="planned")
    entries = await calls(spec, ("create_person", {"name": "A"}))
    assert [entry.unclassified for entry in entries] == [True]


@pytest.mark.anyio
async def test_a_call_that_nobody_waits_for_is_unclassified(tmp_path: Path) -> None:
    async with attempt(desk(tmp_path), mode=WriteMode.SERVER_PLANNED) as boundary:
        with anyio.move_on_after(0.3):
            await boundary.call_tool("desk", "wait", {"seconds": 0.6})
    assert [(e.tool, e.unclassified) for e in boundary.entries] == [("wait", True)]


@pytest.mark.lets_writes_through
@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["create_person", "touch", "peek"])
async def test_the_reply_is_not_given_where_it_cannot_be_recorded(
    tmp_path: Path, tool: str
) -> None:
    def full(_entry: WriteEntry) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with attempt(desk(tmp_path), mode=WriteMode.SERVER_PLANNED, sink=full) as boundary:
        with pytest.raises(UnrecordedError):
            await boundary.call_tool("desk", tool, {"name": "A"})
    assert boundary.entries == []


# The mark


def texts(*given: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in given]}


@pytest.mark.parametrize(
    "result",
    [
        {"structuredContent": {"_planned": True}},
        {"structuredContent": {"_planned": "p-1", "x": 1}, "isError": True},
        {"structuredContent": {"_planned": {}}},
        {"structuredContent": {"_planned": 0}},
        texts('{"_planned": true}'),
        texts("Here you are:", ' \n{"x": {}, "_planned": [1]}\n'),
        texts('{"_planned": null, "_planned": true}'),
        {**texts('{"_planned": true}'), "structuredContent": {}},
    ],
    ids=str,
)
def test_a_key_at_the_top_of_structured_content_or_json_text_is_the_mark(result: Any) -> None:
    assert is_marked(result, "_planned")


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"_planned": True},
        {"_meta": {"_planned": True}},
        {"structuredContent": {"_planned": False}},
        {"structuredContent": {"_planned": None}},
        {"structuredContent": {"x": {"_planned": True}}},
        {"structuredContent": [{"_planned": True}]},
        {"structuredContent": "_planned"},
        texts("_planned", "true", '"_planned"', '["_planned", true]', '[["_planned", true]]'),
        texts('{"x": {"_planned": true}}', '{"_planned": false}', '{"_planned": null}'),
        texts('Done: {"_planned": true}', '{"_planned": true} done', '{"_planned": tru'),
        texts('{"_planned":' * 100_000),
        texts(3, None),
        {"content": [{"type": "resource", "text": '{"_planned": true}'}, 3, None]},
        {"content": {"type": "text", "text": '{"_planned": true}'}},
        {"error": {"code": 1, "message": "no", "data": {"_planned": True}}},
    ],
    ids=lambda result: str(result)[:60],
)
def test_elsewhere_or_false_or_null_it_is_none(result: Any) -> None:
    assert not is_marked(result, "_planned")


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(st.text(min_size=1), PLAIN, st.dictionaries(st.text(), PLAIN, max_size=3))
def test_the_mark_counts_alike_in_text_and_in_structured_content(
    key: str, value: Any, others: dict[str, Any]
) -> None:
    held = {**others, key: value}
    marked = value is not None and value is not False
    assert is_marked({"structuredContent": held}, key) is marked
    assert is_marked(texts(json.dumps(held, indent=1)), key) is marked
