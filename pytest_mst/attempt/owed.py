"""Making up for the cleanups that attempts of a run owe: their process was ended in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import anyio

from pytest_mst.attempt.live_plan import LivePlan
from pytest_mst.attempt.live_steps import CLEANUP_LIMIT_S, clean_up, note_cleanup
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.append import RunWriter
from pytest_mst.store.debts import Debt

NO_STEPS: Final = "the eval has no `cleanup` steps any more: put them back"
_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class Unpaid:
    """A cleanup that is still owed, and why."""

    debt: Debt
    reason: str


async def pay(
    hub: Hub, writer: RunWriter, live: LivePlan | None, debts: Sequence[Debt]
) -> list[Unpaid]:
    """Take the cleanup steps of attempts that could not, with their own ids, some at once.

    Args:
        hub: the servers' connections.
        writer: of the run; what came of each cleanup is noted in its journal.
        live: the steps as the eval has them today; `None` where it has none any more.
        debts: what is owed.

    Returns:
        What is still owed, in the order of the debts.

    """
    if live is None or not live.cleanup:
        return [Unpaid(debt, NO_STEPS) for debt in debts]
    unpaid: dict[str, Unpaid] = {}
    limit = anyio.CapacityLimiter(_AT_ONCE)

    async def one(debt: Debt) -> None:
        async with limit:
            error = await clean_up(hub, live, debt.trial_id, CLEANUP_LIMIT_S)
            error = note_cleanup(writer, debt, error)
        if error is not None:
            unpaid[debt.trial_id] = Unpaid(debt, error)

    async with anyio.create_task_group() as tasks:
        for debt in debts:
            tasks.start_soon(one, debt)
    return [unpaid[debt.trial_id] for debt in debts if debt.trial_id in unpaid]
