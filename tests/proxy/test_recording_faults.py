"""Faults in recording: a write that is not in the record gets through nowhere, and is never done.

Over each front, with the record on a real disk: full, or half written when the process is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.domain.ending import Broke
from pytest_mst.domain.write import WriteMode
from pytest_mst.store.append import RunWriter
from pytest_mst.store.read import read_writes
from tests.proxy.servers.recorder import ATTEMPT, layout_in
from tests.proxy.setting import SERVERS, attempt, called
from tests.proxy.ways_in import FRONTS, features, raw_through
from tests.proxy.wire.line import Line, http_line, pipe_line

pytestmark = pytest.mark.anyio

FULL_DISK = Path("/dev/full")
"""Takes no byte: every write fails for want of space."""
ROOT = Path(__file__).parents[2]
CLIENT = {"name": "raw", "version": "1"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
WRITE = {"name": "write_item", "arguments": {"id": "a"}}


@pytest.mark.skipif(not FULL_DISK.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("mode", [WriteMode.PLANNED, WriteMode.SIMULATED])
@pytest.mark.parametrize("front", FRONTS)
async def test_on_a_full_disk_no_write_is_answered_as_done_or_gets_through(
    tmp_path: Path, front: str, mode: WriteMode
) -> None:
    log, layout = tmp_path / "log", layout_in(tmp_path)
    layout.writes(ATTEMPT).parent.mkdir(parents=True)
    layout.writes(ATTEMPT).symlink_to(FULL_DISK)
    with anyio.fail_after(30), RunWriter(layout).write_sink(ATTEMPT) as sink:
        async with (
            attempt(features(log), mode=mode, sink=sink) as boundary,
            raw_through(boundary, front, modern=front == "http") as client,
        ):
            before = await client.ask("r", "tools/call", {"name": "echo", "arguments": {}})
            answers = [await client.ask(n, "tools/call", WRITE) for n in range(3)]
            after = await client.ask("s", "tools/call", {"name": "echo", "arguments": {}})
    assert "result" in before
    assert ["result" in one for one in (*answers, after)] == [False] * 4
    assert "No space left on device" in answers[0]["error"]["message"]
    assert called(log) == ["echo"]
    assert boundary.entries == []
    assert boundary.lost is not None
    assert boundary.lost.failure.broke is Broke.COLLECTION


@contextmanager
def recorder(folder: Path, front: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a proxy that will be killed as it records; gives how to come in."""
    command = [sys.executable, str(SERVERS / "recorder.py"), str(folder), front]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline() or "{}")
        finally:
            process.kill()


async def heard_after_a_write(line: Line) -> list[str]:
    """Write, and give all that is heard until the connection ends."""
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    await line.send(hello)
    assert '"result"' in await line.receive()
    await line.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": WRITE})
    heard = []
    with suppress(anyio.EndOfStream, anyio.IncompleteRead):
        while True:
            heard.append(await line.receive())
    return heard


@pytest.mark.parametrize("front", FRONTS)
async def test_a_proxy_that_is_killed_as_it_records_has_answered_nothing(
    tmp_path: Path, front: str
) -> None:
    heard: list[str] = []
    with anyio.fail_after(30), recorder(tmp_path, front) as (process, way_in):
        if front == "http":
            with suppress(ExceptionGroup):
                async with http_line(way_in["url"]) as line:
                    heard = await heard_after_a_write(line)
        elif front == "relay":
            environ = {**os.environ, **way_in["env"]}
            async with pipe_line(way_in["command"], environ, tmp_path) as line:
                heard = await heard_after_a_write(line)
        else:
            assert way_in == {}
        assert await anyio.to_thread.run_sync(process.wait) == -9
    assert heard == []
    assert called(tmp_path / "log") == []
    record = layout_in(tmp_path).writes(ATTEMPT)
    assert record.read_text().startswith('{"format":"mst.write/v1","seq":0,')
    assert not record.read_text().endswith("\n")
    assert read_writes(layout_in(tmp_path), ATTEMPT).entries == ()
