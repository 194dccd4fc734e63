"""Tools that an eval config names: each is one that its server lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.attempt.named_tools import check_named_tools
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.write import WriteMode
from tests.attempt.evals import eval_of, state
from tests.attempt.setting import small_config

FOLDER = Path(__file__).parent


def check(kind: str = "writes", mode: WriteMode = WriteMode.SIMULATED, **keys: Any) -> None:
    loaded = eval_of(FOLDER, servers={"notes": small_config(**keys)})
    check_named_tools(PreparedEval(loaded, {"notes": state("notes", kind)}), {"notes": mode})


def test_names_that_the_server_lists_are_let_through() -> None:
    check(readOnlyTools=["purge"], alwaysWriteTools=["fail"], replies={"write_note": {"ok": True}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("readOnlyTools", ["purg"]),
        ("alwaysWriteTools", ["purge", "purg"]),
        ("replies", {"purg": {"ok": True}}),
    ],
)
def test_a_name_that_the_server_does_not_list_is_refused_with_the_nearest(
    key: str, value: Any
) -> None:
    with pytest.raises(LoadCheckError) as caught:
        check(**{key: value})
    assert f"servers.notes.{key} names 'purg'" in caught.value.problem
    assert (caught.value.server, caught.value.tools) == ("notes", ("purg",))
    assert caught.value.remedy == "did you mean 'purge'?"


def test_a_name_that_is_near_to_none_is_told_with_those_there_are() -> None:
    with pytest.raises(LoadCheckError) as caught:
        check(alwaysWriteTools=["zzz"])
    assert (caught.value.remedy or "").startswith("it lists: read_note, slow,")


def test_a_server_that_could_not_be_listed_is_left_alone() -> None:
    check("gone", alwaysWriteTools=["zzz"])
