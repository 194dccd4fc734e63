"""Virtual environments with packages from an index, made once, where pip can be used."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.npm import NotThereError

_DONE = "installed.txt"
_FAILED = "failed.txt"
_TRIED_AGAIN_AFTER_S = 600


def environment(folder: Path, packages: Sequence[str], *, within_s: float) -> Path:
    """Make a virtual environment with packages, or find it there; gives its folder.

    One process makes it while others wait. Where it did not work it is not tried again for a
    while, so that a run is held up once.

    Args:
        folder: where to; it stays.
        packages: each with its version.
        within_s: how long it may take.

    Raises:
        NotThereError: pip cannot install them.

    """
    folder.mkdir(parents=True, exist_ok=True)
    made, done, failed = folder / "venv", folder / _DONE, folder / _FAILED
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == "\n".join(packages):
            return made
        if failed.exists() and time.time() - failed.stat().st_mtime < _TRIED_AGAIN_AFTER_S:
            raise NotThereError(failed.read_text())
        try:
            _run([sys.executable, "-m", "venv", "--clear", str(made)], within_s)
            pip = [str(made / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
            _run([*pip, "install", "-qq", *packages], within_s)
        except NotThereError as error:
            failed.write_text(str(error))
            raise
        done.write_text("\n".join(packages))
    return made


def _run(command: Sequence[str], within_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        msg = f"pip did not install within {within_s:g} s"
        raise NotThereError(msg) from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        msg = f"pip cannot install ({lines[-1] if lines else 'no reason given'})"
        raise NotThereError(msg)
