"""What servers do wrong on the wire, as met in public: no client and no other server suffers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.types import ListRootsResult

from tests.proxy.setting import attempt, received, text, wild
from tests.proxy.ways_in import FRONTS, client_through, raw_through

pytestmark = pytest.mark.anyio

ENDED_WITHIN_S = 30
EVERY_FRONT = pytest.mark.parametrize("front", FRONTS)
TEXT = "日本語 ✓ 🎉"


@EVERY_FRONT
async def test_junk_on_one_servers_output_leaves_the_others_alone(front: str) -> None:
    specs = wild("--banner", label="loud"), wild(label="quiet")
    with anyio.fail_after(ENDED_WITHIN_S):
        async with (
            attempt(*specs) as boundary,
            client_through(boundary, front, "legacy", "loud") as loud,
            client_through(boundary, front, "auto", "quiet") as quiet,
        ):
            listed = await loud.list_tools()
            junk = await loud.call_tool("junk", {})
            read = await quiet.call_tool("read_item", {"id": "a"})
    assert "read_item" in {tool.name for tool in listed.tools}
    assert not junk.is_error
    assert not read.is_error


@EVERY_FRONT
async def test_bytes_that_are_no_utf8_are_replaced_and_the_call_is_there(front: str) -> None:
    with anyio.fail_after(ENDED_WITHIN_S):
        async with (
            attempt(wild()) as boundary,
            raw_through(boundary, front, modern=False, label="wild") as client,
        ):
            answer = await client.ask(1, "tools/call", {"name": "bad_bytes", "arguments": {}})
            again = await client.ask(2, "tools/call", {"name": "read_item", "arguments": {}})
    assert text(answer["result"]) == "a\ufffdb"
    assert "result" in again
    assert [call.tool for call in boundary.calls] == ["bad_bytes", "read_item"]


@pytest.mark.parametrize(("front", "carried"), [("memory", "\ud83d"), ("http", "\ufffd")])
async def test_half_a_surrogate_pair_is_answered_as_far_as_the_front_can_carry_it(
    front: str, carried: str
) -> None:
    with anyio.fail_after(ENDED_WITHIN_S):
        async with (
            attempt(wild()) as boundary,
            raw_through(boundary, front, modern=False, label="wild") as client,
        ):
            answer = await client.ask(1, "tools/call", {"name": "surrogate", "arguments": {}})
    assert text(answer["result"]) == carried


@EVERY_FRONT
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_an_error_that_does_not_fit_the_output_schema_is_seen_as_it_is(
    front: str, era: str
) -> None:
    with anyio.fail_after(ENDED_WITHIN_S):
        async with (
            attempt(wild()) as boundary,
            client_through(boundary, front, era, "wild") as client,
        ):
            await client.list_tools()
            result = await client.call_tool("fail", {})
    assert result.is_error
    assert result.structured_content == {"error": {"code": "X"}}
    assert text(result.model_dump()) == "it is down"


@EVERY_FRONT
async def test_an_older_revision_than_was_asked_for_is_passed_on_at_once(front: str) -> None:
    spec = wild("--era", "legacy", "--revision", "2024-11-05")
    with anyio.fail_after(ENDED_WITHIN_S):
        async with (
            attempt(spec) as boundary,
            client_through(boundary, front, "legacy", "wild") as client,
        ):
            assert client.protocol_version == "2024-11-05"
            result = await client.call_tool("read_item", {"id": "a"})
    assert not result.is_error


def answers_in(log: Path) -> list[dict[str, Any]]:
    return [one for one in received(log) if "method" not in one]


@EVERY_FRONT
async def test_what_a_server_asks_as_soon_as_it_is_met_comes_to_the_client(
    front: str, tmp_path: Path
) -> None:
    async def roots(_context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[])

    log = tmp_path / "log"
    spec = wild("--ask-when-met", log=log)
    with anyio.fail_after(ENDED_WITHIN_S):
        async with (
            attempt(spec) as boundary,
            client_through(boundary, front, "legacy", "wild", list_roots_callback=roots) as client,
        ):
            await client.call_tool("read_item", {})
            while not (told := answers_in(log)):  # noqa: ASYNC110  another process writes the log
                await anyio.sleep(0.01)
    assert [(one["id"], one["result"]) for one in told] == [("when met", {"roots": []})]


async def test_a_relay_carries_every_text_whatever_the_clients_locale_is(tmp_path: Path) -> None:
    with anyio.fail_after(ENDED_WITHIN_S):
        async with attempt(wild()) as boundary:
            relay = await boundary.command("wild")
            environ = {"PATH": os.environ["PATH"], "LC_ALL": "C", **relay.env}
            command = StdioServerParameters(
                command=relay.command, args=list(relay.args), env=environ
            )
            with (tmp_path / "stderr.txt").open("w") as errlog:
                streams = stdio_client(command, errlog=errlog)
                async with Client(streams, mode="legacy") as client:
                    await client.call_tool("read_item", {"text": TEXT})
                    await client.call_tool("write_item", {"id": TEXT})
    (read, write) = boundary.calls
    assert read.arguments == {"text": TEXT}
    assert TEXT in str(read.result)
    assert write.arguments == boundary.entries[0].arguments == {"id": TEXT}
