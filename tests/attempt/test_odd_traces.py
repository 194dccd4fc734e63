"""Clients that put into their trace what is no part of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.collect import collect
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import RUN_ID, job, make, target, writer_in

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("events", "request.trace.events holds dict"),
        ("answer", "request.trace.answer is list"),
    ],
)
async def test_what_is_no_part_of_a_trace_is_a_failure_of_the_client(
    tmp_path: Path, name: str, said: str
) -> None:
    async def agent(request: ClientRequest) -> None:
        log: Any = request.trace
        await request.tools.call_tool("notes", "read_note", None)
        if name == "events":
            log.events.append({"name": "read_note"})
        else:
            log.answer = ["read_note"]

    made = await make(target(client=FunctionClient(agent)), tmp_path)
    assert made.failure.broke is Broke.CLIENT_APP
    assert said in made.failure.reason
    assert made.stored["trace"]["answer"] is None
    assert made.journal == ["begun", "ended"]


@pytest.mark.parametrize("odd", [None, 5, "read_note", [{"name": "read_note"}]])
async def test_an_odd_trace_of_a_client_that_fails_loses_no_attempt(
    tmp_path: Path, odd: object
) -> None:
    async def agent(request: ClientRequest) -> None:
        log: Any = request.trace
        log.events = odd
        log.answer = ["read_note"]
        msg = "lost my way"
        raise ValueError(msg)

    made = await make(target(client=FunctionClient(agent)), tmp_path)
    assert "lost my way" in made.failure.reason
    assert made.journal == ["begun", "ended"]


class Untidy:
    """A client with one connection whose first attempt leaves no list of events."""

    name = "untidy"
    shares_connection = True

    def __init__(self) -> None:
        self.both_under_way = anyio.Event()

    async def run(self, request: ClientRequest) -> Trial:
        if request.trial == 0:
            log: Any = request.trace
            log.events = None
            await self.both_under_way.wait()
        else:
            self.both_under_way.set()
            await request.session.call_tool("notes", "write_note", {"text": "hi"})
        return Trial()


async def test_an_odd_trace_holds_up_no_attempt_on_the_same_connection(tmp_path: Path) -> None:
    """The one that wrote waits until the other has ended, which it does."""
    put_to, writer = target(client=Untidy()), writer_in(tmp_path)
    endings: dict[int, Ending] = {}

    async def one(trial: int) -> None:
        at = AttemptId("default", "c", trial)
        attempt = job(put_to, id=at, locator=locator(RUN_ID, at))
        endings[trial] = (await collect(attempt, hub, writer)).record.ending

    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(one, 0)
            tasks.start_soon(one, 1)
    assert isinstance(endings[0], InfrastructureFailure)
    assert "request.trace.events is NoneType" in endings[0].reason
    assert endings[1] == Trial()
