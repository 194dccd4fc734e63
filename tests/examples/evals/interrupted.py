"""A run that is stopped: the first client presses Ctrl-C and never ends."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from pytest_mst import ClientRequest, FinishedTrial


@pytest.fixture(scope="module")
def mst_config() -> Mapping[str, Any]:
    return {"name": "interrupted"}


@pytest.fixture(scope="module")
def mst_client() -> object:
    async def press_ctrl_c(request: ClientRequest) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.sleep_forever()
        return request.input

    return press_ctrl_c


@pytest.mark.mst(input="Hello", trials=3)
def test_hello(trial: FinishedTrial) -> None:
    assert trial.answer == "Hello"
