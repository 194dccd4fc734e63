"""A client's own limits, enforced for it where it has none. Running out of them is a trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from pytest_mst.clients.client import Client, ClientRequest
from pytest_mst.domain.ending import StoppedBy, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, json_type

LIMITS = ("maxTurns", "maxToolCalls", "maxDurationMs")
"""The keys of `clientOptions` that every client has."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may use up in one attempt; `None` is no limit."""

    turns: int | None = None
    calls: int | None = None
    duration_s: float | None = None

    @classmethod
    def of(cls, options: JsonObject) -> Limits:
        """Read the limits out of `clientOptions`.

        Raises:
            OptionsError: a limit is not a positive whole number.

        """
        turns, calls, duration_ms = (_positive(options, key) for key in LIMITS)
        return cls(turns, calls, None if duration_ms is None else duration_ms / 1000)


def _positive(options: JsonObject, key: str) -> int | None:
    value = options.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise OptionsError(key, f"a positive whole number, not {json_type(value)} {value!r}")
    return value


class _CountedTools:
    """A boundary that stops its client at one call more than it may make."""

    def __init__(self, request: ClientRequest, limit: int, scope: anyio.CancelScope) -> None:
        self._tools = request.tools
        self._left = limit
        self._scope = scope
        self.exceeded = False

    @property
    def servers(self) -> tuple[str, ...]:
        return self._tools.servers

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: JsonObject | None,
        *,
        join_id: str | None = None,
    ) -> Mapping[str, Any]:
        if self._left == 0:
            self.exceeded = True
            self._scope.cancel()
            await anyio.lowlevel.checkpoint()
        self._left -= 1
        return await self._tools.call_tool(server, tool, arguments, join_id=join_id)


async def run_within_limits(client: Client, request: ClientRequest) -> Trial:
    """Run a client, and end its attempt as a trial when it has used up a limit of its own.

    `maxTurns` is the client's to keep, since only it knows what a turn is.

    Raises:
        InfrastructureError: as the client raises it.
        OptionsError: a limit, or another option, is not what the client takes.

    """
    limits = Limits.of(request.options)
    stopped_by: StoppedBy | None = None
    ending: Trial | None = None
    with anyio.move_on_after(limits.duration_s) as scope:
        if limits.calls is None:
            ending = await client.run(request)
        else:
            counted = _CountedTools(request, limits.calls, scope)
            try:
                ending = await client.run(replace(request, tools=counted))
            finally:
                stopped_by = "calls" if counted.exceeded else None
    if ending is None or (stopped_by and scope.cancelled_caught):
        return Trial(stopped_by=stopped_by or "time")
    return ending
