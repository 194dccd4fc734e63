"""Waiting a little longer for a call that is under way when nobody waits for it any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.tool_call import ToolCallError

_T = TypeVar("_T")


async def seen_out(make: Callable[[], Awaitable[_T]], grace_s: Callable[[], float]) -> _T:
    """Make a call; when cancelled meanwhile, let it go on for a while before that goes on.

    Args:
        make: makes the call.
        grace_s: how much longer it may take, in seconds; asked when that is to be known.

    Returns:
        What it returns; it raises what it raises.

    """
    done, kept = anyio.Event(), anyio.CancelScope(shield=True)
    results: list[_T] = []
    errors: list[ToolCallError | InfrastructureError] = []

    async def run() -> None:
        with kept:
            try:
                results.append(await make())
            except (ToolCallError, InfrastructureError) as error:  # handed on in no group
                errors.append(error)
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            await done.wait()
        except anyio.get_cancelled_exc_class():
            kept.deadline = anyio.current_time() + grace_s()
            raise
    if errors:
        raise errors[0]
    return results[0]
