"""A person's own agent: an async function from a request to the answer's text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Trial

AgentFunction: TypeAlias = Callable[[ClientRequest], Awaitable[str | None]]
"""Takes what the client is given; returns the answer, or nothing where there is none."""


class FunctionClient:
    """Runs an async function as a client.

    Its calls are known from the boundary only, and its trace says so (`evidence: observed`),
    unless the function keeps `request.trace` itself and sets its evidence to `structured`.
    """

    def __init__(self, function: AgentFunction, name: str | None = None) -> None:
        """Wrap a function.

        Args:
            function: the agent.
            name: what to call it in runs; by default the function's own name.

        """
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self._function = function

    async def run(self, request: ClientRequest) -> Trial:
        """Call the function; what it raises passes through, to be typed by the attempt."""
        request.trace.evidence = "observed"
        answer = await self._function(request)
        if answer is not None:
            request.trace.answer = str(answer)
        return Trial()
