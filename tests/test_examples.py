"""The example evals, run as `make evals` runs them, and what they leave behind."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs_pages import blocks_of, mismatch
from tests.plugin.eval_project import EvalProject

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "example_evals"


def test_every_example_passes_and_the_readme_shows_what_is_seen(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "--mst", "example_evals"]
    done = subprocess.run(
        [*command, "--mst-results", str(tmp_path)],
        cwd=ROOT,
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (shown,) = (one for one in blocks_of("README.md") if one.directive == "make evals")
    ((_, output),) = shown.steps
    assert mismatch(output, done.stdout.replace(str(tmp_path), ".mst-results")) is None


@pytest.fixture
def git_folder(tmp_path: Path) -> Path:
    """The git example, with its repository in a folder that outlives the server."""
    shutil.copytree(EXAMPLES / "servers", tmp_path / "servers")
    text = (EXAMPLES / "git.eval.yaml").read_text(encoding="utf-8")
    given = "[servers/git_sandbox.py]"
    assert given in text
    text = text.replace(given, "[servers/git_sandbox.py, repository]")
    (tmp_path / "git.eval.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_stopped_commit_never_reaches_the_repository(git_folder: Path) -> None:
    session = EvalProject(git_folder).run("--mst", "git.eval.yaml")
    assert session.code == 0, session.text
    (entry,) = session.run.writes("commit-it")
    assert (entry["tool"], entry["mode"]) == ("git_commit", "planned")

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=git_folder / "repository", check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert git("log", "--format=%s") == "Begin"
    assert git("diff", "--cached", "--name-only") == "TODO.md"


def test_without_mst_the_examples_are_left_alone() -> None:
    command = [sys.executable, "-m", "pytest", "example_evals", "-q"]
    done = subprocess.run(
        command, cwd=ROOT, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
    )
    assert done.returncode == 5, done.stdout
