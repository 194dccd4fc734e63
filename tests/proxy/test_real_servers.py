"""Real servers as people install them: nothing that they own changes in a dry run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client

from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.proxy.setting import attempt, stdio, text

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("protocol", ["auto", "legacy"])


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "a.txt").write_text("two\n")
    return folder


def state(repository: Path) -> list[str]:
    asked = ["status", "--porcelain"], ["log", "--format=%H %s", "--all"], ["branch", "--list"]
    return [git(repository, *one) for one in asked]


def git_server(repository: Path, **config: Any) -> UpstreamSpec:
    return stdio("git", "python", "-m", "mcp_server_git", "--repository", str(repository), **config)


@ERAS
async def test_a_stopped_commit_leaves_the_repository_as_it_was(
    repository: Path, protocol: str
) -> None:
    before = state(repository)
    repo = {"repo_path": str(repository)}
    with anyio.fail_after(30):
        async with attempt(git_server(repository, protocol=protocol)) as boundary:
            status = await boundary.call_tool("git", "git_status", repo)
            added = await boundary.call_tool("git", "git_add", {**repo, "files": ["a.txt"]})
            commit = {**repo, "message": "second"}
            committed = await boundary.call_tool("git", "git_commit", commit)
            async with Client(boundary.transport("git"), mode=protocol) as client:
                await client.call_tool("git_create_branch", {**repo, "branch_name": "b"})
                log = await client.call_tool("git_log", repo)
    assert "a.txt" in text(status)
    assert "NOT executed" in text(added)
    assert "NOT executed" in text(committed)
    assert not log.is_error
    assert state(repository) == before
    assert [(entry.tool, entry.arguments) for entry in boundary.entries] == [
        ("git_add", {**repo, "files": ["a.txt"]}),
        ("git_commit", commit),
        ("git_create_branch", {**repo, "branch_name": "b"}),
    ]


async def test_the_time_server_is_read_and_its_schemas_can_be_simulated() -> None:
    names = ["get_current_time", "convert_time"]
    given = {
        "get_current_time": {"timezone": "UTC"},
        "convert_time": {"source_timezone": "UTC", "time": "10:00", "target_timezone": "UTC"},
    }
    spec = stdio("time", "python", "-m", "mcp_server_time", alwaysWriteTools=["convert_time"])
    with anyio.fail_after(30):
        async with Hub() as hub:
            listing = await hub.list_tools(spec)
            async with attempt(spec, hub=hub, mode=WriteMode.SIMULATED) as boundary:
                for name in names:
                    result = await boundary.call_tool("time", name, given[name])
                    schema: Any = listing.tools[name].get("outputSchema")
                    if schema is not None:
                        jsonschema.validate(result["structuredContent"], schema)
    assert [entry.tool for entry in boundary.entries] == ["convert_time"]
