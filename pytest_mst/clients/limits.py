"""A client's own limits, enforced for it where it has none. Running out of them is a trial."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import TracebackType

import anyio

from pytest_mst.clients.client import Client, ClientRequest
from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, json_type
from pytest_mst.domain.retry import RetryHint
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.turn_retry import TurnRetry

LIMITS = ("maxTurns", "maxToolCalls", "maxDurationMs")
"""The keys of `clientOptions` that every client has."""

_USED_UP = -32000
"""JSON-RPC's code for errors of an implementation's own."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may use up for one input; `None` is no limit."""

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


class _CallBudget:
    """Cuts a client off at one call more than it may make, whichever way it makes its calls."""

    def __init__(self, limit: int, scope: anyio.CancelScope) -> None:
        self._left = limit
        self._scope = scope
        self.exceeded = False

    async def __call__(self) -> None:
        if self._left > 0:
            self._left -= 1
            return
        self.exceeded = True
        self._scope.cancel()
        await anyio.lowlevel.checkpoint()
        # Still here: in a task that the client has let loose, which the cut does not reach.
        raise ToolCallError(_USED_UP, "the client has made all the calls it may (maxToolCalls)")


class _WaitsLeftOut:
    """Waits that do not count towards the client's time: what it waits for is not its doing."""

    def __init__(self, turns: TurnRetry, scope: anyio.CancelScope) -> None:
        self._turns = turns
        self._scope = scope

    async def wait(self, failure: InfrastructureFailure, hint: RetryHint, *, next_try: int) -> None:
        left_s = self._scope.deadline - anyio.current_time()
        self._scope.deadline = math.inf
        try:
            await self._turns.wait(failure, hint, next_try=next_try)
        finally:
            self._scope.deadline = anyio.current_time() + left_s

    def answered(self) -> None:
        self._turns.answered()


class _CutOff:
    """A cancel scope for a client: what it raises because it is cut off is not how it ended."""

    def __init__(self, after_s: float | None) -> None:
        self.scope = anyio.move_on_after(after_s)

    def __enter__(self) -> anyio.CancelScope:
        return self.scope.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        caught = self.scope.__exit__(kind, error, trace)
        return caught or (self.scope.cancel_called and isinstance(error, Exception))


async def run_within_limits(client: Client, request: ClientRequest) -> Trial:
    """Run a client, and end its attempt as a trial when it has used up a limit of its own.

    It ends so whatever the client makes of being cut off. `maxTurns` is the client's to keep,
    since only it knows what a turn is.

    Raises:
        InfrastructureError: as the client raises it.
        OptionsError: a limit, or another option, is not what the client takes.
        TypeError: the client returned something that is no ending.

    """
    limits = Limits.of(request.options)
    cut = _CutOff(limits.duration_s)
    budget = None if limits.calls is None else _CallBudget(limits.calls, cut.scope)
    request = replace(request, turns=_WaitsLeftOut(request.turns, cut.scope))
    ending: object = None
    request.tools.guard = budget
    try:
        with cut:
            ending = await client.run(request)
    finally:
        request.tools.guard = None
    if budget is not None and budget.exceeded:
        return Trial(stopped_by="calls")
    if cut.scope.cancel_called and request.trace.failing is not None:
        after = f"the client's time (maxDurationMs) ran out after {limits.duration_s:g} s"
        raise InfrastructureError.of(cut_off_while(request.trace.failing, after))
    if cut.scope.cancel_called:
        return Trial(stopped_by="time")
    if not isinstance(ending, Trial):
        msg = f"client {client.name!r} returned {type(ending).__name__}; `run` returns a Trial"
        raise TypeError(msg)
    return ending


def cut_off_while(failing: InfrastructureFailure, when: str) -> InfrastructureFailure:
    """Return how an attempt ended that was cut off while something around its client failed.

    Args:
        failing: what failed, still.
        when: why it was cut off, and after how long.

    """
    return replace(failing, reason=f"{when}, and until then: {failing.reason}")
