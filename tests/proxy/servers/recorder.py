"""A proxy in a process of its own that is killed in the middle of recording a write.

Run as a program: `python recorder.py FOLDER FRONT`. It stands before the server that uses every
feature, and says on its standard output, as a line of JSON, how to come in. For the in-memory
front it makes the call itself, and says so if it is ever answered.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.store.append import RunWriter
from pytest_mst.store.layout import RunLayout
from tests.proxy.setting import attempt
from tests.proxy.ways_in import features

ATTEMPT = AttemptId("default", "case", 0)


def layout_in(folder: Path) -> RunLayout:
    return RunLayout(folder, "killed", "20261130T094500Z-7f3c2a")


def say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def die_in_the_middle_of_a_write() -> None:
    """Have the process killed once half of the first entry is in the record."""
    write = os.write

    def half(fd: int, data: bytes) -> int:
        if not data.startswith(b'{"format":"mst.write'):
            return write(fd, data)
        write(fd, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    os.write = half  # type: ignore[assignment]  # the kernel's word for it is positional


async def offer(boundary: Boundary, front: str) -> None:
    match front:
        case "memory":
            async with Client(boundary.transport("features"), mode="legacy") as client:
                die_in_the_middle_of_a_write()
                result = await client.call_tool("write_item", {"id": "a"})
                say(answered=str(result))
        case "http":
            url = await boundary.url("features")
            die_in_the_middle_of_a_write()
            say(url=url)
        case _:
            relay = await boundary.command("features")
            die_in_the_middle_of_a_write()
            say(command=[relay.command, *relay.args], env=dict(relay.env))
    await anyio.sleep(30)


async def main(folder: Path, front: str) -> None:
    with RunWriter(layout_in(folder)).write_sink(ATTEMPT) as sink:
        spec = features(folder / "log")
        async with attempt(spec, mode=WriteMode.SIMULATED, sink=sink) as boundary:
            await offer(boundary, front)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2])
