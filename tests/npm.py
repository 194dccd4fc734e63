"""Programs from npm, installed once for a run of the tests, where npm can be used."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

_DONE = "installed.txt"
_FAILED = "failed.txt"
_TRIED_AGAIN_AFTER_S = 600


class NotThereError(Exception):
    """The packages cannot be installed here; says why."""


def install(
    folder: Path, packages: Sequence[str], *, within_s: float, script: str | None = None
) -> Path:
    """Install packages into a folder, or find them there; gives where their programs are.

    One process installs while others wait. Where it did not work it is not tried again for a
    while, so that a run is held up once.

    Args:
        folder: where to; it stays.
        packages: each with its version.
        within_s: how long it may take.
        script: what of a package is run by node once it is there: no other script of theirs is.

    Raises:
        NotThereError: npm is not there, or cannot install.

    """
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        msg = "npm is not installed: install Node.js 20 or newer for tests of programs from npm"
        raise NotThereError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / _DONE
        if not done.exists() or done.read_text() != "\n".join(packages):
            _install_once(folder, _commands(npm, folder, packages, script), within_s)
            done.write_text("\n".join(packages))
    return folder / "node_modules" / ".bin"


def _commands(
    npm: str, folder: Path, packages: Sequence[str], script: str | None
) -> list[list[str]]:
    options = [
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--ignore-scripts",
        "--loglevel=error",
    ]
    commands = [[npm, "install", *options, "--prefix", str(folder), *packages]]
    if script is not None:
        commands.append(["node", str(folder / "node_modules" / script)])
    return commands


def _install_once(folder: Path, commands: Sequence[Sequence[str]], within_s: float) -> None:
    failed = folder / _FAILED
    if failed.exists() and time.time() - failed.stat().st_mtime < _TRIED_AGAIN_AFTER_S:
        raise NotThereError(failed.read_text())
    try:
        for command in commands:
            _run(command, folder, within_s)
    except NotThereError as error:
        failed.write_text(str(error))
        raise


def _run(command: Sequence[str], folder: Path, within_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"npm did not install within {within_s:g} s"
        raise NotThereError(msg) from None
    if done.returncode != 0:
        why = next((line for line in done.stderr.splitlines() if line.strip()), "no reason given")
        msg = f"npm cannot install ({why}): it needs a registry that it can reach"
        raise NotThereError(msg)
