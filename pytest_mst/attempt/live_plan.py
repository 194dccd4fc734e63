"""What surrounds a live attempt: steps before and after it, and the servers they go to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_mst.domain.eval_config import EvalConfig, ServerStep, Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.proxy.upstream_spec import UpstreamSpec


@dataclass(frozen=True, slots=True)
class LivePlan:
    """The calls of our own that live attempts of a variant need."""

    setup: tuple[ServerStep, ...]
    """Before the client is given anything, in this order."""
    cleanup: tuple[ServerStep, ...]
    """After it, however it ended."""
    specs: Mapping[str, UpstreamSpec]
    """By label: the servers of steps and outcome checks, each over a connection of our own."""
    key: str = ""
    """Of the set-up and of those servers' definitions, hashed. What is done after the client has
    ended makes no other attempt of it."""


def own_labels(loaded: LoadedEval) -> tuple[str, ...]:
    """Return the labels of the servers that steps and outcome checks name, in the config's order.

    A variant need not give them to its client.
    """
    named = set(_named(loaded))
    return tuple(label for label in loaded.config.servers if label in named)


def _named(loaded: LoadedEval) -> Iterator[str]:
    for step in (*loaded.config.setup, *loaded.config.cleanup):
        yield step.server
    for one in loaded.cases:
        for check in one.case.expected.outcome or ():
            yield check.server


def states_live(config: EvalConfig, variants: Sequence[Variant]) -> bool:
    """Tell whether a server of one of the variants is said to be live."""
    stated = [config.writes, *(variant.writes for variant in variants)]
    return any(isinstance(one, Mapping) and "live" in one.values() for one in stated)
