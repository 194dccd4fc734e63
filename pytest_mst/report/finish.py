"""The end of a run: its attempts are read back once, and every document follows from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.plan import RunPlan
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stored_field import text_field
from pytest_mst.report.attempts import AttemptRow, Call, disk_rows
from pytest_mst.report.documents import (
    Circumstances,
    Phases,
    case_document,
    latest_document,
    results_head,
    run_document,
    summary_document,
)
from pytest_mst.report.owed import owed_by
from pytest_mst.report.summary import CaseRow, RunSummary, case_row, run_summary
from pytest_mst.store.append import RunWriter
from pytest_mst.store.connections import unattributed_writes
from pytest_mst.store.journal import JournalLine
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import read_document
from pytest_mst.store.stops import read_stops


def finish_run(
    plan: RunPlan,
    writer: RunWriter,
    *,
    circumstances: Circumstances,
    finished_at: str,
    reported: Mapping[AttemptId, AttemptRow] | None = None,
    under_way: Mapping[AttemptId, JournalLine] | None = None,
) -> RunSummary:
    """Work out a run's figures from what is on disk, and write its documents.

    Only one process does this, after all that wrote to the run are done. `latest.json` is
    written for a full run only, where no newer one is there, and last, when everything else is
    safely on the disk.

    Args:
        plan: what was planned.
        writer: the run's writer.
        circumstances: what the run was made with.
        finished_at: ISO 8601, UTC.
        reported: rows of attempts that may not be on disk.
        under_way: attempts that began and did not end; read from the journal without it.

    Raises:
        StoreError: a file could not be written, or a folder not be read.

    """
    rows: list[CaseRow] = []

    def cases() -> Iterator[dict[str, object]]:
        for case, attempts in disk_rows(plan, writer.layout, reported, under_way):
            row = case_row(case, attempts)
            rows.append(row)
            if row.verdict is not None:
                yield case_document(row, attempts)

    nobodys = _unattributed(plan, writer.layout)
    writer.results(results_head(plan, nobodys), cases())
    owed, stops = owed_by(writer.layout), read_stops(writer.layout)
    summary = replace(run_summary(plan, rows, nobodys), stops=stops, owed=owed)
    writer.summary(summary_document(summary, timestamp=finished_at))
    phases = Phases.of(summary)
    writer.run_json(
        run_document(
            plan, circumstances, phases=phases, finished_at=finished_at, stops=summary.stops
        )
    )
    writer.sync()
    if summary.full and _is_newest(plan, writer.layout):
        writer.latest(latest_document(plan, writer.layout))
    return summary


def _is_newest(plan: RunPlan, layout: RunLayout) -> bool:
    """Tell whether no newer full run is there already, as where an older one is finished later.

    What was not taken up again has ended last, whatever a clock that was set says.
    """
    if not plan.resumptions:
        return True
    try:
        latest = read_document(layout.latest_json)
        if latest is None:
            return True
        created_at, path = text_field(latest, "createdAt"), text_field(latest, "path")
    except (StoreError, ValueError):
        return True  # of no use as it is
    return created_at <= plan.created_at or not (layout.eval_dir / path / "run.json").is_file()


def read_run(
    plan: RunPlan, layout: RunLayout, reported: Mapping[AttemptId, AttemptRow] | None = None
) -> RunSummary:
    """Work out a run's figures from what is on disk, and write nothing.

    Raises:
        StoreError: a folder could not be read.

    """
    rows = [case_row(case, attempts) for case, attempts in disk_rows(plan, layout, reported)]
    nobodys = _unattributed(plan, layout)
    return replace(run_summary(plan, rows, nobodys), stops=read_stops(layout), owed=owed_by(layout))


def _unattributed(plan: RunPlan, layout: RunLayout) -> dict[str, tuple[Call, ...]]:
    """Read the writes of each variant over shared connections that are no attempt's."""
    found = {one.name: unattributed_writes(layout, one.name) for one in plan.variants}
    return {
        variant: (
            *(Call.of(entry) for entry in record.entries),
            *(Call(None, "unreadable", {"problem": torn.problem}) for torn in record.torn),
        )
        for variant, record in found.items()
    }
