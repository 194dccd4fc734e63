"""Servers that a client connects to itself: with no proxy there, their tools have to be known.

They are listed anew before a case's first attempt, and what the client's account has of them after
each attempt is held against that list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from pytest_mst.attempt.job import AttemptJob
from pytest_mst.clients.client import TraceLog
from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure, Scope
from pytest_mst.domain.write import ServerTools, WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.unavailable import ServerUnavailableError

Listed = Mapping[str, ServerTools]
"""The tools of the servers that the client connects to itself, by label."""


@dataclass(slots=True)
class _OfCase:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    listed: Listed | None = None


class DirectListings:
    """What direct servers listed when a case's first attempt began, kept for its others.

    One for each run in each process; used in the event loop that attempts are made in.
    """

    def __init__(self) -> None:
        self._of_cases: dict[tuple[str, str], _OfCase] = {}

    async def of(self, job: AttemptJob, boundary: Boundary) -> Listed:
        """Return what the attempt's direct servers listed for its case; see `listed_anew`.

        Raises:
            InfrastructureError: as `listed_anew`.

        """
        known = self._of_cases.setdefault((job.id.variant, job.id.case), _OfCase())
        async with known.lock:  # attempts of a case may begin together
            if known.listed is None:
                known.listed = await listed_anew(job, boundary)
        return known.listed


async def listed_for(job: AttemptJob, boundary: Boundary, kept: DirectListings | None) -> Listed:
    """Return the tools of the servers that an attempt's client connects to itself, by label.

    Args:
        job: the attempt, which has not begun.
        boundary: its boundary, open.
        kept: what the run's other attempts listed; `None` where they tell each other nothing.

    Raises:
        InfrastructureError: as `listed_anew`.

    """
    if not job.target.direct:
        return {}
    return await (listed_anew(job, boundary) if kept is None else kept.of(job, boundary))


async def listed_anew(job: AttemptJob, boundary: Boundary) -> Listed:
    """List the servers that the client connects to itself, over the attempt's own connections.

    Args:
        job: the attempt, which has not begun.
        boundary: its boundary, open.

    Raises:
        InfrastructureError: a server cannot be listed (setup, retryable), or has tools that
            write now and was read-only when the eval was loaded (setup, not retryable, of case
            scope).

    """
    listed = {}
    for label in job.target.direct:
        try:
            listed[label] = await boundary.tools_now(label)
        except ServerUnavailableError as error:
            raise error.as_failure() from error
        writes = listed[label].writes
        if writes and job.target.modes[label] is WriteMode.READ_ONLY:
            raise InfrastructureError(
                Broke.SETUP,
                f"server {label!r}, which the client is connected to directly, only had tools "
                f"that read when the eval was loaded, and now lists {', '.join(writes)}; leave "
                f"out `direct`, so that a proxy stops its writes, or name what only reads in "
                f"`servers.{label}.readOnlyTools`",
                retryable=False,
                scope=Scope.CASE,
            )
    return listed


def unlisted_calls(
    job: AttemptJob, log: TraceLog, listed: Listed, seen: frozenset[str]
) -> InfrastructureFailure | None:
    """Return why an attempt is no trial, where it called what its direct servers did not list.

    Nobody knows what such a tool does. An account that is not the client's own cannot be checked.

    Args:
        job: the attempt, which has ended.
        log: the client's account.
        listed: the tools of its direct servers.
        seen: the tools whose calls reached the boundary.

    """
    if log.evidence != "structured":
        return None
    others = [tools for label, tools in job.target.tools.items() if label not in listed]
    unlisted: dict[str, list[str]] = {}
    for event in log.finished().tool_calls:
        if event.source != "mcp":
            continue
        if event.server is None:
            everywhere = (*listed.values(), *others)
            if event.name in seen or any(event.name in tools.tools for tools in everywhere):
                continue
            label = " or ".join(listed)
        elif event.server in listed and event.name not in listed[event.server].tools:
            label = event.server
        else:
            continue
        unlisted.setdefault(label, []).append(event.name)
    if not unlisted:
        return None
    what = "; ".join(
        f"{', '.join(dict.fromkeys(names))} of server {label}" for label, names in unlisted.items()
    )
    return InfrastructureFailure(
        Broke.SETUP,
        f"the client called {what}, not listed before its case began; the client is connected "
        "to the server directly, so that nobody knows whether that wrote: leave out `direct`, or "
        "keep the server's tools the same",
        retryable=False,
    )
