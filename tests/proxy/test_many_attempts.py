"""Many attempts at once on one shared server: each keeps to itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from pytest_mst.proxy import schema
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import Isolation
from tests.proxy.servers.wild import ITEM, RECORD
from tests.proxy.setting import attempt, called, wild

pytestmark = pytest.mark.anyio
ATTEMPTS = 64
CALLS = 5


async def test_every_entry_is_in_its_own_attempts_record(tmp_path: Path) -> None:
    log = tmp_path / "log"
    spec = wild(log=log)
    finished: dict[int, Boundary] = {}

    async def one(number: int) -> None:
        async with attempt(spec, hub=hub, trial_id=str(number)) as boundary:
            if number % 4 == 0:
                async with Client(boundary.transport("wild"), mode="auto") as client:
                    for turn in range(CALLS):
                        await client.call_tool("read_item", {"id": f"{number}"})
                        await client.call_tool("write_item", {"id": f"{number}.{turn}"})
            else:
                for turn in range(CALLS):
                    await boundary.call_tool("wild", "read_item", {"id": f"{number}"})
                    await boundary.call_tool("wild", "write_item", {"id": f"{number}.{turn}"})
            finished[number] = boundary

    with anyio.fail_after(40):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            for number in range(ATTEMPTS):
                tasks.start_soon(one, number)
    assert len(finished) == ATTEMPTS
    for number, boundary in finished.items():
        assert [(e.seq, e.call_seq, e.arguments) for e in boundary.entries] == [
            (turn, 2 * turn + 1, {"id": f"{number}.{turn}"}) for turn in range(CALLS)
        ]
    assert set(called(log)) == {"read_item"}
    assert len(called(log)) == ATTEMPTS * CALLS


async def test_attempts_of_another_group_get_a_server_of_their_own() -> None:
    async with Hub() as hub:
        pids = set()
        for group in ("a", "b", "a"):
            plain = wild()
            spec = type(plain)(plain.label, plain.config, plain.base_dir, group=group)
            async with attempt(spec, hub=hub) as boundary:
                pids.add(str(await boundary.call_tool("wild", "pid", {})))
    assert len(pids) == 2


@pytest.mark.parametrize("isolation", ["attempt", "variant"])
async def test_schemas_are_compiled_once_however_many_attempts_there_are(
    isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[object] = []
    original = schema._compile

    def counted(one: dict[str, Any]) -> Any:
        compiled.append(one)
        return original(one)

    monkeypatch.setattr(schema, "_compile", counted)
    spec = wild()
    async with Hub() as hub:
        for _ in range(3):
            async with attempt(spec, hub=hub, isolation=isolation) as boundary:
                await boundary.call_tool("wild", "make_record", {"id": "a"})
    assert compiled == [ITEM, RECORD]
