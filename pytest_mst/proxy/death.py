"""A connection's end that nobody asked for: what is known of it, and what others are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pytest_mst.domain.ending import Broke, InfrastructureError
from pytest_mst.proxy.pipe import PipeEnding


class CallOwner(Protocol):
    """Whoever calls are made for: an attempt."""

    def lose(self, error: InfrastructureError) -> None:
        """Hear that the attempt cannot go on, because of what another one did."""
        ...


@dataclass(frozen=True, slots=True)
class Death:
    """A connection's end that nobody asked for."""

    ending: PipeEnding
    callers: frozenset[CallOwner]
    """The attempts with a call in flight that may have ended it."""
    sharers: int
    """How many attempts had ever called through it."""


class ServerDiedError(Exception):
    """The connection ended in a call."""

    def __init__(self, death: Death) -> None:
        """Keep what is known of the end."""
        super().__init__(death.ending.reason)
        self.death = death


def lost_to_another(label: str, death: Death) -> InfrastructureError:
    """Say that an attempt's server was ended by another attempt's call."""
    return InfrastructureError(
        Broke.SETUP,
        f"server {label!r} {death.ending.reason} while other attempts shared it;"
        " isolation: attempt gives each its own",
        retryable=True,
        detail=death.ending.stderr_tail or None,
    )
