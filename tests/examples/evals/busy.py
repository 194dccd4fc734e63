"""A provider that has a bad hour: it turns the client away the first time that it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_mst import ClientRequest, FinishedTrial, InfrastructureError

ASKED = Path(__file__).with_name("asked-before")


@pytest.fixture(scope="module")
def mst_config() -> Mapping[str, Any]:
    return {"name": "busy"}


@pytest.fixture(scope="module")
def mst_client() -> object:
    async def ask(request: ClientRequest) -> str:
        if request.input == "Summarise" and not ASKED.exists():
            ASKED.touch()
            broke = "provider"
            raise InfrastructureError(broke, "overloaded")
        return f"{request.input}: done"

    return ask


@pytest.mark.mst(input="Translate", trials=2)
def test_translates(trial: FinishedTrial) -> None:
    assert "done" in trial.answer


@pytest.mark.mst(input="Summarise", trials=2)
def test_summarises(trial: FinishedTrial) -> None:
    assert "done" in trial.answer
