"""One attempt's way to one server: what is decided, what is forwarded, and who ended the server."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
from pytest_mst.domain.write import ServerTools
from pytest_mst.proxy.death import CallOwner, Death, ServerDiedError, lost_to_another
from pytest_mst.proxy.json_rpc import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    OnProgress,
    Params,
    RequestTimeoutError,
    RpcError,
)
from pytest_mst.proxy.policy import Decision, Forward, RefuseUnknown, ServerPolicy
from pytest_mst.proxy.policy_shelf import PolicyShelf
from pytest_mst.proxy.pool import AS_CONFIGURED, Pool
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream import Upstream
from pytest_mst.proxy.upstream_spec import AttemptServer, ServerListing


class Gate:
    """One attempt's way to one server in one protocol era."""

    def __init__(
        self,
        server: AttemptServer,
        owner: CallOwner,
        pool: Pool,
        shelf: PolicyShelf,
        *,
        era: str = AS_CONFIGURED,
    ) -> None:
        self.server = server
        self._owner = owner
        self._pool = pool
        self._shelf = shelf
        self._era = era
        self._private = server.isolation == "attempt"
        self._handshake: Params | None = None
        self._upstream: Upstream | None = None
        self._owned: list[Upstream] = []
        self._listing: ServerListing | None = None
        self._policy: ServerPolicy | None = None
        self._called: Upstream | None = None
        self._told_of: Upstream | None = None
        self._lock = anyio.Lock()

    @property
    def label(self) -> str:
        """The server's label."""
        return self.server.spec.label

    @property
    def upstream(self) -> Upstream:
        """The connection; only once the gate is open."""
        if self._upstream is None:
            msg = f"the gate to {self.label!r} is not open"
            raise RuntimeError(msg)
        return self._upstream

    @property
    def policy(self) -> ServerPolicy:
        """What decides the calls; only once the gate is open."""
        if self._policy is None:
            msg = f"the gate to {self.label!r} is not open"
            raise RuntimeError(msg)
        return self._policy

    @property
    def is_private(self) -> bool:
        """Whether the connection is this attempt's own."""
        return self._private

    def keep_private(self, handshake: Params) -> None:
        """Ask for a connection of the attempt's own, opened with a client's own parameters."""
        self._private = True
        self._handshake = handshake

    async def open(self) -> None:
        """Reach the server and list its tools, before the client acts.

        Raises:
            ServerUnavailableError: it cannot be reached or listed.
            ReplyError: a template of a simulated reply cannot fit.

        """
        self._upstream = await self._connect()
        await self._list(fresh=False)

    async def close(self) -> None:
        """Leave shared connections, end private ones."""
        for upstream in (self._upstream, self._called):
            if upstream is not None:
                upstream.leave(self._owner)
        for upstream in self._owned:
            upstream.stop()
        for upstream in self._owned:
            await upstream.gone.wait()

    async def decide(self, tool: str, arguments: object) -> Decision:
        """Say what becomes of a call; what the server does not list is looked for once more.

        A server that has died is not needed to stop a write.

        Raises:
            ToolCallError: what the tool does cannot be known.
            InfrastructureError: the attempt cannot go on.
            ReplyError: no valid reply can be made.

        """
        if not self.upstream.alive:
            decision = self.policy.decide(tool, arguments)
            if not isinstance(decision, Forward | RefuseUnknown):
                return decision
            try:
                await self.revive()
            except ToolCallError:
                if isinstance(decision, RefuseUnknown):
                    return decision
                raise
        try:
            if self.upstream.known_listing is not self._listing:
                await self._list(fresh=False)
            decision = self.policy.decide(tool, arguments)
            if isinstance(decision, RefuseUnknown):
                await self._list(fresh=True)
                decision = self.policy.decide(tool, arguments)
        except ServerUnavailableError as error:
            decision = self.policy.decide(tool, arguments)
            if isinstance(decision, Forward):
                raise ToolCallError(INTERNAL_ERROR, str(error)) from error
        return decision

    async def revive(self) -> None:
        """Open the connection again where it has died.

        Raises:
            ToolCallError: the attempt's own calls ended the server, and it is told so.
            InfrastructureError: the server cannot be reached again, through no call of its own.

        """
        async with self._lock:
            died = self.upstream
            if died.alive:
                return
            untold = self._called is died and self._told_of is not died
            if untold and died.death is not None:
                self._told_of = died
                raise self._gone(died.death, "after a call of this attempt")
            try:
                self._upstream = await self._connect()
                await self._list(fresh=False)
            except ServerUnavailableError as error:
                if self._called is not None:
                    raise ServerGoneError(CONNECTION_CLOSED, str(error)) from error
                failure = error.as_failure()
                self._owner.lose(failure)
                raise failure from error

    async def list_anew(self) -> ServerTools:
        """Ask the server for its tools once more, whatever is known.

        Raises:
            ServerUnavailableError: it cannot be listed.

        """
        await self._list(fresh=True)
        return self.policy.tools

    async def pass_on(
        self, params: Params, *, own: bool, on_progress: OnProgress | None
    ) -> dict[str, Any]:
        """Send a `tools/call` on as a client that is connected itself would: decided by nobody.

        Args:
            params: the request's parameters.
            own: they are the boundary's own and lack the envelope of the era.
            on_progress: gets the parameters of progress notifications.

        Raises:
            ToolCallError: the server answered with an error, or not in time.
            InfrastructureError: the attempt cannot go on.

        """
        if not self.upstream.alive:
            await self.revive()
        return await self.forward(
            "tools/call",
            self.upstream.agreement.params(params) if own else params,
            timeout_s=self.server.spec.call_timeout_s,
            may_repeat=False,
            on_progress=on_progress,
        )

    async def forward(
        self,
        method: str,
        params: Params | None,
        *,
        timeout_s: float | None,
        may_repeat: bool,
        on_progress: OnProgress | None = None,
        request_id: str | None = None,
    ) -> dict[str, Any]:
        """Send a request to the server, its parameters as they are.

        Args:
            method: the JSON-RPC method.
            params: its parameters.
            timeout_s: how long the answer may take.
            may_repeat: whether it only reads, so that asking twice does no harm.
            on_progress: gets the parameters of progress notifications.
            request_id: an id of the caller's own.

        Raises:
            ToolCallError: the server answered with an error, or not in time.
            ServerGoneError: this call ended the server.
            InfrastructureError: another attempt's call did.

        """
        upstream = self.upstream
        had_called = self._called is upstream
        self._called = upstream
        try:
            return await upstream.ask(
                self._owner,
                method,
                params,
                timeout_s=timeout_s,
                on_progress=on_progress,
                request_id=request_id,
            )
        except RpcError as error:
            raise ToolCallError(error.code, error.message, error.data) from error
        except RequestTimeoutError:
            setting = "callTimeoutMs" if method == "tools/call" else "requestTimeoutMs"
            late = f"server {self.label!r} did not answer {method} in {timeout_s} s ({setting})"
            raise ToolCallError(REQUEST_TIMEOUT, late) from None
        except ServerDiedError as died:
            self._told_of = upstream
            death = died.death
            if self._owner not in death.callers:  # it was gone before this call reached it
                mine = had_called and death.sharers == 1
            elif len(death.callers) == 1:
                mine = True
            else:
                mine = may_repeat and await self._dies_again(upstream, method, params)
            raise self._blame(death, mine=mine) from died

    def _blame(self, death: Death, *, mine: bool) -> ServerGoneError | InfrastructureError:
        """Tell the attempt of its server's end: its own calls' doing, or another attempt's."""
        if mine:
            return self._gone(death, "in this call")
        failure = lost_to_another(self.label, death)
        self._owner.lose(failure)
        return failure

    async def _dies_again(self, like: Upstream, method: str, params: Params | None) -> bool:
        """Find out whether a call ended the server, where several were in flight.

        A read is asked once more, of a process of its own; what may write never is.
        """
        async with self._pool.arbitration:
            return await self._ends(like, method, params)

    async def _ends(self, like: Upstream, method: str, params: Params | None) -> bool:
        try:
            alone = await self._pool.fresh(like)
        except ServerUnavailableError:
            return False
        try:
            timeout_s = self.server.spec.call_timeout_s
            with suppress(RpcError, RequestTimeoutError):
                await alone.ask(self._owner, method, params, timeout_s=timeout_s)
        except ServerDiedError:
            return True
        finally:
            alone.stop()
            with anyio.CancelScope(shield=True):
                await alone.gone.wait()
        return False

    def _gone(self, death: Death, when: str) -> ServerGoneError:
        message = f"server {self.label!r} {death.ending.reason} {when}"
        return ServerGoneError(CONNECTION_CLOSED, message, death.ending.stderr_tail or None)

    async def _connect(self) -> Upstream:
        if not self._private:
            shared = await self._pool.shared(self.server.spec, self._era)
            shared.hold(self._owner)
            return shared
        upstream = await self._pool.private(self.server.spec, self._era, self._handshake)
        self._owned.append(upstream)
        return upstream

    async def _list(self, *, fresh: bool) -> None:
        listing = await self.upstream.listing(fresh=fresh)
        if listing is not self._listing:
            self._policy = self._shelf.policy(self.server.spec, self.server.mode, listing)
            self._listing = listing
