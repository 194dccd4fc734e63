"""An attempt's way to its servers: a boundary of its own, or its part of one that others use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_mst.attempt.job import AttemptJob
from pytest_mst.attempt.shared_connection import begin_shared
from pytest_mst.clients.client import shares_connection
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.shared_boundary import Part
from pytest_mst.store.append import RunWriter

if TYPE_CHECKING:
    from pytest_mst.attempt.so_far import SoFar


@dataclass(frozen=True, slots=True)
class WayIn:
    """What an attempt's calls go through."""

    boundary: Boundary
    seen: Boundary | Part
    """What says of this attempt whether it can go on, and how many calls there were."""


@asynccontextmanager
async def way_in(
    job: AttemptJob, hub: Hub, writer: RunWriter, so_far: SoFar
) -> AsyncIterator[WayIn]:
    """Open an attempt's way to its servers, and close it when its client is done.

    Args:
        job: the attempt.
        hub: the servers' connections.
        writer: the run's writer.
        so_far: where what comes through is kept.

    Raises:
        InfrastructureError: a server cannot be used, or the client's connection not be shared.

    """
    if shares_connection(job.target.client):
        connection, so_far.share = await begin_shared(job, hub, writer)
        try:
            yield WayIn(connection.boundary, so_far.share.part)
        finally:
            connection.end(so_far.share.part, so_far.log.finished())
        return
    with writer.write_sink(job.id) as sink:
        async with hub.open_attempt(job.target.servers, sink, trial_id=job.trial_id) as boundary:
            so_far.entries, so_far.calls = boundary.entries, boundary.calls
            yield WayIn(boundary, boundary)
