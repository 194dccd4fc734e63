"""Earlier goes at attempts that were replaced count, whatever has become of the attempt since."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.domain.ending import Trial
from pytest_mst.report.attempts import disk_rows
from pytest_mst.report.finish import read_run
from pytest_mst.report.terminal import closing_lines
from pytest_mst.store.append import RunWriter
from pytest_mst.store.supersede import supersede_attempt
from tests.store.records import LOST, attempt_id, case_of, plan_of, record, writer_in

PLAN = plan_of(case_of(trials=2))


def replaced(writer: RunWriter, stamp: str, started_at: str, *, trial: int = 0) -> None:
    """Store an attempt that ended as lost, and put it aside."""
    writer.attempt(record(attempt_id(trial), LOST, started_at=started_at))
    supersede_attempt(writer.layout, attempt_id(trial), stamp)


@pytest.mark.parametrize("since", ["made", "begun", "cut", "nothing"])
def test_they_count_whatever_has_become_of_the_attempt(tmp_path: Path, since: str) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    replaced(writer, "1", "a")
    replaced(writer, "2", "b")
    match since:
        case "made":
            writer.attempt(record(id_, Trial(), started_at="c"))
        case "begun":
            writer.begun(id_, "@0")
        case "cut":
            writer.attempt(record(id_, Trial(), started_at="c"))
            writer.layout.trace(id_).write_text("{")
        case _:
            pass
    [(_, [row, other])] = disk_rows(PLAN, writer.layout)
    assert row.replaced == (LOST, LOST)
    assert other.replaced == ()
    summary = read_run(PLAN, writer.layout)
    assert summary.replaced == {"network": 2}
    line = "replaced 2 earlier goes: 2 network (kept in superseded/)"
    assert line in closing_lines(summary, "runs/x")
    writer.close()


def test_an_attempt_that_was_only_graded_again_has_no_earlier_go(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    writer.attempt(record(id_, Trial(), started_at="a"))
    supersede_attempt(writer.layout, id_, "1")
    writer.attempt(record(id_, Trial(), started_at="a"))
    [(_, [row, _])] = disk_rows(PLAN, writer.layout)
    assert row.replaced == ()
    assert not read_run(PLAN, writer.layout).replaced
