"""What a client that has one connection for all its attempts cannot have, and what it gets."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure
from pytest_mst.domain.write import WriteMode
from tests.attempt.setting import small
from tests.attempt.shared import Hand, SharedSetting

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"options": {"maxToolCalls": 3}}, "maxToolCalls"),
        ({"isolation": "attempt"}, "isolation"),
        ({"mode": WriteMode.LIVE}, "live"),
    ],
)
async def test_what_cannot_be_kept_over_one_connection_is_a_setup_failure(
    tmp_path: Path, changed: dict[str, Any], reason: str
) -> None:
    async def run(hand: Hand) -> None:
        raise AssertionError

    setting = SharedSetting(tmp_path, {"one": run}, **changed)
    async with setting.open():
        await setting.make("one")
    ending = setting.finished["one"].record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert (ending.broke, ending.retryable) == (Broke.SETUP, False)
    assert reason in ending.reason


async def test_a_test_body_cannot_run_such_a_client(tmp_path: Path) -> None:
    setting = SharedSetting(tmp_path, {})
    async with setting.open(), anyio.create_task_group() as tasks:
        live = LiveAttempt(setting.job("one"), setting.hub, setting.writer)
        await tasks.start(live.serve)
        with pytest.raises(InfrastructureError, match="one connection"):
            await live.run(None)
        finished = await live.finish(None)
    assert isinstance(finished.record.ending, InfrastructureFailure)


async def test_a_server_that_cannot_be_reached_fails_each_attempt_and_is_tried_again(
    tmp_path: Path,
) -> None:
    setting = SharedSetting(tmp_path, {})
    broken = small(command="no-such-program")
    server = setting.target.servers["notes"]
    setting.target = replace(setting.target, servers={"notes": replace(server, spec=broken)})
    async with setting.open():
        for case in ("one", "other"):
            made = await setting.make(case)
            assert isinstance(made.record.ending, InfrastructureFailure)
            assert made.record.ending.broke is Broke.SETUP


async def test_a_simulated_reply_knows_the_connection_and_no_attempt(tmp_path: Path) -> None:
    async def run(hand: Hand) -> None:
        await hand.write("one")

    spec = small(replies={"write_note": {"id": "{{trial.id}}"}})
    setting = SharedSetting(tmp_path, {"one": run, "other": run}, mode=WriteMode.SIMULATED)
    server = setting.target.servers["notes"]
    setting.target = replace(setting.target, servers={"notes": replace(server, spec=spec)})
    async with setting.open():
        for case in ("one", "other"):
            await setting.make(case)
    replies: list[Any] = [
        entry.reply for case in ("one", "other") for entry in setting.finished[case].writes
    ]
    ids = [json.loads(reply["content"][0]["text"])["id"] for reply in replies]
    assert len(ids) == 2
    assert ids[0] == ids[1]
    assert ids[0].startswith("mstc")
