"""Servers from npm, installed once for a run of the tests, where npm and its registry are there."""

from __future__ import annotations

from pathlib import Path

from tests.npm import NotThereError
from tests.npm import install as install_packages

__all__ = ("NotThereError", "install")

VERSION = "2026.8.31"
PACKAGES = [
    f"@modelcontextprotocol/server-{name}@{VERSION}"
    for name in ("everything", "filesystem", "memory")
]
INSTALLED_WITHIN_S = 120


def install(folder: Path) -> Path:
    """Install the servers into a folder, or find them there; gives where their programs are.

    Raises:
        NotThereError: npm is not there, or cannot install.

    """
    return install_packages(folder, PACKAGES, within_s=INSTALLED_WITHIN_S)
