"""What the plugin's tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.eval_project import Bell, EvalProject


@pytest.fixture
def project(tmp_path: Path) -> EvalProject:
    return EvalProject(tmp_path)


@pytest.fixture
def bell(project: EvalProject) -> Iterator[Bell]:
    bell = Bell(project)
    yield bell
    bell.close()
