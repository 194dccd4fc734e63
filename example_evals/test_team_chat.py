"""Eval cases written in Python: the marker says what to do, the body grades what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client

from pytest_mst import ClientRequest, FinishedTrial, WriteRecord

CONFIG = "team-chat.eval.yaml"


@pytest.fixture(scope="module")
def mst_client() -> object:
    """My own agent, in place of the client that the eval config names."""

    async def announcer(request: ClientRequest) -> str:
        news = await request.tools.call_tool("chat", "read_messages", {"channel": "#team"})
        text = news["content"][0]["text"]
        for channel in ("#team", "#releases"):
            message = {"channel": channel, "text": f"{request.input}: {text}"}
            await request.tools.call_tool("chat", "post_message", message)
        return "Posted a summary in #team and #releases."

    return announcer


@pytest.mark.mst(input="Sum up the day", config=CONFIG, trials=2, tags=["smoke"])
@pytest.mark.writes(server="chat", tool="post_message", arguments={"channel": "#team"})
@pytest.mark.writes(
    server="chat", tool="post_message", arguments={"channel": "#releases"}, exclusive=True
)
def test_posts_in_both_channels(trial: FinishedTrial) -> None:
    in_team = trial.writes.one("post_message", arguments={"channel": "#team"})
    assert str(in_team.arguments["text"]).startswith("Sum up the day")
    assert "Posted" in trial.answer


@pytest.mark.mst(input="Sum up the day", config=CONFIG)
def test_reads_before_it_writes(trial: FinishedTrial) -> None:
    assert [event.name for event in trial.calls()] == [
        "read_messages",
        "post_message",
        "post_message",
    ]
    trial.writes.none("create_channel")


@pytest.mark.mst(config=CONFIG)
async def test_a_conversation(mst: Any, write_record: WriteRecord) -> None:
    monday = await mst.run("Monday")
    assert "Posted" in monday.answer
    await mst.run("Tuesday")
    texts = [str(entry.arguments["text"]) for entry in write_record.matching("post_message")]
    assert [text.split(":")[0] for text in texts] == ["Monday", "Monday", "Tuesday", "Tuesday"]


@pytest.mark.mst(config=CONFIG)
async def test_an_agent_with_a_session_of_its_own(
    dry_run_proxy: Any, write_record: WriteRecord
) -> None:
    async with Client(dry_run_proxy.transport("chat")) as chat:
        await chat.call_tool("create_channel", {"name": "#new"})
    write_record.one("create_channel", arguments={"name": "#new"})
