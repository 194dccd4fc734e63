"""mcp-server-git on a repository made for it: one commit, one staged change.

Usage: python git_sandbox.py [FOLDER]. Without a folder the repository is a temporary one, gone
when the server ends.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mcp_server_git.server import serve

AUTHOR = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints, whatever this machine's git settings are."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *AUTHOR, *arguments],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout.strip()


def make_repository(folder: Path) -> None:
    """Make a repository with one commit and one staged change, where there is none yet."""
    if (folder / ".git").exists():
        return
    folder.mkdir(exist_ok=True)
    git(folder, "init", "--quiet")
    notes = folder / "TODO.md"
    notes.write_text("Release 2.4\n", encoding="utf-8")
    git(folder, "add", "TODO.md")
    git(folder, "commit", "--quiet", "--message", "Begin")
    notes.write_text("Release 2.4\nWrite the changelog\n", encoding="utf-8")
    git(folder, "add", "TODO.md")


def state(folder: Path) -> str:
    """Describe a repository: how many commits it has, and what is staged."""
    commits = git(folder, "rev-list", "--count", "HEAD")
    staged = git(folder, "diff", "--cached", "--name-only")
    return f"commits: {commits}, staged: {staged}"


def serve_repository(folder: Path) -> None:
    """Serve a repository until the client hangs up; it is the folder that `.` stands for."""
    make_repository(folder)
    os.chdir(folder)
    try:
        asyncio.run(serve(folder))
    finally:
        os.chdir(folder.parent)


def main() -> None:
    """Serve the repository in the folder that was named, or in a temporary one."""
    if len(sys.argv) > 1:
        serve_repository(Path(sys.argv[1]).resolve())
        return
    with tempfile.TemporaryDirectory(prefix="git-sandbox-") as name:
        serve_repository(Path(name).resolve())


if __name__ == "__main__":
    main()
