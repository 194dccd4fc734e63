"""A client that finds out that nothing it does can be of use: it stops the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_mst import ClientRequest, FinishedTrial, RunFatalError


@pytest.fixture(scope="module")
def mst_config() -> Mapping[str, Any]:
    return {"name": "closed-account"}


@pytest.fixture(scope="module")
def mst_client() -> object:
    async def ask(request: ClientRequest) -> str:
        if request.trial == 1:
            msg = "the account is closed"
            raise RunFatalError(msg, cause="provider")
        return request.input

    return ask


@pytest.mark.mst(input="Translate", trials=3)
def test_translates(trial: FinishedTrial) -> None:
    assert trial.answer == "Translate"


@pytest.mark.mst(input="Summarise", trials=3)
def test_summarises(trial: FinishedTrial) -> None:
    assert trial.answer == "Summarise"
