"""Servers from npm, installed once for a run of the tests, where npm and its registry are there."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from pathlib import Path

VERSION = "2026.8.31"
PACKAGES = [
    f"@modelcontextprotocol/server-{name}@{VERSION}"
    for name in ("everything", "filesystem", "memory")
]
INSTALLED_WITHIN_S = 120
_DONE = "installed.txt"
_FAILED = "failed.txt"
_TRIED_AGAIN_AFTER_S = 600


class NotThereError(Exception):
    """The servers cannot be installed here; says why."""


def install(folder: Path) -> Path:
    """Install the servers into a folder, or find them there; gives where their programs are.

    One process installs while others wait. Where it did not work it is not tried again for a
    while, so that a run is held up once.

    Raises:
        NotThereError: npm is not there, or cannot install.

    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        msg = "npm is not installed: install Node.js 20 or newer to compare servers from npm"
        raise NotThereError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / _DONE
        if not done.exists() or done.read_text() != "\n".join(PACKAGES):
            _install_once(npm, folder)
            done.write_text("\n".join(PACKAGES))
    return folder / "node_modules" / ".bin"


def _install_once(npm: str, folder: Path) -> None:
    failed = folder / _FAILED
    if failed.exists() and time.time() - failed.stat().st_mtime < _TRIED_AGAIN_AFTER_S:
        raise NotThereError(failed.read_text())
    try:
        _run_npm(npm, folder)
    except NotThereError as error:
        failed.write_text(str(error))
        raise


def _run_npm(npm: str, folder: Path) -> None:
    options = [
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--ignore-scripts",
        "--loglevel=error",
    ]
    command = [npm, "install", *options, "--prefix", str(folder), *PACKAGES]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALLED_WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"npm did not install the servers within {INSTALLED_WITHIN_S} s"
        raise NotThereError(msg) from None
    if done.returncode != 0:
        why = next((line for line in done.stderr.splitlines() if line.strip()), "no reason given")
        msg = f"npm cannot install the servers ({why}): it needs a registry that it can reach"
        raise NotThereError(msg)
