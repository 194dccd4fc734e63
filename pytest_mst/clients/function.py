"""A person's own agent: an async function from a request to the answer's text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Trial

AgentFunction: TypeAlias = Callable[[ClientRequest], Awaitable[str | Trial | None]]
"""Takes what the client is given; returns the answer, or nothing where there is none, or how its
attempt ended where that is more than an answer: its own error, a limit of its own."""


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
        self.function = function

    def named(self, name: str) -> FunctionClient:
        """Return the same agent under another name."""
        return FunctionClient(self.function, name)

    async def run(self, request: ClientRequest) -> Trial:
        """Call the function; what it raises passes through, to be typed by the attempt.

        Raises:
            TypeError: it returned neither a text, nor a trial, nor nothing.

        """
        request.trace.evidence = "observed"
        answer: object = await self.function(request)
        match answer:
            case None:
                return Trial()
            case Trial():
                return answer
            case str():
                request.trace.answer = answer
                return Trial()
            case _:
                msg = (
                    f"the agent {self.name!r} returned {type(answer).__name__}; valid: the answer "
                    "as a text, a Trial, or None"
                )
                raise TypeError(msg)
