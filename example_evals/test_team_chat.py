"""Eval cases written in Python: the marker says what to do, the body grades what came of it."""

from __future__ import annotations

import pytest
from mcp import Client

from pytest_mst import ClientRequest, FinishedTrial

CONFIG = "team-chat.eval.yaml"


@pytest.fixture(scope="module")
def mst_client():
    async def announcer(request: ClientRequest) -> str:
        news = await request.tools.call_tool("chat", "read_messages", {"channel": "#team"})
        text = news["content"][0]["text"]
        await request.tools.call_tool(
            "chat", "post_message", {"channel": "#team", "text": f"{request.input}: {text}"}
        )
        return "Posted a summary in #team."

    return announcer


@pytest.mark.mst(input="Sum up the day", config=CONFIG, trials=2)
@pytest.mark.writes(server="chat", tool="post_message", arguments={"channel": "#team"})
def test_posts_one_summary(trial: FinishedTrial) -> None:
    posted = trial.writes.one("post_message")
    assert posted.arguments["text"].startswith("Sum up the day")
    assert "Posted" in trial.answer


@pytest.mark.mst(config=CONFIG)
async def test_a_conversation(mst, write_record) -> None:
    first = await mst.run("Monday")
    assert "Posted" in first.answer
    await mst.run("Tuesday")
    assert [entry.tool for entry in write_record] == ["post_message", "post_message"]


@pytest.mark.mst(config=CONFIG)
async def test_an_agent_of_my_own(dry_run_proxy, write_record) -> None:
    async with Client(dry_run_proxy.transport("chat")) as chat:
        await chat.call_tool("create_channel", {"name": "#new"})
    write_record.one("create_channel", arguments={"name": "#new"})
