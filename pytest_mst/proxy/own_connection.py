"""Calls of this project's own to a server: past every boundary, in no record, of no attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mst.domain.ending import InfrastructureError, Scope
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.proxy.death import ServerDiedError
from pytest_mst.proxy.json_rpc import RequestTimeoutError, RpcError
from pytest_mst.proxy.pool import Pool
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec


class OwnCallError(Exception):
    """A call of our own got no result."""

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool,
        scope: Scope = Scope.TRIAL,
        detail: str | None = None,
    ) -> None:
        """Build the error.

        Args:
            reason: one line for people.
            retryable: whether a later go at it can help: the server was not there, or not in
                time. One that refused the call will do so again.
            scope: how far it is known to reach.
            detail: the server's own diagnostics.

        """
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.scope = scope
        self.detail = detail


class _Nobody:
    """Whom such a call is made for: no attempt, so that none can lose its server by it."""

    def lose(self, error: InfrastructureError) -> None:
        """Hear that a server has died; whoever calls next is given another."""


async def call_own(
    pool: Pool, spec: UpstreamSpec, tool: str, arguments: JsonObject, *, limit_s: float
) -> Mapping[str, Any]:
    """Call a tool through a connection that all such calls of a spec share.

    Args:
        pool: the connections there are.
        spec: the server, of a group that no attempt is of.
        tool: the tool's name.
        arguments: as they are sent.
        limit_s: how long the answer may take, where the server's own limit is not shorter.

    Returns:
        The raw `tools/call` result, also one that says `isError`.

    Raises:
        OwnCallError: there is no result.

    """
    nobody, timeout_s = _Nobody(), min(limit_s, spec.call_timeout_s)
    try:
        upstream = await pool.shared(spec)
        await upstream.listing()  # over HTTP, headers of a call follow from its tool
        params = upstream.agreement.params({"name": tool, "arguments": dict(arguments)})
        try:
            return await upstream.ask(nobody, "tools/call", params, timeout_s=timeout_s)
        finally:
            upstream.leave(nobody)
    except ServerUnavailableError as error:
        failure = error.as_failure().failure
        raise OwnCallError(
            failure.reason, retryable=True, scope=failure.scope, detail=failure.detail
        ) from error
    except ServerDiedError as error:
        reason = f"server {spec.label!r} {error} in this call"
        detail = error.death.ending.stderr_tail or None
        raise OwnCallError(reason, retryable=True, detail=detail) from error
    except RequestTimeoutError:
        reason = f"server {spec.label!r} did not answer in {timeout_s:g} s"
        raise OwnCallError(reason, retryable=True) from None
    except RpcError as error:
        reason = f"server {spec.label!r} answered with a protocol error: {error}"
        raise OwnCallError(reason, retryable=False) from error
