"""Clients that put into their trace what is no part of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import Broke
from tests.attempt.setting import make, target

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
