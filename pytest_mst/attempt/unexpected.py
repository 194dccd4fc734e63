"""What an exception that nobody caught says about an attempt."""

from __future__ import annotations

import socket
import ssl
import traceback
from collections import deque
from collections.abc import Iterator

from pytest_mst.domain.ending import (
    Broke,
    FatalError,
    InfrastructureError,
    InfrastructureFailure,
)
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.retry import RetryHint

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

    A fatal error in it comes first. What was raised as an infrastructure error keeps what it says;
    network errors are known by their type, or by the type of what they were raised from, as HTTP
    libraries do; anything else is a failure of the client's program.
    """
    fatal = fatal_in(error)
    if fatal is not None:
        return fatal_failure(fatal, error)
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


def retry_of(error: BaseException) -> RetryHint | None:
    """Return what an exception out of a client says of trying again, where it says something."""
    for leaf in leaves(error):
        if isinstance(leaf, InfrastructureError):
            return leaf.retry
    return None


def proxy_failure(error: Exception) -> InfrastructureFailure:
    """Return the infrastructure failure that an exception around a client means.

    A fatal error in it comes first. What was raised as an infrastructure error keeps what it says;
    anything else broke the boundary that the client acts behind.
    """
    fatal = fatal_in(error)
    if fatal is not None:
        return fatal_failure(fatal, error)
    for leaf in leaves(error):
        if isinstance(leaf, InfrastructureError):
            return leaf.failure
    reason = f"the proxy raised {named(error)}"
    return InfrastructureFailure(Broke.SETUP, reason, retryable=True, detail=detail_of(error))


def fatal_in(error: BaseException) -> FatalError | None:
    """Return the fatal error that an error is, was raised from, or holds as a group.

    An error raised while a fatal one was handled counts too, unless it says `from None`. Of
    several the one that reaches furthest counts, and of equals the one that is nearest.
    """
    found: FatalError | None = None
    seen: set[int] = set()
    waiting = deque([error])
    while waiting:
        one = waiting.popleft()
        if id(one) in seen:  # chains can be closed to a circle by hand
            continue
        seen.add(id(one))
        if isinstance(one, FatalError) and (found is None or one.scope.is_wider_than(found.scope)):
            found = one
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        if one.__cause__ is not None:
            waiting.append(one.__cause__)
        if one.__context__ is not None and not one.__suppress_context__:
            waiting.append(one.__context__)
    return found


def fatal_failure(fatal: FatalError, error: BaseException) -> InfrastructureFailure:
    """Return the ending of an attempt that a fatal error ended.

    A later go at it can help: it is made when the run is resumed, once things are mended.

    Args:
        fatal: the fatal error.
        error: what was raised, with the fatal error in it.

    """
    return InfrastructureFailure(
        fatal.broke,
        message_of(fatal),
        retryable=True,
        scope=fatal.scope,
        detail=detail_of(error),
    )


def message_of(fatal: FatalError) -> str:
    """Return what a fatal error says, in one line; its type where it says nothing."""
    return " ".join(str(fatal).split()) or type(fatal).__name__


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
    # not `str(error)`, which is the error's own code, and may raise
    lines = traceback.format_exception_only(error)
    at = next((line for line in lines if line.startswith(_qualified(error))), "")
    text = at.removeprefix(_qualified(error)).removeprefix(":").strip().split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _qualified(error: BaseException) -> str:
    """Return the name of an error's type as tracebacks have it."""
    kind = type(error)
    inner = kind.__module__ in ("builtins", "__main__")
    return kind.__qualname__ if inner else f"{kind.__module__}.{kind.__qualname__}"


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of a group, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
