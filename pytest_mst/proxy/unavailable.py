"""A server that cannot be used: what broke, known where it happened."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope

BrokenPart: TypeAlias = Literal[
    "spawn", "connect", "exit", "hang", "unreadable", "handshake", "listing", "object"
]
"""What broke.

`spawn`: the command could not be started. `connect`: the address could not be reached, or did
not let us in. `exit`: the process ended. `hang`: no answer in time. `unreadable`: what came is
not the protocol. `handshake`: the server refused, or speaks another revision. `listing`: its
tools could not be listed. `object`: `module:attribute` is not a server.
"""


class ServerUnavailableError(Exception):
    """A server cannot be started, reached, understood or listed."""

    def __init__(
        self,
        label: str,
        broke: BrokenPart,
        reason: str,
        *,
        exit_code: int | None = None,
        stderr_tail: str = "",
    ) -> None:
        """Build the message from its fields.

        Args:
            label: the server's label.
            broke: what broke.
            reason: one line for people: what was found, and what to do about it.
            exit_code: the process's exit status where it ended; negative: the signal it ended by.
            stderr_tail: the last of what the process wrote to its standard error.

        """
        super().__init__(f"server {label!r}: {reason}")
        self.label = label
        self.broke = broke
        self.reason = reason
        self.exit_code = exit_code
        self.stderr_tail = stderr_tail

    def as_failure(self, scope: Scope = Scope.VARIANT) -> InfrastructureError:
        """Say it as the ending of an attempt: a setup failure that a retry can help."""
        return InfrastructureError(
            Broke.SETUP,
            str(self),
            retryable=True,
            scope=scope,
            detail=self.stderr_tail or None,
        )
