"""What live attempts of a run wrote and nobody has taken away yet."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.report.text import shown
from pytest_mst.store.debts import Debt, owed_cleanups
from pytest_mst.store.layout import RunLayout

_REASON_CHARS = 500


@dataclass(frozen=True, slots=True)
class OwedCleanup:
    """One attempt that was not cleaned up after."""

    debt: Debt
    reason: str

    @property
    def line(self) -> str:
        """What people read of it."""
        at = self.debt.id
        return (
            f"not cleaned up: {shown(at.case)} [{shown(at.variant)}] trial {at.trial}, which wrote "
            f"as {shown(self.debt.trial_id)}: {shown(self.reason, _REASON_CHARS)} "
            f"({shown(self.debt.locator)})"
        )

    def to_json(self) -> dict[str, object]:
        """Write it as `summary.json` holds it."""
        at = self.debt.id
        return {
            "variant": at.variant,
            "id": at.case,
            "trial": at.trial,
            "locator": self.debt.locator,
            "trialId": self.debt.trial_id,
            "reason": self.reason,
        }


def owed_by(layout: RunLayout) -> tuple[OwedCleanup, ...]:
    """Return the cleanups that a run still owes, in the order its attempts began.

    Raises:
        StoreError: the journal is there and cannot be opened.

    """
    cut_off = "its process ended before it could"
    return tuple(OwedCleanup(debt, debt.error or cut_off) for debt in owed_cleanups(layout))
