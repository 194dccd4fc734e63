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
    found = list(leaves(error))
    for leaf in found:
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
        if isinstance(leaf, OptionsError):
            return InfrastructureFailure(Broke.SETUP, str(leaf), retryable=False, accepted=False)
    detail = detail_of(error)
    first = found[0]
    if all(_is_network(leaf) for leaf in found):
        reason = f"the network failed under the client: {named(first)}"
        return InfrastructureFailure(Broke.NETWORK, reason, retryable=True, detail=detail)
    reason = f"the client raised {named(first)}"
    return InfrastructureFailure(Broke.CLIENT_APP, reason, retryable=True, detail=detail)


def proxy_failure(error: Exception) -> InfrastructureFailure:
    """Return the infrastructure failure that an exception around a client means.

    What was raised as an infrastructure error keeps what it says; anything else broke the
    boundary that the client acts behind.
    """
    for leaf in leaves(error):
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
    reason = f"the proxy raised {named(error)}"
    return InfrastructureFailure(Broke.SETUP, reason, retryable=True, detail=detail_of(error))


def detail_of(error: BaseException) -> str:
    """Return the end of an error's traceback, for people."""
    return "".join(traceback.format_exception(error))[-_DETAIL_LIMIT_CHARS:]


def _is_network(error: BaseException) -> bool:
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        if any(isinstance(leaf, NETWORK_ERRORS) for leaf in leaves(cause)):
            return True
        seen.append(cause)
        cause = cause.__cause__
    return False


def named(error: BaseException) -> str:
    """Return the type and the first line of an error."""
    text = str(error).strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
