"""A setting for a test: attempts whose client has one connection for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from mcp import Client as McpClient

from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.job import AttemptJob, Target
from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import TrialVerdict
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter
from pytest_mst.store.connections import unattributed_writes
from tests.attempt.setting import RUN_ID, job, lines_of, target, writer_in

BOUND_S = 30


class OneSession:
    """A client that opens one MCP session, at its first attempt, and keeps it for all others."""

    name = "one-session"
    shares_connection = True

    def __init__(self, acts: Mapping[str, Act], *, over_http: bool = False) -> None:
        self.acts = acts
        self.over_http = over_http
        self.urls: set[str] = set()
        self.sessions: list[Any] = []
        self.boundaries: set[int] = set()
        self._session: McpClient | None = None
        self._opening = anyio.Lock()
        self._close = anyio.Event()
        self._closed = anyio.Event()

    async def serve(self, session: Any, *, task_status: Any) -> None:
        async with AsyncExitStack() as stack:
            way: Any = session.transport("notes")
            if self.over_http:
                way = await session.url("notes")
            opened = McpClient(way, mode="legacy")
            task_status.started(await stack.enter_async_context(opened))
            await self._close.wait()

    async def run(self, request: ClientRequest) -> Trial:
        async with self._opening:
            if self._session is None:
                self.sessions.append(request.session)
                self._session = await self.tasks.start(self.serve, request.session)
        self.boundaries.add(id(request.session))
        if self.over_http:
            self.urls.add(await request.session.url("notes"))
        await self.acts[request.input](Hand(self._session, request))
        request.trace.answer = "done"
        return Trial()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as self.tasks:
            try:
                yield
            finally:
                self._close.set()


class Hand:
    """What one attempt does over the session that all share."""

    def __init__(self, session: McpClient, request: ClientRequest) -> None:
        self.session = session
        self.request = request

    async def write(self, text: str, *, tell: bool = True, join_id: str | None = None) -> None:
        meta: Any = None if join_id is None else {"callId": join_id}
        await self.session.call_tool("write_note", {"text": text}, meta=meta)
        if tell:
            self.tell(text, join_id=join_id)

    def tell(self, text: str, *, join_id: str | None = None) -> None:
        self.request.trace.events.append(
            TraceEvent("write_note", server="notes", arguments={"text": text}, id=join_id)
        )


Act: TypeAlias = Callable[[Hand], Awaitable[None]]


class Meeting:
    """Lets a number of attempts go on once all of them have come."""

    def __init__(self, size: int) -> None:
        self._missing = size
        self._all = anyio.Event()

    async def come(self) -> None:
        self._missing -= 1
        if self._missing <= 0:
            self._all.set()
        await self._all.wait()


class SharedSetting:
    """A hub, a client and a run that attempts are made in."""

    def __init__(
        self, folder: Path, acts: Mapping[str, Act], *, over_http: bool = False, **more: Any
    ) -> None:
        self.writer: RunWriter = writer_in(folder)
        self.client = OneSession(acts, over_http=over_http)
        self.target: Target = target(client=self.client, **more)
        self.finished: dict[str, FinishedAttempt] = {}
        self.hub = Hub()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        with anyio.fail_after(BOUND_S):
            async with self.hub, self.client.at_work():
                yield
        self.writer.close()

    def job(self, case: str, **fields: Any) -> AttemptJob:
        id_ = AttemptId("default", case, 0)
        given = {"expected": {"writes": fields.pop("writes")}} if "writes" in fields else {}
        return job(
            self.target,
            {"id": case, "input": case, **given},
            id=id_,
            locator=locator(RUN_ID, id_),
            **fields,
        )

    async def make(self, case: str, fields: Mapping[str, Any] = {}) -> FinishedAttempt:
        made = await collect(self.job(case, **dict(fields)), self.hub, self.writer)
        self.finished[case] = made
        return made

    async def make_all(self, **cases: Mapping[str, Any]) -> None:
        async with self.open(), anyio.create_task_group() as tasks:
            for case, fields in cases.items():
                tasks.start_soon(self.make, case, fields)

    def texts(self, case: str) -> list[str]:
        return [str(entry.arguments["text"]) for entry in self.finished[case].writes]

    def stored_texts(self, case: str) -> list[str]:
        path = self.writer.layout.writes(AttemptId("default", case, 0))
        return [line["arguments"]["text"] for line in lines_of(path)]

    def nobodys(self) -> list[str]:
        found = unattributed_writes(self.writer.layout, "default")
        assert not found.torn
        return [str(entry.arguments["text"]) for entry in found.entries]

    def verdict(self, case: str) -> TrialVerdict | None:
        return self.finished[case].graded.verdict

    def writes_grade(self, case: str) -> Any:
        return next(one for one in self.finished[case].outcomes if one.grader == "writes")


def expect(*texts: str) -> dict[str, Any]:
    """Say which notes a case expects, and no others."""
    calls = [{"tool": "write_note", "arguments": {"text": text}} for text in texts]
    return {"writes": {"calls": calls, "exclusive": True}}
