"""Programs take one input for each attempt."""

from __future__ import annotations

from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Broke, InfrastructureError


def check_one_input(client: str, request: ClientRequest) -> None:
    """Refuse to go on with a conversation.

    Args:
        client: what to call the client.
        request: the attempt.

    Raises:
        InfrastructureError: it had an input already.

    """
    if request.turn:
        raise InfrastructureError(
            Broke.SETUP,
            f"{client} takes one input for each attempt, and `mst.run` was called once more: use "
            "client mst for conversations, or put all of it into one input",
            retryable=False,
            accepted=False,
        )
