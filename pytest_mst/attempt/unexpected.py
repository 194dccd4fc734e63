"""What an exception that nobody caught says about an attempt."""

from __future__ import annotations

import socket
import ssl
import traceback
from collections.abc import Iterator

from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure
from pytest_mst.domain.errors import OptionsError

NETWORK_ERRORS: tuple[type[BaseException], ...] = (
    ConnectionError,
    socket.gaierror,
    socket.herror,
    ssl.SSLError,
)
"""Types that say the network broke, whoever raised them."""

_DETAIL_LIMIT_CHARS = 8_000


def failure_of(error: BaseException) -> InfrastructureFailure:
    """Return the infrastructure failure that an exception out of a client means.

    What was raised as an infrastructure error keeps what it says; network errors are known by
    their type; anything else is a failure of the client's program.
    """
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
        if isinstance(leaf, OptionsError):
            return InfrastructureFailure(Broke.SETUP, str(leaf), retryable=False, accepted=False)
    detail = "".join(traceback.format_exception(error))[-_DETAIL_LIMIT_CHARS:]
    first = leaves[0]
    if all(isinstance(leaf, NETWORK_ERRORS) for leaf in leaves):
        reason = f"the network failed under the client: {_named(first)}"
        return InfrastructureFailure(Broke.NETWORK, reason, retryable=True, detail=detail)
    reason = f"the client raised {_named(first)}"
    return InfrastructureFailure(Broke.CLIENT_APP, reason, retryable=True, detail=detail)


def _named(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
