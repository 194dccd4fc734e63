"""What is told of attempts that were not cleaned up after."""

from __future__ import annotations

from pathlib import Path

from pytest_mst.domain.run import AttemptId
from pytest_mst.report.owed import owed_by
from pytest_mst.store.append import RunWriter
from pytest_mst.store.layout import RunLayout

A, B = AttemptId("default", "a\x1b[31m", 0), AttemptId("default", "b", 1)


def test_each_is_told_with_why_and_under_which_id_it_wrote(tmp_path: Path) -> None:
    writer = RunWriter(RunLayout(tmp_path, "team", "20261130T094500Z-7f3c2a"))
    assert owed_by(writer.layout) == ()
    writer.owes(A, "@a", "msta")
    writer.owes(B, "@b", "mstb")
    writer.owes(B, "@b", "mstb", "ledger.purge {}: refused")
    cut_off, failed = owed_by(writer.layout)
    assert "\x1b" not in cut_off.line
    assert "which wrote as msta: its process ended before it could (@a)" in cut_off.line
    assert failed.line == (
        "not cleaned up: b [default] trial 1, which wrote as mstb: ledger.purge {}: refused (@b)"
    )
    assert failed.to_json() == {
        "variant": "default",
        "id": "b",
        "trial": 1,
        "locator": "@b",
        "trialId": "mstb",
        "reason": "ledger.purge {}: refused",
    }


def test_what_an_earlier_go_owes_is_not_told_by_the_later_ones_words(tmp_path: Path) -> None:
    writer = RunWriter(RunLayout(tmp_path, "team", "20261130T094500Z-7f3c2a"))
    writer.owes(B, "@b", "mstb")
    writer.owes(B, "@b", "mstbx1", "another story")
    assert [owed.reason for owed in owed_by(writer.layout)] == [
        "its process ended before it could",
        "another story",
    ]
