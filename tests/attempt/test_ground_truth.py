"""What a client cannot make up: that it was there, and what failed around it when it was cut."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pytest_mst.clients.client import Client, ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.ending import Broke, InfrastructureFailure, Trial
from tests.attempt.setting import DONE, make, target

pytestmark = pytest.mark.anyio


async def says_done(request: ClientRequest) -> str:
    return "Done, I have written the note."


async def is_given_an_address(request: ClientRequest) -> str:
    request.trace.evidence = "structured"
    await request.session.url("notes")
    return "Done, I have written the note."


async def calls(request: ClientRequest) -> str:
    await request.tools.call_tool("notes", "read_note", None)
    return "done"


async def connects(request: ClientRequest) -> str:
    from mcp import Client as McpClient

    async with McpClient(request.session.transport("notes")) as notes:
        await notes.list_tools()
    seen = request.session.seen("notes")
    assert (seen.way_in, seen.connected, seen.listed, seen.calls) == (True, True, True, 0)
    return "there was nothing to do"


@pytest.mark.parametrize("agent", [says_done, is_given_an_address])
async def test_who_was_never_connected_has_made_no_trial(
    agent: FunctionClient, tmp_path: Path
) -> None:
    made = await make(target(client=FunctionClient(agent)), tmp_path)  # type: ignore[arg-type]
    assert (made.failure.broke, made.failure.retryable) == (Broke.SETUP, True)
    assert "'notes'" in made.failure.reason
    assert made.stored["trace"]["answer"] == "Done, I have written the note."
    assert made.scores == {}


@pytest.mark.parametrize(
    "client", [FunctionClient(calls), FunctionClient(connects), ScriptedClient([DONE])]
)
async def test_who_was_connected_or_cannot_miss_the_boundary_has(
    client: Client, tmp_path: Path
) -> None:
    assert (await make(target(client=client), tmp_path)).ending == Trial()


BUSY = InfrastructureFailure(Broke.PROVIDER, "overloaded (HTTP 529)", retryable=True)


async def waits_for_its_model(request: ClientRequest) -> str:
    request.trace.failing = BUSY
    await anyio.sleep_forever()
    return ""


@pytest.mark.parametrize("options", [{}, {"maxDurationMs": 50}])
async def test_who_is_cut_off_while_the_model_has_no_time_was_kept_by_that(
    options: dict[str, int], tmp_path: Path
) -> None:
    client = FunctionClient(waits_for_its_model)
    made = await make(target(client=client, options=options), tmp_path, timeout_s=1)
    assert (made.failure.broke, made.failure.retryable) == (Broke.PROVIDER, True)
    assert made.failure.reason.endswith(BUSY.reason)
