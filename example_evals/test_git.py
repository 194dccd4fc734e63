"""A repository made by a fixture, handed to mcp-server-git, and looked at after the attempt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from servers.git_sandbox import make_repository, state

from pytest_mst import FinishedTrial, ScriptedClient


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    make_repository(folder)
    return folder


@pytest.fixture(scope="module")
def mst_servers(repository: Path) -> Mapping[str, Any]:
    arguments = ["-m", "mcp_server_git", "--repository", str(repository)]
    return {"git": {"transport": "stdio", "command": "python", "args": arguments}}


@pytest.fixture(scope="module")
def mst_client(repository: Path) -> ScriptedClient:
    commit = {"repo_path": str(repository), "message": "Note the changelog"}
    return ScriptedClient(
        [
            {"call": {"server": "git", "tool": "git_commit", "arguments": commit}},
            {"answer": "{{last.text}}"},
        ]
    )


@pytest.mark.mst(input="Commit what is staged", config="git.eval.yaml", trials=2)
@pytest.mark.writes(server="git", tool="git_commit", exclusive=True)
def test_a_stopped_commit_leaves_the_repository_as_it_was(
    trial: FinishedTrial, repository: Path
) -> None:
    assert "NOT executed" in trial.answer
    assert state(repository) == "commits: 1, staged: TODO.md"
