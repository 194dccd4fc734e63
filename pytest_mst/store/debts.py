"""The cleanups that live attempts of a run still owe, as its journal has them."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.run import AttemptId
from pytest_mst.store.journal import TornLine, read_journal
from pytest_mst.store.layout import RunLayout


@dataclass(frozen=True, slots=True)
class Debt:
    """A cleanup that was not made: what the attempt wrote may still be there."""

    id: AttemptId
    locator: str
    trial_id: str
    """What `{{trial.id}}` stood for; an attempt that is collected anew has another."""
    error: str | None = None
    """Why the cleanup failed when it was last tried; `None` where nobody has tried yet."""


def owed_cleanups(layout: RunLayout) -> tuple[Debt, ...]:
    """Return the cleanups that are owed, in the order the attempts began.

    Raises:
        StoreError: the journal is there and cannot be opened.

    """
    owed: dict[str, Debt] = {}
    for line in read_journal(layout):
        if isinstance(line, TornLine):
            continue
        if line.kind == "owes":
            owed[line.trial_id] = Debt(line.id, line.locator, line.trial_id, line.error)
        elif line.kind == "paid":
            owed.pop(line.trial_id, None)
    return tuple(owed.values())
