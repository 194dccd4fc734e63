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
    their type, or by the type of what they were raised from, as HTTP libraries do; anything else
    is a failure of the client's program.
    """
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
        if isinstance(leaf, OptionsError):
            return InfrastructureFailure(Broke.SETUP, str(leaf), retryable=False, accepted=False)
    detail = _detail(error)
    first = leaves[0]
    if all(_is_network(leaf) for leaf in leaves):
        reason = f"the network failed under the client: {_named(first)}"
        return InfrastructureFailure(Broke.NETWORK, reason, retryable=True, detail=detail)
    reason = f"the client raised {_named(first)}"
    return InfrastructureFailure(Broke.CLIENT_APP, reason, retryable=True, detail=detail)


def proxy_failure(error: Exception) -> InfrastructureFailure:
    """Return the infrastructure failure that an exception around a client means.

    What was raised as an infrastructure error keeps what it says; anything else broke the
    boundary that the client acts behind.
    """
    for leaf in _leaves(error):
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
    reason = f"the proxy raised {_named(error)}"
    return InfrastructureFailure(Broke.SETUP, reason, retryable=True, detail=_detail(error))


def _detail(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-_DETAIL_LIMIT_CHARS:]


def _is_network(error: BaseException) -> bool:
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if any(isinstance(leaf, NETWORK_ERRORS) for leaf in _leaves(cause)):
            return True
        seen.append(cause)
        cause = cause.__cause__
    return False


def _named(error: BaseException) -> str:
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
