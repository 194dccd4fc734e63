"""Looking, before the first attempt, whether the clients can begin at all: once for each set-up."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import anyio

from pytest_mst.clients.client import Client, preflight_of
from pytest_mst.domain.ending import InfrastructureFailure, ending_from_json, ending_to_json
from pytest_mst.domain.identity import part_hash
from pytest_mst.domain.json_value import JsonObject

_Thing = TypeVar("_Thing")
_Failure = TypeVar("_Failure")

WITHIN_S = 30.0
"""How long all of them together may take; what is not known then the attempts will tell."""

SetupKey: TypeAlias = str
"""Stands for a client with its model and options."""

Preflight: TypeAlias = Mapping[SetupKey, InfrastructureFailure]
"""Why no attempt can be made, by the set-up that it is made with."""


@dataclass(frozen=True, slots=True)
class ClientSetup:
    """A client as cases use it."""

    client: Client
    model: str | None
    options: JsonObject

    @property
    def key(self) -> SetupKey:
        """What stands for it; equal for the same client, model and options."""
        return setup_key(self.client, self.model, self.options)


def setup_key(client: Client, model: str | None, options: JsonObject) -> SetupKey:
    """Return what stands for a client with its model and options."""
    return part_hash([client.name, model, dict(options)])


def looks_ahead(client: Client) -> bool:
    """Tell whether a client has something to look at before an attempt."""
    return callable(getattr(client, "preflight", None))


async def preflight(setups: Iterable[ClientSetup]) -> dict[SetupKey, InfrastructureFailure]:
    """Let each client say, once for each set-up, why no attempt can be made with it."""

    async def look(setup: ClientSetup) -> InfrastructureFailure | None:
        return await preflight_of(setup.client, setup.options, setup.model)

    return await what_fails({one.key: one for one in setups}, look)


async def what_fails(
    looked_at: Mapping[str, _Thing], look: Callable[[_Thing], Awaitable[_Failure | None]]
) -> dict[str, _Failure]:
    """Look at several things side by side, for a bounded while.

    Args:
        looked_at: by a key of the caller's.
        look: says what is wrong with one; `None`: nothing that is certain.

    Returns:
        By the same key, what is wrong.

    """
    found: dict[str, _Failure] = {}

    async def one(key: str, thing: _Thing) -> None:
        failure = await look(thing)
        if failure is not None:
            found[key] = failure

    with anyio.move_on_after(WITHIN_S):
        async with anyio.create_task_group() as tasks:
            for key, thing in looked_at.items():
                tasks.start_soon(one, key, thing)
    return found


def preflight_to_json(found: Preflight) -> str:
    """Write what was found, for another process."""
    return json.dumps({key: ending_to_json(failure) for key, failure in found.items()})


def preflight_from_json(text: str) -> dict[SetupKey, InfrastructureFailure]:
    """Read back what `preflight_to_json` wrote."""
    endings = {key: ending_from_json(stored) for key, stored in json.loads(text).items()}
    return {key: one for key, one in endings.items() if isinstance(one, InfrastructureFailure)}
