"""A session's costs, added by several processes and seen by all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pytest_mst.attempt.budget import Budget
from pytest_mst.store.spent import SpentFile


def test_what_each_process_adds_all_of_them_see(tmp_path: Path) -> None:
    path = tmp_path / "spent"
    ours, theirs = SpentFile(path), SpentFile(path)
    assert ours.total_usd() == 0
    ours.add(0.5)
    assert theirs.total_usd() == 0.5
    theirs.add(0.25)
    theirs.add(0.125)
    assert ours.total_usd() == theirs.total_usd() == 0.875


def test_amounts_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    path = tmp_path / "spent"
    files = [SpentFile(path) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: files[at % 4].add(0.01), range(400)))
    assert [one.total_usd() for one in files] == [pytest.approx(4.0)] * 4


def test_an_amount_that_cannot_be_written_down_counts_here(tmp_path: Path) -> None:
    spent = SpentFile(tmp_path / "gone" / "spent")
    spent.add(0.5)
    assert spent.total_usd() == 0.5


def test_a_budget_is_used_up_once_the_limit_is_reached(tmp_path: Path) -> None:
    budget = Budget(1.0, SpentFile(tmp_path / "spent"))
    budget.spend(None)
    budget.spend(0.9)
    before = budget.why_stopped
    budget.spend(0.1)
    after = budget.why_stopped
    assert before is None
    assert after is not None
    assert "--mst-max-cost is $1" in after
