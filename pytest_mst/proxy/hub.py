"""The proxy of one process: it owns the connections to servers and opens attempts' boundaries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio
from anyio.abc import TaskGroup

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.eval_config import StdioServer
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.write import WriteEntry
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.fronts import Fronts
from pytest_mst.proxy.gate import Gate
from pytest_mst.proxy.http_front import HttpFront
from pytest_mst.proxy.kept import Kept
from pytest_mst.proxy.own_connection import call_own
from pytest_mst.proxy.policy import ReplyError
from pytest_mst.proxy.policy_shelf import PolicyShelf
from pytest_mst.proxy.pool import Pool
from pytest_mst.proxy.record import CallRecord
from pytest_mst.proxy.relay_front import RelayFront
from pytest_mst.proxy.sdk_import import import_sdk
from pytest_mst.proxy.session_front import Session
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import AttemptServer, ServerListing, UpstreamSpec

_Kind = TypeVar("_Kind", bound=Boundary)
_NOT_ENTERED = "the hub is not entered: use `async with Hub() as hub`"


class Hub:
    """Connections to servers and the boundaries before them; one for each process.

    An async context manager, entered in the event loop that all its attempts run in. No import of
    the MCP SDK is needed for servers over stdio and calls with dicts.
    """

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None
        self.kept = Kept(None)
        """What stays open until the hub is closed."""
        self._pool: Pool | None = None
        self._fronts: tuple[HttpFront, RelayFront] | None = None
        self._shelf = PolicyShelf()

    async def __aenter__(self) -> Self:
        self._tasks = await anyio.create_task_group().__aenter__()
        self.kept = Kept(self._tasks)
        self._pool = Pool(self._tasks)
        self._fronts = HttpFront(self._tasks), RelayFront(self._tasks)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End every connection; what was raised inside goes on as it is, in no group."""
        if self._tasks is None:
            return
        with anyio.CancelScope(shield=True):
            await self.kept.close()
            for front in self._outer_fronts:
                await front.stop()
            await self._ready_pool.close()
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def prespawn(self, specs: Sequence[UpstreamSpec], *, sessions: bool = False) -> None:
        """Begin to start servers, and return at once.

        Args:
            specs: servers that attempts are about to need.
            sessions: whether clients will want MCP sessions (`Boundary.transport`); the SDK is
                then imported beside the servers' own start, in a thread.

        """
        for spec in specs:
            self._ready_pool.begin(spec)
        needs_sdk = sessions or not all(isinstance(spec.config, StdioServer) for spec in specs)
        if needs_sdk and self._tasks is not None:
            self._tasks.start_soon(import_sdk)

    async def list_tools(self, spec: UpstreamSpec, *, fresh: bool = False) -> ServerListing:
        """List a server's tools, all pages; kept until the server says that they changed.

        Args:
            spec: the server.
            fresh: ask again, whatever is known.

        Raises:
            ServerUnavailableError: the server cannot be started, reached or listed.

        """
        upstream = await self._ready_pool.shared(spec)
        return await upstream.listing(fresh=fresh)

    async def call_own(
        self, spec: UpstreamSpec, tool: str, arguments: JsonObject, *, limit_s: float
    ) -> Mapping[str, Any]:
        """Call a tool through a connection of our own, past every boundary; see `call_own`.

        Raises:
            OwnCallError: there is no result.

        """
        return await call_own(self._ready_pool, spec, tool, arguments, limit_s=limit_s)

    @asynccontextmanager
    async def open_attempt(
        self,
        servers: Mapping[str, AttemptServer],
        sink: Callable[[WriteEntry], None],
        *,
        trial_id: str = "",
    ) -> AsyncIterator[Boundary]:
        """Open the boundary of one attempt: every server reached and listed, before it acts.

        Args:
            servers: the attempt's servers by label.
            sink: stores an entry of the write record before it returns; raises `StoreError` or
                `OSError` where it cannot.
            trial_id: what `{{trial.id}}` stands for in the templates of simulated replies.

        Raises:
            InfrastructureError: a server cannot be reached or listed (setup, retryable, of
                variant scope), or cannot be answered for (setup, not retryable).

        """
        async with self.open_boundary(Boundary(CallRecord(sink), trial_id), servers) as boundary:
            yield boundary

    @asynccontextmanager
    async def open_boundary(
        self, boundary: _Kind, servers: Mapping[str, AttemptServer]
    ) -> AsyncIterator[_Kind]:
        """Open a boundary that was made elsewhere; see `open_attempt`."""
        gates = {
            label: Gate(server, boundary, self._ready_pool, self._shelf)
            for label, server in servers.items()
        }
        make_session = partial(Session, boundary, gate_in_era=self._gate_in_era)
        fronts = Fronts(make_session, *self._outer_fronts)
        boundary.attach(gates, fronts)
        try:
            await _open(list(gates.values()))
            yield boundary
        finally:
            boundary.close()
            with anyio.CancelScope(shield=True):
                await fronts.close()
                for gate in gates.values():
                    await gate.close()

    def _gate_in_era(self, boundary: Boundary, gate: Gate, era: str) -> Gate:
        return Gate(gate.server, boundary, self._ready_pool, self._shelf, era=era)

    @property
    def _ready_pool(self) -> Pool:
        if self._pool is None:
            raise RuntimeError(_NOT_ENTERED)
        return self._pool

    @property
    def _outer_fronts(self) -> tuple[HttpFront, RelayFront]:
        if self._fronts is None:
            raise RuntimeError(_NOT_ENTERED)
        return self._fronts


async def _open(gates: list[Gate]) -> None:
    """Open gates side by side; the first failure counts."""
    failures: list[InfrastructureError] = []

    async def one(gate: Gate) -> None:
        try:
            await gate.open()
        except ServerUnavailableError as error:
            failures.append(error.as_failure())
        except ReplyError as error:
            reason = f"server {gate.label!r}: {error}"
            failures.append(
                InfrastructureError(Broke.SETUP, reason, retryable=False, scope=Scope.VARIANT)
            )

    if len(gates) == 1:
        await one(gates[0])
    else:
        async with anyio.create_task_group() as tasks:
            for gate in gates:
                tasks.start_soon(one, gate)
    if failures:
        raise failures[0]
