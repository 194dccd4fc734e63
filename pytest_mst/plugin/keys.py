"""Where the plugin keeps its state: in pytest's stashes, never on `config` or items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_mst.attempt.function_judge import JudgeFunction
    from pytest_mst.clients.client import Client
    from pytest_mst.domain.score import CaseVerdict
    from pytest_mst.plugin.case_item import CaseItem
    from pytest_mst.plugin.session import EvalSession
    from pytest_mst.plugin.upcoming import Upcoming

SESSION: pytest.StashKey[EvalSession] = pytest.StashKey()
"""On `config`: this process's evals. Only with `--mst`."""
CLIENTS_REGISTERED: pytest.StashKey[Mapping[str, Client]] = pytest.StashKey()
"""On `config`: the clients that were registered, by name."""
JUDGES: pytest.StashKey[Mapping[str, JudgeFunction]] = pytest.StashKey()
"""On `config`: the judges that were registered, by name."""
CASE: pytest.StashKey[CaseItem] = pytest.StashKey()
"""On an item that is an eval case by one variant."""
UPCOMING: pytest.StashKey[Upcoming] = pytest.StashKey()
"""On `session`: the attempts that are still to be asked for."""
VERDICT: pytest.StashKey[CaseVerdict] = pytest.StashKey()
"""On a case's item, from the moment its verdict is known until it is reported."""
TIMER: pytest.StashKey[Any] = pytest.StashKey()
"""On an item: how pytest-timeout sets its timer."""
