"""What a session may spend on models: when that is used up, no other attempt begins."""

from __future__ import annotations

from pytest_mst.domain.usage import Usage
from pytest_mst.store.spent import SpentFile


class Budget:
    """A session's limit of cost, over all its processes and evals.

    Attempts under way end and are recorded, so that what is spent in the end may be more.
    """

    def __init__(self, limit_usd: float, spent: SpentFile) -> None:
        """Take a limit.

        Args:
            limit_usd: from where on nothing begins.
            spent: where what was spent is noted.

        """
        self.limit_usd = limit_usd
        self.spent = spent

    def spend(self, cost_usd: float | None) -> None:
        """Note what an attempt, or a judge of one, cost; nothing where nobody knows."""
        if cost_usd:
            self.spent.add(cost_usd)

    def spend_usage(self, usage: Usage) -> None:
        """Note what a use of a model cost."""
        self.spend(usage.cost_usd)

    @property
    def why_stopped(self) -> str | None:
        """Why nothing is to begin any more, in one line; `None` as long as there is some left."""
        total_usd = self.spent.total_usd()
        if total_usd < self.limit_usd:
            return None
        return (
            f"this session has spent ${total_usd:.4g}, and --mst-max-cost is ${self.limit_usd:g}: "
            "finish the run with more, or without it"
        )
