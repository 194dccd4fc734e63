"""What the protocol offers, through each way in and in both eras: the way in decides nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.types import (
    CreateMessageResult,
    ElicitResult,
    ListRootsResult,
    Root,
    TextContent,
)

from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from tests.proxy.setting import attempt, called, received, wild
from tests.proxy.ways_in import (
    FRONTS,
    client_through,
    features,
    raw_through,
    streams_through,
    times_cancelled,
    until,
)

pytestmark = pytest.mark.anyio
EACH_FRONT = pytest.mark.parametrize("front", FRONTS)
BOTH_ERAS = pytest.mark.parametrize("modern", [True, False], ids=["modern", "legacy"])
BOUND_S = 30
FORM = {"type": "object", "properties": {}}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@asynccontextmanager
async def opened(log: Path, *flags: str) -> AsyncIterator[Boundary]:
    with anyio.fail_after(BOUND_S):
        async with attempt(features(log, *flags)) as boundary:
            yield boundary


def mode(*, modern: bool) -> str:
    return "auto" if modern else "legacy"


def words(result: Any) -> Any:
    return json.loads(result.content[0].text)


@EACH_FRONT
@BOTH_ERAS
async def test_reads_pass_and_writes_are_stopped_and_recorded(
    log: Path, front: str, *, modern: bool
) -> None:
    async with (
        opened(log) as boundary,
        client_through(boundary, front, mode(modern=modern)) as client,
    ):
        tools = await client.list_tools()
        read = await client.call_tool("echo", {"a": None})
        write = await client.call_tool("write_item", {"id": "a"})
        failed = await client.call_tool("fail", {})
        with pytest.raises(MCPError) as refused:
            await client.call_tool("refuse", {})
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("no_such_tool", {})
        version = client.protocol_version
    assert version == ("2026-07-28" if modern else "2025-11-25")
    assert len(tools.tools) == 11
    assert read.structured_content == {"a": None}
    assert not write.is_error
    assert failed.is_error
    assert (refused.value.code, refused.value.data) == (-32050, {"why": None})
    assert unknown.value.code == -32602
    assert called(log) == ["echo", "fail", "refuse"]
    assert [(one.tool, one.refused) for one in boundary.entries] == [
        ("write_item", None),
        ("no_such_tool", "unknown-tool"),
    ]


@EACH_FRONT
async def test_a_client_falls_back_to_the_era_that_the_server_speaks(log: Path, front: str) -> None:
    async with (
        opened(log, "--legacy") as boundary,
        client_through(boundary, front, "auto") as client,
    ):
        await client.call_tool("echo", {})
        version = client.protocol_version
    assert version == "2025-11-25"


async def test_a_client_that_insists_on_the_newer_era_is_told_what_there_is(log: Path) -> None:
    async with (
        opened(log, "--legacy") as boundary,
        client_through(boundary, "http", "2026-07-28") as client,
    ):
        with pytest.raises(MCPError) as caught:
            await client.list_tools()
    assert caught.value.code == -32022
    assert caught.value.error.data["supported"][-1] == "2025-11-25"


@EACH_FRONT
@BOTH_ERAS
async def test_unknown_fields_and_the_clients_own_join_id_pass(
    log: Path, front: str, *, modern: bool
) -> None:
    async with (
        opened(log) as boundary,
        raw_through(boundary, front, modern=modern) as client,
    ):
        listed = await client.ask(1, "tools/list", {})
        meta = {"claudecode/toolUseId": "toolu_1", "x-mine": None}
        params = {"name": "echo", "arguments": {"a": [None]}, "x-more": {"b": None}, "_meta": meta}
        answer = await client.ask("two", "tools/call", params)
        write = await client.ask(3, "tools/call", {"name": "write_item", "_meta": meta})
    assert listed["result"]["tools"][0]["x-unknown"] == {"kept": None}
    assert listed["result"]["x-page"] is None
    assert answer["id"] == "two"
    assert answer["result"]["x-unknown"] == [None]
    assert answer["result"]["structuredContent"] == {"a": [None]}
    assert write["result"] == boundary.entries[0].reply
    assert boundary.entries[0].join_id == "toolu_1"
    sent = next(one["params"] for one in received(log) if one.get("method") == "tools/call")
    assert sent["x-more"] == {"b": None}
    assert sent["_meta"]["x-mine"] is None


@EACH_FRONT
@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create"])
async def test_a_server_of_the_older_era_can_ask_the_client(
    log: Path, front: str, method: str
) -> None:
    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root.model_validate({"uri": "file:///r"})])

    async def sample(_context: Any, _params: Any) -> CreateMessageResult:
        said = TextContent(type="text", text="sampled")
        return CreateMessageResult(role="assistant", content=said, model="m")

    async def elicit(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann"})

    params: dict[str, Any] = {
        "roots/list": {},
        "sampling/createMessage": {"messages": [], "maxTokens": 5},
        "elicitation/create": {"message": "Who?", "requestedSchema": FORM},
    }
    async with (
        opened(log) as boundary,
        client_through(
            boundary,
            front,
            "legacy",
            list_roots_callback=roots,
            sampling_callback=sample,
            elicitation_callback=elicit,
        ) as client,
    ):
        asked = {"method": method, "params": params[method]}
        answer = words(await client.call_tool("ask", asked))
    answers = {
        "roots/list": lambda: answer["roots"][0]["uri"] == "file:///r",
        "sampling/createMessage": lambda: answer["content"]["text"] == "sampled",
        "elicitation/create": lambda: answer["content"] == {"name": "Ann"},
    }
    assert answers[method](), answer


@EACH_FRONT
async def test_what_a_server_of_the_newer_era_needs_to_know_passes_as_data(
    log: Path, front: str
) -> None:
    async def elicit(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "Ann"})

    async with (
        opened(log) as boundary,
        client_through(boundary, front, "auto", elicitation_callback=elicit) as client,
    ):
        answered, state = words(await client.call_tool("need", {}))
    assert answered["who"]["content"] == {"name": "Ann"}
    assert state == "s1"


@EACH_FRONT
@BOTH_ERAS
async def test_progress_comes_before_the_answer_under_the_clients_token(
    log: Path, front: str, *, modern: bool
) -> None:
    async with (
        opened(log) as boundary,
        raw_through(boundary, front, modern=modern) as client,
    ):
        meta = {"progressToken": "mine"}
        answer = await client.ask(1, "tools/call", {"name": "work", "_meta": meta})
    assert [one["params"] for one in client.notifications] == [
        {"progressToken": "mine", "progress": step, "total": 2, "x": None} for step in (1, 2)
    ]
    assert answer["result"]["content"][0]["text"] == "worked"


@EACH_FRONT
@BOTH_ERAS
async def test_what_the_client_cancels_is_cancelled_at_the_server(
    log: Path, front: str, *, modern: bool
) -> None:
    async with (
        opened(log) as boundary,
        client_through(boundary, front, mode(modern=modern)) as client,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "wait", {})
            await until(log, "tools/call")
            tasks.cancel_scope.cancel()
        await until(log, "notifications/cancelled")
        after = await client.call_tool("echo", {"a": 1})
    assert times_cancelled(log) == 1
    assert after.structured_content == {"a": 1}


@EACH_FRONT
@BOTH_ERAS
async def test_log_lines_come_to_the_client(log: Path, front: str, *, modern: bool) -> None:
    meta = {"_meta": {"io.modelcontextprotocol/logLevel": "info"}} if modern else {}
    async with (
        opened(log) as boundary,
        raw_through(boundary, front, modern=modern) as client,
    ):
        await client.ask(1, "tools/call", {"name": "say", **meta})
    assert [one["params"] for one in client.notifications] == [
        {"level": "info", "data": {"kept": None}}
    ]


@EACH_FRONT
async def test_changes_are_told_to_a_client_that_listens_for_them(log: Path, front: str) -> None:
    async with (
        opened(log) as boundary,
        client_through(boundary, front, "auto") as client,
        client.listen(tools_list_changed=True, resource_subscriptions=["x://y"]) as events,
    ):
        await client.call_tool("change", {})
        changed = await anext(events)
        await client.call_tool("touch", {"uri": "x://y"})
        updated = await anext(events)
    assert type(changed).__name__ == "ToolsListChanged"
    assert updated.uri == "x://y"  # type: ignore[union-attr]  # a resource's update, as asserted


@EACH_FRONT
async def test_changes_are_told_to_a_client_of_the_older_era(log: Path, front: str) -> None:
    send, heard = anyio.create_memory_object_stream[str](10)

    async def hear(message: object) -> None:
        await send.send(str(getattr(message, "method", message)))

    async with (
        opened(log) as boundary,
        client_through(boundary, front, "legacy", message_handler=hear) as client,
    ):
        await client.call_tool("change", {})
        changed = await heard.receive()
        await client.call_tool("touch", {"uri": "x://y"})
        updated = await heard.receive()
    send.close()
    heard.close()
    assert changed == "notifications/tools/list_changed"
    assert updated == "notifications/resources/updated"


@EACH_FRONT
@BOTH_ERAS
async def test_large_payloads_pass_both_ways(log: Path, front: str, *, modern: bool) -> None:
    text = "x" * 5_000_000
    async with (
        opened(log) as boundary,
        raw_through(boundary, front, modern=modern) as client,
    ):
        params = {"name": "echo", "arguments": {"text": text}}
        answer = await client.ask(1, "tools/call", params)
        write = {"name": "write_item", "arguments": {"text": text}}
        await client.ask(2, "tools/call", write)
    assert answer["result"]["structuredContent"]["text"] == text
    assert boundary.entries[0].arguments == {"text": text}


@EACH_FRONT
@pytest.mark.parametrize("meta", ["text", [1]], ids=repr)
async def test_what_is_no_object_where_one_should_be_hides_no_call(front: str, meta: Any) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            attempt(wild()) as boundary,
            raw_through(boundary, front, modern=False, label="wild") as client,
        ):
            for name in ("read_item", "write_item"):
                call = {"name": name, "arguments": {"id": "a"}, "_meta": meta}
                assert "result" in await client.ask(name, "tools/call", call)
    assert [call.tool for call in boundary.calls] == ["read_item", "write_item"]
    assert [entry.tool for entry in boundary.entries] == ["write_item"]


@EACH_FRONT
async def test_a_server_that_dies_in_a_call_is_an_error_and_the_session_goes_on(front: str) -> None:
    with anyio.fail_after(BOUND_S):
        async with (
            attempt(wild()) as boundary,
            client_through(boundary, front, "auto", "wild") as client,
        ):
            with pytest.raises(MCPError, match="status 3") as caught:
                await client.call_tool("die", {})
            again = await client.call_tool("read_item", {"id": "b"})
    assert caught.value.code == -32000
    assert not again.is_error


ATTEMPTS = 64
CALLS = 4


async def test_overlapping_attempts_each_have_all_of_their_own_writes_and_no_others(
    log: Path,
) -> None:
    """A quarter of them comes in each way: HTTP in both eras, a relay, memory."""
    spec = wild(log=log)
    ways = [("http", "auto"), ("http", "legacy"), ("relay", "auto"), ("memory", "legacy")]
    finished: dict[int, Boundary] = {}

    async def one(number: int) -> None:
        front, era = ways[number % len(ways)]
        async with attempt(spec, hub=hub, trial_id=str(number)) as boundary:
            async with streams_through(boundary, front, "wild") as _:
                pass  # one that connects and says nothing
            async with client_through(boundary, front, era, "wild") as client:
                for turn in range(CALLS):
                    await client.call_tool("read_item", {"id": f"{number}"})
                    await client.call_tool("write_item", {"id": f"{number}.{turn}"})
            finished[number] = boundary

    with anyio.fail_after(100):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            for number in range(ATTEMPTS):
                tasks.start_soon(one, number)
    assert len(finished) == ATTEMPTS
    for number, boundary in finished.items():
        assert [(entry.seq, entry.arguments) for entry in boundary.entries] == [
            (turn, {"id": f"{number}.{turn}"}) for turn in range(CALLS)
        ]
        assert len(boundary.calls) == 2 * CALLS
    assert set(called(log)) == {"read_item"}
    assert len(called(log)) == ATTEMPTS * CALLS
