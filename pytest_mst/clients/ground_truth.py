"""What a client cannot make up: whether it was ever connected to the servers it was given."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Broke, InfrastructureFailure


def not_reached(request: ClientRequest) -> tuple[str, ...]:
    """Return the labels of the servers that the client never came to, as the boundary saw it."""
    if request.session is None:
        return ()
    return tuple(
        label for label in request.tools.servers if not request.session.seen(label).connected
    )


def without_servers(request: ClientRequest) -> InfrastructureFailure | None:
    """Return why an attempt is no trial, where its client never came to any of its servers.

    That holds for clients that connect by themselves: those that were given a way in, and those
    whose calls are known from the boundary only. A client that calls through the boundary cannot
    miss it.
    """
    away = not_reached(request)
    if not away or len(away) < len(request.tools.servers):
        return None
    offered = any(request.session.seen(label).way_in for label in away)
    if not offered and request.trace.evidence == "structured":
        return None
    return server_not_reached(away)


def server_not_reached(labels: Sequence[str], detail: str | None = None) -> InfrastructureFailure:
    """Return what it means that a client acted without a server that it was given.

    Args:
        labels: the servers.
        detail: the client's own diagnostics, for people.

    """
    names = ", ".join(repr(label) for label in labels)
    which = f"server {names}" if len(labels) == 1 else f"servers {names}"
    return InfrastructureFailure(
        Broke.SETUP,
        f"the client was never connected to {which}, and so what it did says nothing of "
        f"{'it' if len(labels) == 1 else 'them'}: see that the client uses the way in it is given",
        retryable=True,
        detail=detail,
    )
