"""A stored run, opened for reading: its place and its plan, whoever stored it."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.plan import RunPlan, plan_from_json
from pytest_mst.domain.stored_field import Stored
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.legacy import legacy_layout, legacy_plan
from pytest_mst.store.read import read_document


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was planned, and where its files are."""

    layout: RunLayout
    plan: RunPlan
    document: Stored
    """The whole of `run.json`."""
    legacy: bool
    """Whether an older tool stored it, whose plan is what there is on disk."""


def open_run(layout: RunLayout) -> StoredRun:
    """Read what a stored run was to do. Nothing is written.

    Raises:
        StoreError: its `run.json` is missing, cannot be read, or is of a format that is not
            known here.

    """
    document = read_document(layout.run_json)
    if document is None:
        raise StoreError(str(layout.run_json), "is not there, so that the folder holds no run")
    try:
        if "plannedCases" in document:
            return StoredRun(layout, plan_from_json(document), document, legacy=False)
        there = legacy_layout(layout)
        return StoredRun(there, legacy_plan(there, document), document, legacy=True)
    except ValueError as error:
        raise StoreError(str(layout.run_json), f"cannot be read: {error}") from error
