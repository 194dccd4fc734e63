"""Agent CLIs from npm: pinned, each installed once into a folder that stays, or skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

import pytest

from tests.npm import NotThereError, install

NpmClient: TypeAlias = Literal["claude-code", "codex", "gemini-cli"]

PACKAGES: dict[NpmClient, str] = {
    "claude-code": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.171.0",
    "gemini-cli": "@google/gemini-cli@0.61.0",
}
PROGRAMS: dict[NpmClient, str] = {"claude-code": "claude", "codex": "codex", "gemini-cli": "gemini"}
SCRIPTS: dict[NpmClient, str] = {"claude-code": "@anthropic-ai/claude-code/install.cjs"}
"""What has to be run once the package is there: it puts the program of this machine in place."""
INSTALLED_WITHIN_S = 180.0


def program_from_npm(
    client: NpmClient, request: pytest.FixtureRequest, factory: pytest.TempPathFactory
) -> str:
    """Give the path of a client's program; what needs it is skipped where it cannot be had."""
    cache = getattr(request.config, "cache", None)
    kept = cache.mkdir("clients-from-npm") if cache is not None else None
    root: Path = kept or factory.getbasetemp().parent / "clients-from-npm"
    try:
        programs = install(
            root / client,
            [PACKAGES[client]],
            within_s=INSTALLED_WITHIN_S,
            script=SCRIPTS.get(client),
        )
    except NotThereError as error:
        pytest.skip(str(error))
    return str(programs / PROGRAMS[client])
