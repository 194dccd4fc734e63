"""Every message of a server's, directly against through the proxy: byte for byte the same.

One raw client asks the same of a server it has started itself and of the proxy, over each front.
Over the relay, and over HTTP in the older era, what came is compared as the bytes that it was;
where a front hands over objects, or where the SDK writes JSON its own way, as the text that the
same `json` makes of both: still the same keys in the same order, the same kinds of numbers, the
same characters. What may differ is in `exceptions.py`, with the reason.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from pytest_mst.local.child import SAFE_ENVIRONMENT
from pytest_mst.proxy.boundary import Boundary
from tests.proxy.setting import attempt, stdio
from tests.proxy.wire.conversation import Ask, Conversation, Era, Heard
from tests.proxy.wire.exceptions import VARIES, Varies, differing, without_what_varies
from tests.proxy.wire.line import Line, MemoryLine, http_line, pipe_line
from tests.proxy.wire.npm import NotThereError, install
from tests.proxy.wire.servers import ALL, RealServer

pytestmark = pytest.mark.anyio

Front = Literal["memory", "relay", "http"]
FRONTS: tuple[Front, ...] = ("memory", "relay", "http")
ENDED_WITHIN_S = 90
STOPPED = ("NOT executed", "Invalid arguments for tool")


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs from npm are; what needs them is skipped where they cannot be had."""
    cache = getattr(request.config, "cache", None)
    kept = cache.mkdir("servers-from-npm") if cache is not None else None
    try:
        return install(kept or tmp_path_factory.getbasetemp().parent / "servers-from-npm")
    except NotThereError as error:
        pytest.skip(str(error))


class Running:
    """A server, how it is started, and its folder: the same for all, since answers name it."""

    def __init__(self, server: RealServer, era: Era, folder: Path, programs: Path | None) -> None:
        self.server, self.era, self.folder = server, era, folder
        self.asked = server.asked(folder)
        self.env = {name: server.filled(value, folder) for name, value in server.env.items()}
        self.args = [server.filled(one, folder) for one in server.args]
        self.answers = json.loads(server.filled(json.dumps(dict(server.answers)), folder))
        if programs is not None:
            self.command = [str(programs / server.program)]
        elif server.program.endswith(".py"):
            self.command = ["python", server.program]
        else:
            self.command = ["python", "-m", server.program]

    async def talk(self, line: Line) -> Heard:
        conversation = Conversation(line, self.era, self.answers, self.server.capabilities)
        return await conversation.hold(self.asked)

    async def directly(self) -> Heard:
        """Talk to the server itself."""
        self.server.prepare(self.folder)
        kept = {name: os.environ[name] for name in SAFE_ENVIRONMENT if name in os.environ}
        program, *args = [*self.command, *self.args]
        command = [sys.executable if program == "python" else program, *args]
        async with pipe_line(command, kept | self.env, self.folder) as line:
            return await self.talk(line)

    @asynccontextmanager
    async def behind_the_proxy(self) -> AsyncIterator[Boundary]:
        protocol = "auto" if self.server.is_modern else "legacy"
        config: dict[str, Any] = {"env": self.env, "protocol": protocol, **self.server.config}
        name = self.server.name
        spec = stdio(name, *self.command, *self.args, base_dir=self.folder, **config)
        async with attempt(spec) as boundary:
            yield boundary


@asynccontextmanager
async def line_of(
    front: Front, boundary: Boundary, label: str, folder: Path
) -> AsyncIterator[Line]:
    match front:
        case "memory":
            async with boundary.transport(label) as streams:
                yield MemoryLine(streams)
        case "http":
            async with http_line(await boundary.url(label)) as line:
                yield line
        case "relay":
            relay = await boundary.command(label)
            command = [relay.command, *relay.args]
            async with pipe_line(command, {**os.environ, **relay.env}, folder) as line:
                yield line


def cases() -> list[Any]:
    return [
        pytest.param(server, era, id=f"{server.name}-{era}")
        for server in ALL
        for era in ("legacy", "modern")
        if era == "legacy" or server.is_modern
    ]


@pytest.mark.parametrize(("server", "era"), cases())
async def test_only_stopped_writes_and_named_exceptions_differ(
    server: RealServer, era: Era, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    programs = request.getfixturevalue("programs") if server.from_npm else None
    running = Running(server, era, tmp_path, programs)
    with anyio.fail_after(ENDED_WITHIN_S):
        direct = await running.directly()
        writes = non_reads(direct, server)
        stopped = [one for one in running.asked if one.tool in writes]
        async with running.behind_the_proxy() as boundary:
            for front in FRONTS:
                server.prepare(running.folder)
                before, recorded = contents(running.folder), len(boundary.entries)
                async with line_of(front, boundary, server.name, running.folder) as line:
                    through = await running.talk(line)
                assert contents(running.folder) == before, front
                entries = boundary.entries[recorded:]
                assert [one.tool for one in entries if one.refused != "unknown-tool"] == [
                    one.tool for one in stopped
                ], front
                both = texts(server, era, front, direct, through)
                compare(server, front, running.asked, stopped, both)


def texts(
    server: RealServer, era: Era, front: Front, direct: Heard, through: Heard
) -> tuple[dict[str, str], dict[str, str]]:
    """Give what was heard as texts that are to be equal; notes what varies in both."""
    escapes = front == "http" and era == "modern"  # the SDK writes these bodies as ASCII
    anew = escapes or not through.keeps_bytes or not server.is_compact
    seen: tuple[set[Varies], set[Varies]] = set(), set()
    first, second = (
        {
            what: without_what_varies(server.name, text, found)
            for what, text in heard.parts(anew=anew).items()
        }
        for heard, found in zip((direct, through), seen, strict=True)
    )
    assert seen[0] == seen[1] == {one for one in VARIES if server.name in one.servers}
    return first, second


def compare(
    server: RealServer,
    front: Front,
    asked: Sequence[Ask],
    stopped: Sequence[Ask],
    both: tuple[dict[str, str], dict[str, str]],
) -> None:
    """Check that exactly those answers differ that are known to, each in its own way."""
    direct, through = both
    named = differing(server.name, front, [one.what for one in asked])
    differ = {what for what in {*direct, *through} if direct.get(what) != through.get(what)}
    expected = {one.what for one in stopped} | {*named}
    unknown = sorted(differ - expected)
    shown = [f"{what}\n  {direct.get(what)!r}\n  {through.get(what)!r}" for what in unknown[:5]]
    assert not unknown, "\n".join([front, *shown])
    assert expected - differ == set(), f"{front}: these are named as different and are not"
    for one in stopped:
        assert any(words in through[one.what] for words in STOPPED), through[one.what]
    for what, exception in named.items():
        assert re.search(exception.through, through.get(what, "")), (front, through.get(what))
        assert bool(exception.through) == (what in through)


def non_reads(direct: Heard, server: RealServer) -> set[str]:
    """Name the tools that are no reads, by the list that the server itself gave."""
    listed = json.loads(direct.answers["tools"]["result"])["tools"]
    assert listed
    return {
        one["name"]
        for one in listed
        if not (one.get("annotations") or {}).get("readOnlyHint")
        and one["name"] not in server.config.get("readOnlyTools", ())
    }


def contents(folder: Path) -> dict[str, bytes]:
    """Read everything that a server could have written; git's index also changes when it reads."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("index", "stderr.txt")
    }
