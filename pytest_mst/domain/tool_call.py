"""Calling a tool through a boundary: what comes back, and what can go wrong in the call itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from pytest_mst.domain.json_value import JsonObject


class ToolCallError(Exception):
    """The call got a protocol error, not a result. The client sees it; its attempt goes on."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the JSON-RPC error as it came.

        Args:
            code: the JSON-RPC error code.
            message: the peer's words, for people.
            data: what the peer added.

        """
        super().__init__(f"{message} (code {code})")
        self.code = code
        self.message = message
        self.data = data


class ServerGoneError(ToolCallError):
    """The server ended in this call, and this call is what it ended in."""


CallGuard: TypeAlias = Callable[[], Awaitable[None]]
"""Asked before a call is taken; what it raises, the caller gets, and the call is not made."""


class ToolCaller(Protocol):
    """A boundary as a client sees it: tools of labelled servers."""

    guard: CallGuard | None
    """Asked before each call, whichever way it comes in: also through an MCP session."""

    @property
    def servers(self) -> tuple[str, ...]:
        """The labels of the servers there are."""
        ...

    def listed(self, server: str) -> Sequence[Mapping[str, Any]]:
        """Return the tools of a server as it lists them just now, with all that it says of them.

        Raises:
            KeyError: there is no server of that label.

        """
        ...

    async def call_tool(
        self,
        server: str,
        tool: str,
        arguments: JsonObject | None,
        *,
        join_id: str | None = None,
    ) -> Mapping[str, Any]:
        """Call a tool and return the raw `tools/call` result.

        Args:
            server: the server's label.
            tool: the tool's name.
            arguments: as the client would send them; `None` sends none.
            join_id: the caller's own id of this call, kept in the write record.

        Raises:
            ToolCallError: the call got a protocol error; the client sees it and may go on.
            InfrastructureError: the attempt cannot go on, for example because a server that it
                shares was killed by another attempt's call.

        """
        ...
