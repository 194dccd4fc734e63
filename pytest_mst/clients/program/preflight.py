"""Looking whether a client's program is there and starts, before anything is paid for."""

from __future__ import annotations

import anyio

from pytest_mst.clients.program.folder import client_folder
from pytest_mst.clients.program.options import program_path
from pytest_mst.clients.program.run import run_program
from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure, Scope
from pytest_mst.local.child import Command

_WITHIN_S = 20.0
"""How long `--version` may take, of a program that has never been read from the disk before."""


async def preflight_program(program: str, *, install: str) -> InfrastructureFailure | None:
    """Start a client's program once, to say what version it is.

    Args:
        program: by name or path.
        install: how it is installed, for people.

    Returns:
        Why no attempt can be made with it; `None` where it starts.

    """
    with client_folder() as folder:
        command = Command(program_path(program), ["--version"], folder.environment({}), folder.work)
        try:
            with anyio.move_on_after(_WITHIN_S) as scope:
                ran = await run_program(command, lambda _line: None)
        except InfrastructureError as error:
            return _failure(f"{error}; install it with `{install}`", error.failure.detail)
        if scope.cancelled_caught:
            return _failure(f"`{program} --version` did not end within {_WITHIN_S:g} s", None)
        if ran.exit_code != 0:
            return _failure(f"`{program} --version` {ran.how}", ran.stderr or None)
    return None


def _failure(reason: str, detail: str | None) -> InfrastructureFailure:
    return InfrastructureFailure(
        Broke.CLIENT_APP,
        reason,
        retryable=False,
        scope=Scope.VARIANT,
        accepted=False,
        detail=detail,
    )
