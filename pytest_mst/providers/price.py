"""What tokens cost: as the eval's `pricing` says, else by the price list of genai-prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

from pytest_mst.domain.eval_config import ModelPrice
from pytest_mst.domain.usage import Usage
from pytest_mst.providers.endpoint import Api

_PER = 1_000_000
_PRICE_LISTS: Mapping[Api, str] = {
    "anthropic": "anthropic",
    "openai": "openai",
    "openai-responses": "openai",
    "google": "google",
}
"""What genai-prices calls the APIs."""


def priced(usage: Usage, model: str, pricing: Mapping[str, ModelPrice], api: Api | None) -> Usage:
    """Return a usage with what it cost, as far as that can be known.

    What was reported stays; then the eval's own prices count, then the list of genai-prices as it
    was packaged (nothing is fetched). Where none of them knows the model, there is no cost.

    Args:
        usage: what was used.
        model: who was asked, as the API or the eval names it.
        pricing: prices by model.
        api: the API; `None` where it is not known, and only `pricing` counts.

    """
    if usage.cost_usd is not None:
        return usage
    price = pricing.get(model)
    if price is not None:
        cost = _own(usage, price)
        return usage if cost is None else replace(usage, cost_usd=cost, cost_source="pricing")
    listed = None if api is None else _listed(usage, model, api)
    return usage if listed is None else replace(usage, cost_usd=listed, cost_source="genai-prices")


def _own(usage: Usage, price: ModelPrice) -> float | None:
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    read, written = usage.cache_read_tokens or 0, usage.cache_write_tokens or 0
    fresh = max(0, (usage.input_tokens or 0) - read - written)
    return (
        fresh * price.input
        + (usage.output_tokens or 0) * price.output
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
    ) / _PER


def _listed(usage: Usage, model: str, api: Api) -> float | None:
    if usage.input_tokens is None and usage.output_tokens is None:
        return None
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ModuleNotFoundError:
        return None
    tokens = Tokens(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    try:
        price: Decimal = calc_price(tokens, model, provider_id=_PRICE_LISTS[api]).total_price
    except (LookupError, ValueError):  # a model that the list does not know; counts that cannot be
        return None
    return float(price)
