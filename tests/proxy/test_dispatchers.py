"""Dispatchers before a real process: what is stopped, what gets through, and what is recorded."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.write import WriteEntry, WriteMode, WriteTarget
from pytest_mst.proxy.record import UnrecordedError
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.proxy.servers.desk import DISPATCHERS, dispatchers, done
from tests.proxy.setting import SERVERS, attempt, stdio, text

pytestmark = pytest.mark.anyio

STOPPING = pytest.mark.parametrize("mode", [WriteMode.PLANNED, WriteMode.SIMULATED])
T = {"title": "T"}


def desk(tmp_path: Path, *arguments: str, **config: Any) -> UpstreamSpec:
    log = str(tmp_path / "desk.log")
    given = {"dispatchers": DISPATCHERS, "protocol": "legacy", **config}
    return stdio("desk", "python", str(SERVERS / "desk.py"), "--log", log, *arguments, **given)


def did(tmp_path: Path) -> list[tuple[str, str]]:
    return [(one["did"], one["tool"]) for one in done(tmp_path / "desk.log")]


def targets(entries: list[WriteEntry]) -> list[tuple[str | None, str, Any] | None]:
    return [
        None if one.target is None else (one.target.server, one.target.tool, one.target.arguments)
        for one in entries
    ]


@STOPPING
async def test_a_dispatched_write_is_stopped_by_its_target_and_a_dispatched_read_is_not(
    tmp_path: Path, mode: WriteMode
) -> None:
    write: Any = {"toolName": "create_person", "arguments": {"name": "A"}}
    async with attempt(desk(tmp_path), mode=mode) as boundary:
        await boundary.call_tool("desk", "execute_tool", write, join_id="w")
        people: Any = {"toolName": "list_people", "arguments": {}}
        answer = await boundary.call_tool("desk", "execute_tool", people)
    assert text(answer) == '["read"]'
    assert did(tmp_path) == [("read", "list_people")]
    (entry,) = boundary.entries
    assert entry.target == WriteTarget("create_person", {"name": "A"})
    assert (entry.tool, entry.arguments, entry.join_id) == ("execute_tool", write, "w")
    assert (entry.mode, entry.refused, entry.unparsed, entry.unclassified) == (
        mode,
        None,
        False,
        False,
    )
    assert [call.is_read for call in boundary.calls] == [False, True]


@STOPPING
async def test_a_target_in_no_list_is_stopped_and_recorded(tmp_path: Path, mode: WriteMode) -> None:
    sent: Any = {"ability_name": "emcp/insert-row", "parameters": {"v": 1}}
    async with attempt(desk(tmp_path), mode=mode) as boundary:
        await boundary.call_tool("desk", "execute_ability", sent)
    assert did(tmp_path) == []
    assert targets(boundary.entries) == [(None, "emcp/insert-row", {"v": 1})]


@STOPPING
async def test_a_target_with_its_server_and_arguments_as_json_text_is_taken_apart(
    tmp_path: Path, mode: WriteMode
) -> None:
    sent = {"name": "github:create_issue", "args_json": '{"title":"T"}'}
    async with attempt(desk(tmp_path), mode=mode) as boundary:
        await boundary.call_tool("desk", "call_tool_write", sent)
    assert did(tmp_path) == []
    assert targets(boundary.entries) == [("github", "create_issue", T)]
    assert boundary.entries[0].arguments == sent


@STOPPING
@pytest.mark.parametrize("tool", ["execute_tool", "strict_execute"])
async def test_arguments_may_be_text_where_the_server_asks_for_an_object(
    tmp_path: Path, tool: str, mode: WriteMode
) -> None:
    async with attempt(desk(tmp_path), mode=mode) as boundary:
        for sent in (T, '{"title":"T"}', "{title:", ""):
            given: Any = {"toolName": "create_note", "arguments": sent}
            await boundary.call_tool("desk", tool, given)
    assert did(tmp_path) == []
    assert targets(boundary.entries) == [
        (None, "create_note", T),
        (None, "create_note", T),
        None,
        (None, "create_note", {}),
    ]
    assert [(entry.unparsed, entry.refused) for entry in boundary.entries] == [
        (False, None),
        (False, None),
        (True, None),
        (False, None),
    ]
    assert boundary.entries[2].arguments == {"toolName": "create_note", "arguments": "{title:"}


@STOPPING
async def test_an_action_is_let_through_by_a_rule_only(tmp_path: Path, mode: WriteMode) -> None:
    calls: list[Any] = [{"action": "list"}, {"action": "delete", "id": 5}]
    async with attempt(desk(tmp_path), mode=mode) as ruled:
        for call in calls:
            await ruled.call_tool("desk", "executions", call)
    assert did(tmp_path) == [("read", "list")]
    assert targets(ruled.entries) == [(None, "delete", {"action": "delete", "id": 5})]
    async with attempt(desk(tmp_path, dispatchers={}), mode=mode) as free:
        for call in calls:
            await free.call_tool("desk", "executions", call)
    assert did(tmp_path) == [("read", "list")]
    assert [entry.arguments for entry in free.entries] == calls


@STOPPING
async def test_a_batch_with_a_write_is_stopped_whole_and_each_write_is_recorded(
    tmp_path: Path, mode: WriteMode
) -> None:
    people = {"toolName": "list_people"}
    writes: list[Any] = [
        {"toolName": "create_person", "arguments": {"name": name}} for name in ("A", "B", "A")
    ]
    async with attempt(desk(tmp_path), mode=mode) as boundary:
        await boundary.call_tool("desk", "run_batch", {"operations": [people, people]})
        await boundary.call_tool("desk", "run_batch", {"operations": [people, *writes]})
        await boundary.call_tool("desk", "run_batch", {"operations": []})
    assert did(tmp_path) == [("read", "list_people")] * 2
    assert [(e.seq, e.call_seq) for e in boundary.entries] == [(0, 1), (1, 1), (2, 1), (3, 2)]
    assert targets(boundary.entries) == [
        (None, "create_person", {"name": "A"}),
        (None, "create_person", {"name": "B"}),
        (None, "create_person", {"name": "A"}),
        None,
    ]
    assert [entry.unparsed for entry in boundary.entries] == [False, False, False, True]


@STOPPING
async def test_what_the_server_would_refuse_is_refused_also_behind_a_dispatcher(
    tmp_path: Path, mode: WriteMode
) -> None:
    no_name: Any = {"toolName": "create_person", "arguments": {"nam": "A"}}
    async with attempt(desk(tmp_path), mode=mode) as boundary:
        own = await boundary.call_tool("desk", "execute_tool", {"tool": "create_person"})
        of_target = await boundary.call_tool("desk", "execute_tool", no_name)
        batch: Any = {"operations": [{"toolName": "touch"}, no_name]}
        of_batch = await boundary.call_tool("desk", "run_batch", batch)
    assert did(tmp_path) == []
    assert own["isError"] is of_target["isError"] is of_batch["isError"] is True
    assert text(own).startswith("Invalid arguments for tool execute_tool: 'toolName'")
    assert text(of_target).startswith("Invalid arguments for tool create_person: 'name'")
    assert [entry.refused for entry in boundary.entries] == ["invalid-arguments"] * 4
    assert [entry.unparsed for entry in boundary.entries] == [True, False, False, False]
    assert targets(boundary.entries)[1:] == [
        (None, "create_person", {"nam": "A"}),
        (None, "touch", {}),
        (None, "create_person", {"nam": "A"}),
    ]


async def test_a_simulated_write_is_answered_by_the_template_of_dispatcher_or_target(
    tmp_path: Path,
) -> None:
    replies = {
        "create_person": {"made": "{{arguments.name}}"},
        "run_batch": {"ran": "{{arguments.operations.0.toolName}}"},
    }
    person: Any = {"toolName": "create_person", "arguments": '{"name": "A"}'}
    spec = desk(tmp_path, replies=replies)
    async with attempt(spec, mode=WriteMode.SIMULATED) as boundary:
        one = await boundary.call_tool("desk", "execute_tool", person)
        batch = await boundary.call_tool("desk", "run_batch", {"operations": [person]})
        other = await boundary.call_tool("desk", "execute_tool", {"toolName": "touch"})
    assert one["structuredContent"] == {"made": "A"}
    assert batch["structuredContent"] == {"ran": "create_person"}
    assert other["structuredContent"]["ok"] is True


async def test_a_stopped_write_needs_no_server(tmp_path: Path) -> None:
    spec = stdio("desk", "python", str(SERVERS / "wild.py"), dispatchers=wild_dispatcher())
    with anyio.fail_after(20):
        async with attempt(spec) as boundary:
            with pytest.raises(ToolCallError):
                await boundary.call_tool("desk", "die", {})
            await boundary.call_tool("desk", "odd", {"tool": "write_item", "arguments": "{}"})
    assert [entry.refused for entry in boundary.entries] == ["invalid-arguments"]
    assert targets(boundary.entries) == [(None, "write_item", {})]


def wild_dispatcher() -> dict[str, Any]:
    return {"odd": {"tool": "tool", "arguments": "arguments"}}


@pytest.mark.lets_writes_through
async def test_unguarded_dispatched_calls_are_recorded_with_their_targets(tmp_path: Path) -> None:
    async with attempt(desk(tmp_path), mode=WriteMode.UNGUARDED) as boundary:
        await boundary.call_tool("desk", "execute_tool", {"toolName": "list_people"})
        await boundary.call_tool("desk", "execute_tool", {"toolName": "touch"})
        await boundary.call_tool("desk", "executions", {"action": 3})
    assert did(tmp_path) == [("read", "list_people"), ("wrote", "touch"), ("wrote", "3")]
    assert targets(boundary.entries) == [(None, "touch", {}), None]
    assert [(e.unclassified, e.unparsed) for e in boundary.entries] == [(True, False), (True, True)]


# Live


@pytest.mark.lets_writes_through
async def test_a_live_write_is_made_and_recorded_with_its_reply(tmp_path: Path) -> None:
    person: Any = {"toolName": "create_person", "arguments": {"name": "A"}}
    async with attempt(desk(tmp_path), mode=WriteMode.LIVE) as boundary:
        await boundary.call_tool("desk", "list_people", {})
        made = await boundary.call_tool("desk", "create_person", {"name": "B"})
        await boundary.call_tool("desk", "execute_tool", person)
        await boundary.call_tool("desk", "execute_tool", {"toolName": "list_people"})
    assert did(tmp_path) == [
        ("read", "list_people"),
        ("wrote", "create_person"),
        ("wrote", "create_person"),
        ("read", "list_people"),
    ]
    assert targets(boundary.entries) == [None, (None, "create_person", {"name": "A"})]
    assert [(e.mode, e.unclassified, e.refused) for e in boundary.entries] == [
        (WriteMode.LIVE, False, None)
    ] * 2
    assert boundary.entries[0].reply == made


async def test_a_live_call_that_cannot_be_read_is_not_made(tmp_path: Path) -> None:
    sent = {"toolName": "create_person", "arguments": "{title:"}
    async with attempt(desk(tmp_path), mode=WriteMode.LIVE) as boundary:
        result = await boundary.call_tool("desk", "execute_tool", sent)
    assert did(tmp_path) == []
    assert result["isError"] is True
    assert "execute_tool was NOT called" in text(result)
    (entry,) = boundary.entries
    assert (entry.unparsed, entry.target, entry.arguments) == (True, None, sent)


@pytest.mark.lets_writes_through
async def test_a_live_write_that_fails_is_recorded_and_is_refused_only_by_the_server(
    tmp_path: Path,
) -> None:
    async with attempt(desk(tmp_path), mode=WriteMode.LIVE) as boundary:
        broken = await boundary.call_tool("desk", "break", {})
        with pytest.raises(ToolCallError):
            await boundary.call_tool("desk", "refuse", {})
        await boundary.call_tool("desk", "create_person", {"nam": "taken all the same"})
        await boundary.call_tool("desk", "nobody_lists_this", {})
    assert [(e.tool, e.refused, e.unclassified) for e in boundary.entries] == [
        ("break", None, False),
        ("refuse", None, False),
        ("create_person", None, False),
        ("nobody_lists_this", None, False),
    ]
    assert boundary.entries[0].reply == broken
    assert boundary.entries[1].reply == {"error": {"code": -32601, "message": "Not that"}}


@pytest.mark.lets_writes_through("wait")
async def test_a_live_call_that_nobody_waits_for_is_in_the_record(tmp_path: Path) -> None:
    async with attempt(desk(tmp_path), mode=WriteMode.LIVE) as boundary:
        with anyio.move_on_after(0.3):
            await boundary.call_tool("desk", "wait", {"seconds": 0.6})
    (entry,) = boundary.entries
    assert (entry.tool, entry.mode, entry.unclassified) == ("wait", WriteMode.LIVE, False)


@pytest.mark.parametrize(
    "mode",
    [
        WriteMode.PLANNED,
        pytest.param(WriteMode.LIVE, marks=pytest.mark.lets_writes_through()),
        pytest.param(WriteMode.SERVER_PLANNED, marks=pytest.mark.lets_writes_through()),
    ],
)
async def test_a_batch_that_is_recorded_in_part_only_is_not_answered_as_done(
    tmp_path: Path, mode: WriteMode
) -> None:
    stored: list[WriteEntry] = []

    def one_fits(entry: WriteEntry) -> None:
        if stored:
            raise OSError(errno.ENOSPC, "No space left on device")
        stored.append(entry)

    sent = {"operations": [{"toolName": "touch"}, {"toolName": "touch"}]}
    async with attempt(desk(tmp_path), mode=mode, sink=one_fits) as boundary:
        with pytest.raises(UnrecordedError) as caught:
            await boundary.call_tool("desk", "run_batch", sent)
        with pytest.raises(UnrecordedError):
            await boundary.call_tool("desk", "list_people", {})
    assert boundary.lost is caught.value
    assert boundary.entries == stored
    assert boundary.calls[0].is_error is True


async def test_one_policy_is_not_kept_for_another_choice_of_dispatchers(tmp_path: Path) -> None:
    sent = {"action": "list"}
    both = (desk(tmp_path), desk(tmp_path, dispatchers=dispatchers(executions={"readTargets": []})))
    seen = []
    for spec in both:
        async with attempt(spec) as boundary:
            await boundary.call_tool("desk", "executions", sent)
        seen.append(len(boundary.entries))
    assert seen == [0, 1]
    assert both[0].policy_identity != both[1].policy_identity
    assert both[0].identity == both[1].identity
