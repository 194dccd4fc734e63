"""What the cases of a variant are put to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.attempt.target import definitions_of, target_of
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.write import WriteMode
from tests.attempt.evals import eval_of, prepared_of
from tests.attempt.setting import small_config

FOLDER = Path(__file__).parent
V = Variant(name="v")


def config(**keys: Any) -> Any:
    return eval_of(FOLDER, servers={"notes": small_config(**keys)}, writes=PLANS_ITSELF)


PLANS_ITSELF = {"notes": "server-planned"}


def test_a_server_that_plans_writes_itself_is_taken_with_its_mark_only() -> None:
    with pytest.raises(LoadCheckError) as caught:
        target_of(prepared_of(config()), V, ScriptedClient(), {}, log_path=None)
    assert caught.value.server == "notes"
    assert "has no plannedWriteKey" in caught.value.problem
    marked = config(plannedWriteKey="_planned")
    target = target_of(prepared_of(marked), V, ScriptedClient(), {}, log_path=None)
    assert target.servers["notes"].mode is WriteMode.SERVER_PLANNED


def test_the_order_in_which_targets_are_named_makes_no_other_server() -> None:
    def definitions(*targets: str) -> Any:
        run = {"tool": "name", "readTargets": list(targets)}
        return definitions_of(config(dispatchers={"run": run}).config, V)

    assert definitions("a", "b") == definitions("b", "a")
    assert definitions("a", "b") != definitions("a")
