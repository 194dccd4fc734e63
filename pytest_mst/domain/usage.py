"""What asking a model took: requests, tokens, money, time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

CostSource: TypeAlias = Literal["reported", "pricing", "genai-prices"]
"""Who says what it cost: the client or the provider itself, the eval's `pricing`, or the price
list of the genai-prices package."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one attempt, or one judge of it, used. What nobody said is `None`, never 0."""

    requests: int | None = None
    """Requests to the model that were answered."""
    input_tokens: int | None = None
    """All of the input, what was read from or written to a cache included."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cost_usd: float | None = None
    cost_source: CostSource | None = None
    model_ms: int | None = None
    """Time in the model: while a request was under way, less the waits between tries."""
    tools_ms: int | None = None
    """Time in tools: while at least one call was under way."""

    def to_json(self) -> dict[str, object]:
        """Write it as stored traces and scores hold it; what is not known has no key."""
        fields: dict[str, object] = {
            "requests": self.requests,
            "inputTokens": self.input_tokens,
            "outputTokens": self.output_tokens,
            "cacheReadTokens": self.cache_read_tokens,
            "cacheWriteTokens": self.cache_write_tokens,
            "costUsd": self.cost_usd,
            "costSource": self.cost_source,
            "modelMs": self.model_ms,
            "toolsMs": self.tools_ms,
        }
        return {name: value for name, value in fields.items() if value is not None}


def cost_of(usage: Mapping[str, object] | None) -> float | None:
    """Return what a stored usage says that it cost, in USD; `None` where it does not say."""
    cost = None if usage is None else usage.get("costUsd")
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    return float(cost) if is_number and cost >= 0 else None  # type: ignore[arg-type,operator]
