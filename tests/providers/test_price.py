"""What tokens cost: by the eval's own prices, else by a price list, else nobody knows."""

from __future__ import annotations

import pytest

from pytest_mst.domain.eval_config import ModelPrice
from pytest_mst.domain.usage import Usage, cost_of
from pytest_mst.providers.price import priced

PRICES = {
    name: ModelPrice.model_validate(price)
    for name, price in {
        "mine": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
        "plain": {"input": 2, "output": 4},
    }.items()
}


def test_cached_tokens_are_counted_once_and_at_their_own_price() -> None:
    usage = Usage(
        input_tokens=1_000_000,
        output_tokens=100_000,
        cache_read_tokens=400_000,
        cache_write_tokens=200_000,
    )
    found = priced(usage, "mine", PRICES, "anthropic")
    assert found.cost_usd == pytest.approx(0.4 * 3 + 0.1 * 15 + 0.4 * 0.3 + 0.2 * 3.75)
    assert found.cost_source == "pricing"
    assert priced(usage, "plain", PRICES, None).cost_usd == pytest.approx(2 + 0.4)


def test_what_was_reported_stays() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.5, cost_source="reported")
    assert priced(usage, "mine", PRICES, "anthropic") is usage


def test_a_known_model_is_priced_by_the_list() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=0)
    found = priced(usage, "claude-sonnet-4-5", {}, "anthropic")
    assert found.cost_source == "genai-prices"
    assert found.cost_usd is not None
    assert 0.1 < found.cost_usd < 100


def test_nobody_knows_what_an_unknown_model_or_an_unmeasured_answer_costs() -> None:
    assert priced(Usage(input_tokens=9, output_tokens=9), "no-such", {}, "openai").cost_usd is None
    assert priced(Usage(requests=1), "mine", PRICES, "anthropic").cost_usd is None
    assert priced(Usage(requests=1), "claude-sonnet-4-5", {}, "anthropic").cost_usd is None


def test_a_stored_cost_that_is_none_is_none() -> None:
    assert cost_of({"costUsd": 0.25}) == 0.25
    for stored in (None, {}, {"costUsd": True}, {"costUsd": "1"}, {"costUsd": -1}):
        assert cost_of(stored) is None
