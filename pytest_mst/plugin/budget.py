"""What a session's models may cost, as its options and ini settings say, over its processes."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from pytest_mst.attempt.budget import Budget
from pytest_mst.plugin.options import Settings
from pytest_mst.store.spent import SpentFile

_FILE = "spent.txt"


def new_budget(config: pytest.Config, settings: Settings) -> Budget | None:
    """Return the budget of a session that begins; `None` where nothing limits it."""
    limit_usd = _limit(settings)
    if limit_usd is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="pytest-mst-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    return Budget(limit_usd, SpentFile(folder / _FILE))


def shared_budget(settings: Settings, spent: str | None) -> Budget | None:
    """Return the budget that a worker shares with the others of its session.

    Args:
        settings: its options.
        spent: the file that they all note their costs in, as the controller says.

    """
    limit_usd = _limit(settings)
    return None if limit_usd is None or spent is None else Budget(limit_usd, SpentFile(Path(spent)))


def _limit(settings: Settings) -> float | None:
    return settings.max_cost_usd or settings.ini.max_cost_usd
