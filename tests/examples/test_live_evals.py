"""The evals that really write: what was applied is proved by what is there, and what was not."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.plugin.eval_project import EvalProject

ROOT = Path(__file__).parents[2]
LIVE = ("--mst", "--allow-live-writes")


@pytest.fixture
def scratch(tmp_path: Path) -> EvalProject:
    for name in ("live_evals", "example_evals/servers"):
        left_out = shutil.ignore_patterns("repository", "*.db*", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    return EvalProject(tmp_path)


def tickets_left(scratch: EvalProject) -> int:
    with closing(sqlite3.connect(scratch.root / "live_evals" / "tickets.db")) as db:
        (count,) = db.execute("SELECT count(*) FROM ticket").fetchone()
    return int(count)


def test_every_live_eval_passes_and_leaves_nothing_behind(scratch: EvalProject) -> None:
    session = scratch.run(*LIVE, "live_evals", within_s=100)
    assert session.code == 0, session.text
    tickets, git = session.run_of("live-tickets"), session.run_of("live-git")
    levels = {one["id"]: one["evidence"] for run in (tickets, git) for one in run.results["cases"]}
    assert levels.pop("open-another") == "requested"
    assert set(levels.values()) == {"applied"}
    assert [one["mode"] for one in tickets.writes("close-it")] == ["live"]
    assert [one["mode"] for one in tickets.writes("open-another")] == ["planned"]
    assert [one["mode"] for one in git.writes("branch-off")] == ["live"]
    assert tickets_left(scratch) == 0
    command = ["git", "branch", "--format=%(refname:short)"]
    repository = scratch.root / "live_evals" / "repository"
    branches = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    assert len(branches.stdout.split()) == 1


def test_a_client_that_only_says_so_fails_by_what_is_there(scratch: EvalProject) -> None:
    path = scratch.root / "live_evals" / "tickets.eval.yaml"
    text = path.read_text(encoding="utf-8")
    closes = [line for line in text.splitlines() if "tool: close_ticket, arguments" in line]
    path.write_text(text.replace(f"{closes[0]}\n", ""), encoding="utf-8")
    session = scratch.run(*LIVE, "live_evals/tickets.eval.yaml", "-k", "close-it")
    assert session.code == 1
    score = session.run.trial("close-it")["scores"]["outcome"]
    assert (score["pass"], score["evidence"]) == (False, "applied")
    assert 'selects "open", not string "closed"' in score["reason"]
    assert tickets_left(scratch) == 0


def test_without_leave_they_are_refused(scratch: EvalProject) -> None:
    session = scratch.run("--mst", "live_evals")
    assert session.code == 4
    assert "add --allow-live-writes" in session.text
