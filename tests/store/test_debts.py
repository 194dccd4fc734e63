"""The cleanups that a run owes, as its journal has them."""

from __future__ import annotations

from pathlib import Path

from pytest_mst.domain.ending import Trial
from pytest_mst.domain.run import AttemptId
from pytest_mst.store.append import RunWriter
from pytest_mst.store.debts import Debt, owed_cleanups
from pytest_mst.store.journal import begun
from pytest_mst.store.layout import RunLayout

A, B = AttemptId("default", "a", 0), AttemptId("default", "b", 1)


def writer(folder: Path, worker: str = "gw0") -> RunWriter:
    return RunWriter(RunLayout(folder, "team", "20261130T094500Z-7f3c2a"), worker=worker)


def test_nothing_is_owed_without_a_journal(tmp_path: Path) -> None:
    assert owed_cleanups(writer(tmp_path).layout) == ()


def test_a_cleanup_is_owed_until_it_is_paid_under_the_id_it_was_owed_under(tmp_path: Path) -> None:
    writes = writer(tmp_path)
    writes.begun(A, "@a")
    writes.owes(A, "@a", "msta")
    writes.owes(B, "@b", "mstb")
    writes.paid(B, "@b", "mstb")
    writes.owes(B, "@b", "mstbx1")  # collected anew
    assert owed_cleanups(writes.layout) == (
        Debt(A, "@a", "msta"),
        Debt(B, "@b", "mstbx1"),
    )
    writer(tmp_path, "main").paid(A, "@a", "msta")
    assert [debt.trial_id for debt in owed_cleanups(writes.layout)] == ["mstbx1"]


def test_what_is_owed_does_not_say_whether_an_attempt_has_ended(tmp_path: Path) -> None:
    writes = writer(tmp_path)
    writes.begun(A, "@a")
    writes.owes(A, "@a", "msta")
    assert list(begun(writes.layout)) == [A]
    writes.ended(A, "@a", Trial())
    assert begun(writes.layout) == {}
    assert len(owed_cleanups(writes.layout)) == 1


def test_a_line_that_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    writes = writer(tmp_path)
    writes.owes(A, "@a", "msta")
    with writes.layout.journal.open("ab") as file:
        file.write(b'{"format":"mst.run/v1","kind":"paid","tri')
    assert len(owed_cleanups(writes.layout)) == 1


def test_one_that_failed_stays_owed_with_the_last_reason(tmp_path: Path) -> None:
    writes = writer(tmp_path)
    writes.owes(A, "@a", "msta")
    writes.owes(B, "@b", "mstb")
    writes.owes(A, "@a", "msta", "refused")
    writes.owes(A, "@a", "msta", "locked")
    assert owed_cleanups(writes.layout) == (Debt(A, "@a", "msta", "locked"), Debt(B, "@b", "mstb"))
    writes.paid(A, "@a", "msta")
    assert owed_cleanups(writes.layout) == (Debt(B, "@b", "mstb"),)
