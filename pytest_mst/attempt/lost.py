"""Attempts that began and whose process ended before they did."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Broke, InfrastructureFailure
from pytest_mst.domain.plan import RunPlan
from pytest_mst.domain.run import AttemptId
from pytest_mst.grading.agreement import agreement
from pytest_mst.store.append import RunWriter
from pytest_mst.store.journal import begun
from pytest_mst.store.read import read_writes


def store_lost(
    writer: RunWriter,
    plan: RunPlan | None,
    worker: str | None = None,
    told: Mapping[AttemptId, InfrastructureFailure] = MappingProxyType({}),
) -> None:
    """Write the ending of every attempt that began and has none: a collection failure.

    The writes it made until then are unreported: there is no trace to match them with.

    Args:
        writer: the run's writer.
        plan: the run's plan, for the names of datasets; `None` where it is not known.
        worker: only attempts that began in this process; those of every process without it.
        told: how attempts ended that could be reported and not be stored.

    Raises:
        StoreError: the journal or a write record cannot be read, or an ending not be written.

    """
    datasets = {} if plan is None else {(one.variant, one.case): one.dataset for one in plan.cases}
    for attempt, line in begun(writer.layout).items():
        if worker is not None and line.worker != worker:
            continue
        writes = read_writes(writer.layout, attempt)
        ending = told.get(attempt) or InfrastructureFailure(
            Broke.COLLECTION,
            f"the process that ran it ({line.worker or 'unnamed'}) ended before the attempt did",
            retryable=True,
        )
        record = AttemptRecord(
            id=attempt,
            dataset=datasets.get((attempt.variant, attempt.case), writer.layout.eval_name),
            locator=line.locator,
            started_at=line.at,
            duration_ms=0,
            ending=ending,
            key="",
            agreement=agreement(None, writes.entries, {}),
        )
        writer.attempt(record)
        writer.ended(attempt, line.locator, ending)
