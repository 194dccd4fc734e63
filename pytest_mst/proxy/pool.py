"""The connections there are: shared ones by spec and era, private ones by attempt."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import anyio
from anyio.abc import TaskGroup

from pytest_mst.proxy.handshake import LATEST_HANDSHAKE, agree, discover, initialize
from pytest_mst.proxy.json_rpc import Params
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream import Meet, Upstream
from pytest_mst.proxy.upstream_spec import UpstreamSpec

AS_CONFIGURED = "as configured"
"""The era that the config's `protocol` comes to."""
MODERN = "modern"
"""The era without a handshake; any other era is the revision that a handshake asks for."""

_ARBITRATIONS = 4


@dataclass(eq=False, slots=True)
class _Slot:
    """A place for one shared connection; whoever waits for it hears of the same outcome."""

    ready: anyio.Event = field(default_factory=anyio.Event)
    upstream: Upstream | None = None
    error: ServerUnavailableError | None = None

    @property
    def usable(self) -> bool:
        return not self.ready.is_set() or (self.upstream is not None and self.upstream.alive)


class Pool:
    """Opens connections in tasks of their own, so that nobody's cancellation reaches them."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._slots: dict[tuple[str, str], _Slot] = {}
        self._open: set[Upstream] = set()
        self._exit_on_probe: set[str] = set()
        self.arbitration = anyio.CapacityLimiter(_ARBITRATIONS)
        """Bounds how many processes are started at once only to find out who ended another."""

    async def shared(self, spec: UpstreamSpec, era: str = AS_CONFIGURED) -> Upstream:
        """Give the shared connection; opened where there is none, or where it has died.

        Raises:
            ServerUnavailableError: it cannot be opened.

        """
        slot = self.begin(spec, era)
        await slot.ready.wait()
        if slot.error is not None:
            raise slot.error
        if slot.upstream is None:
            raise ServerUnavailableError(spec.label, "connect", "was closed while it was opened")
        slot.upstream.keep_log_for(spec)
        return slot.upstream

    def begin(self, spec: UpstreamSpec, era: str = AS_CONFIGURED) -> _Slot:
        """Begin to open the shared connection, without waiting for it."""
        key = (spec.identity, era)
        slot = self._slots.get(key)
        if slot is None or not slot.usable:
            slot = self._slots[key] = _Slot()
            self._tasks.start_soon(self._fill, slot, spec, era)
        return slot

    async def _fill(self, slot: _Slot, spec: UpstreamSpec, era: str) -> None:
        try:
            slot.upstream = await self._connect(spec, _meeting(era))
        except ServerUnavailableError as error:
            slot.error = error
        else:
            agreement = slot.upstream.agreement
            alias = MODERN if agreement.is_modern else agreement.revision
            other = self._slots.get((spec.identity, alias))
            if era == AS_CONFIGURED and (other is None or not other.usable):
                self._slots[spec.identity, alias] = slot
        finally:
            slot.ready.set()

    async def private(
        self,
        spec: UpstreamSpec,
        era: str = AS_CONFIGURED,
        params: Params | None = None,
    ) -> Upstream:
        """Open a connection of one attempt's own, or hand over one that nobody has used yet.

        Args:
            spec: the server.
            era: the protocol era.
            params: a client's own handshake parameters, passed on as they are.

        Raises:
            ServerUnavailableError: it cannot be opened.

        """
        if era == AS_CONFIGURED and (unused := self._take_unused(spec)) is not None:
            return unused
        return await self._connect(spec, _meeting(era, params), asks_client=params is not None)

    def _take_unused(self, spec: UpstreamSpec) -> Upstream | None:
        slot = self._slots.get((spec.identity, AS_CONFIGURED))
        upstream = slot.upstream if slot is not None else None
        if upstream is None or not upstream.alive or not upstream.unused:
            return None
        for key in [key for key, known in self._slots.items() if known is slot]:
            del self._slots[key]
        upstream.keep_log_for(spec)
        return upstream

    async def fresh(self, upstream: Upstream) -> Upstream:
        """Open one more connection like another one, for a single question.

        Raises:
            ServerUnavailableError: it cannot be opened.

        """
        agreement = upstream.agreement
        era = MODERN if agreement.is_modern else agreement.revision
        return await self._connect(upstream.spec, _meeting(era))

    async def _connect(
        self, spec: UpstreamSpec, meet: Meet | None, *, asks_client: bool = False
    ) -> Upstream:
        if meet is None and spec.identity in self._exit_on_probe:
            meet = _meeting(LATEST_HANDSHAKE)
        upstream = await self._start(spec, meet, asks_client=asks_client)
        if upstream.exited_on_probe and meet is None and spec.config.protocol == "auto":
            # Some servers of the older era exit on a question they do not know.
            upstream = await self._start(spec, partial(agree, protocol="legacy"))
            if upstream.failure is None:
                self._exit_on_probe.add(spec.identity)
        if upstream.failure is not None:
            raise upstream.failure
        return upstream

    async def _start(
        self, spec: UpstreamSpec, meet: Meet | None, *, asks_client: bool = False
    ) -> Upstream:
        upstream = Upstream(spec, meet, asks_client=asks_client)
        self._open.add(upstream)
        self._tasks.start_soon(self._serve, upstream)
        try:
            await upstream.opened.wait()
        except anyio.get_cancelled_exc_class():
            upstream.stop()
            raise
        return upstream

    async def _serve(self, upstream: Upstream) -> None:
        try:
            await upstream.serve()
        finally:
            self._open.discard(upstream)

    async def close(self) -> None:
        """End every connection and wait until nothing is left of them."""
        for upstream in tuple(self._open):
            upstream.stop()
        for upstream in tuple(self._open):
            await upstream.gone.wait()


def _meeting(era: str, params: Params | None = None) -> Meet | None:
    match era:
        case "as configured":
            return None
        case "modern":
            return discover
        case revision:
            return partial(initialize, revision=revision, params=params)
