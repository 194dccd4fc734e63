"""A folder with these evals and the example servers, as a user would have them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.plugin.eval_project import EvalProject

HERE = Path(__file__).parent
SERVERS = HERE.parents[1] / "example_evals" / "servers"


@pytest.fixture
def showcase(tmp_path: Path) -> EvalProject:
    shutil.copytree(HERE / "evals", tmp_path, dirs_exist_ok=True)
    shutil.copytree(SERVERS, tmp_path / "servers")
    return EvalProject(tmp_path)
