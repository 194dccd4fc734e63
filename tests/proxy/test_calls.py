"""Calls with dicts through the boundary, against a real process."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.domain.ending import Broke
from pytest_mst.domain.json_value import JsonValue
from pytest_mst.domain.tool_call import ToolCaller, ToolCallError
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.record import UnrecordedError
from tests.proxy.setting import attempt, called, received, text, wild

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("protocol", ["auto", "legacy"])


@ERAS
async def test_a_read_reaches_the_server_and_is_among_the_calls(
    tmp_path: Path, protocol: str
) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(10):
        async with attempt(wild(log=log, protocol=protocol)) as boundary:
            result = await boundary.call_tool("wild", "read_item", {"id": "a"}, join_id="j")
    assert text(result) == '{"id": "a"}'
    assert boundary.entries == []
    (call,) = boundary.calls
    assert (call.tool, call.arguments, call.is_read) == ("read_item", {"id": "a"}, True)
    assert (call.result, call.is_error, call.join_id) == (result, False, "j")


@ERAS
@pytest.mark.parametrize("mode", [WriteMode.PLANNED, WriteMode.SIMULATED, WriteMode.READ_ONLY])
async def test_a_write_is_recorded_and_never_reaches_the_server(
    tmp_path: Path, protocol: str, mode: WriteMode
) -> None:
    log = tmp_path / "log"
    with anyio.fail_after(10):
        async with attempt(wild(log=log, protocol=protocol), mode=mode) as boundary:
            await boundary.call_tool("wild", "read_item", {})
            for name in ("write_item", "make_record", "odd", "nobody_lists_this"):
                try:
                    await boundary.call_tool("wild", name, {"id": "a"}, join_id=name)
                except ToolCallError as error:
                    assert (name, error.code) == ("nobody_lists_this", -32602)  # noqa: PT017
            await boundary.call_tool("wild", "write_item", {"titel": "x"})
    assert called(log) == ["read_item"]
    assert [(e.seq, e.call_seq, e.tool, e.refused) for e in boundary.entries] == [
        (0, 1, "write_item", None),
        (1, 2, "make_record", None),
        (2, 3, "odd", None),
        (3, 4, "nobody_lists_this", "unknown-tool"),
        (4, 5, "write_item", "invalid-arguments"),
    ]
    assert {entry.mode for entry in boundary.entries} == {mode}
    assert boundary.entries[0].join_id == "write_item"
    assert boundary.entries[0].reply == boundary.calls[1].result


async def test_a_tool_that_nobody_lists_is_answered_as_the_server_would() -> None:
    async with attempt(wild()) as boundary:
        with pytest.raises(ToolCallError) as caught:
            await boundary.call_tool("wild", "nope", {})
    assert (caught.value.code, caught.value.message) == (-32602, "Unknown tool: nope")
    (entry,) = boundary.entries
    assert entry.reply == {"error": {"code": -32602, "message": "Unknown tool: nope"}}


async def test_arguments_that_do_not_fit_are_an_error_result_that_names_what_is_wrong() -> None:
    async with attempt(wild(), mode=WriteMode.SIMULATED) as boundary:
        result = await boundary.call_tool("wild", "write_item", {"id": "a", "count": "many"})
    assert result["isError"] is True
    assert "count" in text(result)
    assert "integer" in text(result)


@pytest.mark.parametrize("given", [None, {}])
async def test_arguments_are_forwarded_as_sent_and_recorded_as_an_object(
    tmp_path: Path, given: dict[str, Any] | None
) -> None:
    log = tmp_path / "log"
    async with attempt(wild(log=log, protocol="legacy")) as boundary:
        await boundary.call_tool("wild", "read_item", given)
        await boundary.call_tool("wild", "odd", given)
    (sent,) = (one["params"] for one in received(log) if one.get("method") == "tools/call")
    assert sent == (
        {"name": "read_item"} if given is None else {"name": "read_item", "arguments": {}}
    )
    assert boundary.calls[0].arguments == {}
    assert boundary.entries[0].arguments == {}


async def test_integers_and_text_come_and_go_exactly(tmp_path: Path) -> None:
    log = tmp_path / "log"
    given: dict[str, JsonValue] = {"id": 9007199254740993, "text": "日本語 ✓ 🎉", "lone": "\ud83d"}
    async with attempt(wild(log=log)) as boundary:
        await boundary.call_tool("wild", "read_item", given)
        await boundary.call_tool("wild", "odd", given)
        big = await boundary.call_tool("wild", "big_int", {})
        lone = await boundary.call_tool("wild", "surrogate", {})
    (sent, *_) = (one["params"] for one in received(log) if one.get("method") == "tools/call")
    assert sent["arguments"] == given
    assert boundary.entries[0].arguments == given
    assert big["structuredContent"] == {"id": 1915883588174806058}
    assert text(lone) == "\ud83d"


@ERAS
async def test_what_is_not_protocol_on_standard_output_is_passed_over(protocol: str) -> None:
    with anyio.fail_after(10):
        async with attempt(wild("--banner", protocol=protocol)) as boundary:
            assert await boundary.call_tool("wild", "junk", {}) == {"content": []}
            assert text(await boundary.call_tool("wild", "bad_bytes", {})) == "a\ufffdb"


async def test_a_result_of_five_megabytes_in_one_line_passes() -> None:
    with anyio.fail_after(10):
        async with attempt(wild()) as boundary:
            result = await boundary.call_tool("wild", "big_line", {})
    assert text(result) == "x" * 5_000_000


async def test_standard_error_never_blocks_a_server(tmp_path: Path) -> None:
    given = {"text": "e" * 2**20}
    answers: list[str] = []

    async def call() -> None:
        answers.append(text(await boundary.call_tool("wild", "to_stderr", given)))

    with anyio.fail_after(10):
        async with (
            attempt(wild("--noise-bytes", str(2**18))) as boundary,
            anyio.create_task_group() as tasks,
        ):
            for _ in range(3):
                tasks.start_soon(call)
    assert answers == ["said"] * 3


@ERAS
async def test_the_servers_errors_pass_unchanged(protocol: str) -> None:
    async with attempt(wild(protocol=protocol)) as boundary:
        failed = await boundary.call_tool("wild", "fail", {})
        with pytest.raises(ToolCallError) as refused:
            await boundary.call_tool("wild", "refuse", {})
        with pytest.raises(ToolCallError) as same_code:
            await boundary.call_tool("wild", "same_code", {})
        assert text(await boundary.call_tool("wild", "read_item", {"id": 1})) == '{"id": 1}'
    assert failed["isError"] is True
    assert failed["structuredContent"] == {"error": {"code": "X"}}
    error = refused.value
    assert (error.code, error.message, error.data) == (-32050, "not today", {"why": None})
    assert type(same_code.value) is ToolCallError
    assert [call.is_error for call in boundary.calls] == [True, True, True, False]
    assert boundary.lost is None


async def test_a_call_that_takes_too_long_is_an_error_and_the_attempt_goes_on() -> None:
    with anyio.fail_after(10):
        async with attempt(wild(callTimeoutMs=300)) as boundary:
            with pytest.raises(ToolCallError) as caught:
                await boundary.call_tool("wild", "slow", {"seconds": 0.6})
            await boundary.call_tool("wild", "write_item", {"id": "a"})
    assert caught.value.code == -32001
    assert boundary.lost is None


@pytest.mark.lets_writes_through("write_item", "nobody_lists_this")
async def test_unguarded_calls_are_forwarded_and_what_may_write_is_recorded(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with attempt(wild(log=log), mode=WriteMode.UNGUARDED) as boundary:
        await boundary.call_tool("wild", "read_item", {})
        done = await boundary.call_tool("wild", "write_item", {"titel": "not checked"})
        await boundary.call_tool("wild", "nobody_lists_this", {})
    assert called(log) == ["read_item", "write_item", "nobody_lists_this"]
    assert text(done) == "write_item executed"
    assert [(e.tool, e.unclassified, e.refused, e.mode) for e in boundary.entries] == [
        ("write_item", True, None, WriteMode.UNGUARDED),
        ("nobody_lists_this", True, None, WriteMode.UNGUARDED),
    ]
    assert boundary.entries[0].reply == done


async def test_an_unguarded_call_that_is_cancelled_is_in_the_record() -> None:
    spec = wild(alwaysWriteTools=["slow"])
    async with attempt(spec, mode=WriteMode.UNGUARDED) as boundary:
        with anyio.move_on_after(0.2):
            await boundary.call_tool("wild", "slow", {"seconds": 0.5})
    (entry,) = boundary.entries
    assert (entry.tool, entry.unclassified) == ("slow", True)


@pytest.mark.parametrize(
    "mode",
    [
        WriteMode.PLANNED,
        WriteMode.SIMULATED,
        pytest.param(WriteMode.UNGUARDED, marks=pytest.mark.lets_writes_through("write_item")),
    ],
)
async def test_a_write_that_cannot_be_recorded_is_not_answered_as_done(mode: WriteMode) -> None:
    def full(_entry: WriteEntry) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with attempt(wild(), mode=mode, sink=full) as boundary:
        with pytest.raises(UnrecordedError) as caught:
            await boundary.call_tool("wild", "write_item", {"id": "a"})
        with pytest.raises(UnrecordedError):
            await boundary.call_tool("wild", "read_item", {})
    assert boundary.lost is caught.value
    assert (caught.value.failure.broke, caught.value.failure.retryable) == (Broke.COLLECTION, True)
    assert boundary.entries == []
    assert boundary.calls[0].is_error is True


async def test_the_entry_is_stored_before_the_reply_leaves() -> None:
    stored: list[WriteEntry] = []
    async with attempt(wild(), sink=stored.append) as boundary:
        await boundary.call_tool("wild", "write_item", {"id": "a"})
        assert stored == boundary.entries
        assert len(stored) == 1
    assert stored[0].time.endswith("Z")


async def test_the_record_stays_as_it_was_whatever_the_client_does_to_its_values() -> None:
    arguments = {"id": ""}
    async with attempt(wild()) as boundary:
        for name in ("a", "b"):
            arguments["id"] = name
            reply: Any = await boundary.call_tool("wild", "write_item", arguments)
            reply["content"].clear()
    assert [entry.arguments for entry in boundary.entries] == [{"id": "a"}, {"id": "b"}]
    assert [call.arguments for call in boundary.calls] == [{"id": "a"}, {"id": "b"}]
    assert text(boundary.entries[0].reply).startswith("Planned write")


async def test_a_write_that_nobody_waits_for_before_it_is_decided_is_in_the_record() -> None:
    with anyio.fail_after(10):
        async with attempt(wild("--hang-on-relist")) as boundary:
            await boundary.call_tool("wild", "start_daemon", {})  # so that it is listed anew
            with anyio.move_on_after(0.2):
                await boundary.call_tool("wild", "write_item", {"id": "a"})
    (entry,) = boundary.entries
    assert (entry.tool, entry.arguments, entry.refused) == ("write_item", {"id": "a"}, None)
    assert isinstance(entry.reply, dict)
    assert "nobody waited" in entry.reply["error"]["message"]


@pytest.mark.parametrize("mode", [WriteMode.LIVE, WriteMode.PLANNED, WriteMode.SERVER_PLANNED])
async def test_what_is_decided_after_the_attempt_has_ended_is_neither_made_nor_done(
    tmp_path: Path, mode: WriteMode
) -> None:
    log, refused = tmp_path / "log", list[str]()
    spec = wild("--slow-relist", "0.4", log=log)

    async def let_loose(boundary: Boundary) -> None:
        try:
            await boundary.call_tool("wild", "write_item", {"id": "a"})
        except ToolCallError as error:
            refused.append(error.message)

    with anyio.fail_after(10):
        async with (
            Hub() as hub,
            anyio.create_task_group() as tasks,
            attempt(spec, hub=hub, mode=mode) as boundary,
        ):
            await boundary.call_tool("wild", "start_daemon", {})
            tasks.start_soon(let_loose, boundary)
            while len(boundary.calls) < 2:
                await anyio.lowlevel.checkpoint()
    assert refused == ["The attempt has ended"]
    assert called(log) == ["start_daemon"]
    assert [entry.tool for entry in boundary.entries] == ["write_item"]


@pytest.mark.parametrize("mode", [WriteMode.LIVE, WriteMode.UNGUARDED])
async def test_a_call_that_its_client_has_let_loose_is_recorded_once_and_by_the_end(
    mode: WriteMode,
) -> None:
    answers: list[object] = []

    async def let_loose(boundary: Boundary) -> None:
        with pytest.raises(ToolCallError, match="has ended"):
            answers.append(await boundary.call_tool("wild", "slow", {"seconds": 0.3}))

    with anyio.fail_after(10):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            opened = attempt(wild(alwaysWriteTools=["slow"]), hub=hub, mode=mode)
            async with opened as boundary:
                tasks.start_soon(let_loose, boundary)
                while not boundary.calls:
                    await anyio.lowlevel.checkpoint()
            by_the_end = [(entry.tool, entry.unclassified) for entry in boundary.entries]
    assert by_the_end == [("slow", mode is WriteMode.UNGUARDED)]
    assert len(boundary.entries) == 1
    assert answers == []


async def test_no_call_is_taken_once_the_attempt_has_ended_whoever_takes_limits_off() -> None:
    async with Hub() as hub:
        async with attempt(wild(), hub=hub) as boundary:
            pass
        boundary.guard = None
        for name in ("read_item", "write_item"):
            with pytest.raises(ToolCallError, match="has ended"):
                await boundary.call_tool("wild", name, {"id": "a"})
    assert (boundary.calls, boundary.entries) == ([], [])


async def test_two_servers_with_one_tool_name_are_kept_apart() -> None:
    async with attempt(wild(label="mail_a"), wild(label="mail_b")) as boundary:
        caller: ToolCaller = boundary
        await caller.call_tool("mail_b", "write_item", {"id": "a"})
        with pytest.raises(ToolCallError, match="mail_a, mail_b"):
            await caller.call_tool("mail_c", "write_item", {"id": "a"})
    assert boundary.servers == ("mail_a", "mail_b")
    assert [entry.server for entry in boundary.entries] == ["mail_b"]


@ERAS
async def test_a_tool_that_the_server_adds_is_decided_by_its_own_annotations(
    tmp_path: Path, protocol: str
) -> None:
    log = tmp_path / "log"
    async with attempt(wild(log=log, protocol=protocol)) as boundary:
        await boundary.call_tool("wild", "start_daemon", {})
        assert text(await boundary.call_tool("wild", "list_x", {})) == "list_x executed"
        await boundary.call_tool("wild", "create_x", {})
    assert called(log) == ["start_daemon", "list_x"]
    (entry,) = boundary.entries
    assert (entry.tool, entry.refused) == ("create_x", None)


@pytest.mark.lets_writes_through("odd")
async def test_the_eval_configs_word_overrules_annotations(tmp_path: Path) -> None:
    log = tmp_path / "log"
    spec = wild(log=log, alwaysWriteTools=["read_item", "pid"], readOnlyTools=["odd"])
    async with attempt(spec) as boundary:
        for name in ("read_item", "pid", "odd"):
            await boundary.call_tool("wild", name, {})
    assert called(log) == ["odd"]
    assert [entry.tool for entry in boundary.entries] == ["read_item", "pid"]
