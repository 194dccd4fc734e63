"""What attempts and their judges used, as far as somebody said it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_mst.domain.score import GradeOutcome, Score
from pytest_mst.domain.usage import cost_of
from pytest_mst.report.text import counted


@dataclass(frozen=True, slots=True)
class Spending:
    """Money and tokens; what nobody knows is counted, and is in no sum."""

    client_usd: float = 0.0
    judge_usd: float = 0.0
    priced: int = 0
    """How many uses of a model there is a cost of: a client's in an attempt, a judge's of one."""
    unpriced: int = 0
    """How many there is none of."""
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Spending) -> Spending:
        """Add two, entry by entry."""
        return Spending(
            self.client_usd + other.client_usd,
            self.judge_usd + other.judge_usd,
            self.priced + other.priced,
            self.unpriced + other.unpriced,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    @classmethod
    def of(cls, usage: Mapping[str, Any] | None, outcomes: Iterable[GradeOutcome] = ()) -> Spending:
        """Return what one attempt took.

        Args:
            usage: of its client, as its trace has it.
            outcomes: what its graders said; judges say what they used in the details.

        """
        spent = cls() if not usage else _use(usage, is_judge=False)
        for one in _judges(outcomes):
            spent += _use(one, is_judge=True)
        return spent

    @property
    def total_usd(self) -> float | None:
        """What it cost; `None` where there is no cost of anything."""
        return self.client_usd + self.judge_usd if self.priced else None

    def to_json(self) -> dict[str, object]:
        """Write it as stored summaries hold it: nothing where no model was used."""
        if not self.priced and not self.unpriced:
            return {}
        return {
            "costUsd": self.total_usd,
            "judgeCostUsd": self.judge_usd if self.priced else None,
            "usesWithoutCost": self.unpriced,
            "usage": {"inputTokens": self.input_tokens, "outputTokens": self.output_tokens},
        }


NO_SPENDING = Spending()


def _judges(outcomes: Iterable[GradeOutcome]) -> Iterator[Mapping[str, Any]]:
    for outcome in outcomes:
        usage = outcome.details.get("usage") if isinstance(outcome, Score) else None
        if isinstance(usage, Mapping):
            yield usage


def _use(usage: Mapping[str, Any], *, is_judge: bool) -> Spending:
    tokens = {name: _count(usage.get(name)) for name in ("inputTokens", "outputTokens")}
    cost = cost_of(usage)
    used = any(tokens.values()) or _count(usage.get("requests"))
    if cost is None and not used:
        return Spending()
    return Spending(
        client_usd=0.0 if is_judge else cost or 0.0,
        judge_usd=(cost or 0.0) if is_judge else 0.0,
        priced=int(cost is not None),
        unpriced=int(cost is None),
        input_tokens=tokens["inputTokens"],
        output_tokens=tokens["outputTokens"],
    )


def _count(value: object) -> int:
    is_count = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return value if is_count else 0  # type: ignore[return-value]


def cost_lines(spending: Spending) -> list[str]:
    """Return the line that says what a run cost; none where no model was used."""
    if not spending.priced and not spending.unpriced:
        return []
    total = spending.total_usd
    tokens = f"{spending.input_tokens} tokens in, {spending.output_tokens} out"
    if total is None:
        uses = counted(spending.unpriced, "use")
        return [f"cost unknown: no price for any of {uses} of models; {tokens}"]
    judges = f", judges {usd(spending.judge_usd)}" if spending.judge_usd else ""
    left_out = ""
    if spending.unpriced:
        left_out = f"; {counted(spending.unpriced, 'use')} without a price left out"
    shares = f" (clients {usd(spending.client_usd)}{judges})" if judges else ""
    return [f"cost {usd(total)}{shares}; {tokens}{left_out}"]


def usd(amount: float) -> str:
    """Write an amount for people: cents, and more digits where it is less than one."""
    return f"${amount:.2f}" if amount >= _CENT or amount == 0 else f"${amount:.2g}"


_CENT = 0.01
