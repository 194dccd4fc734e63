"""Attempts by clients that are real programs, their model played on loopback."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import anyio

from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.clients.client import Client
from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import AT, Collected, job, lines_of, small, target, writer_in
from tests.model_provider import Asked, ModelProvider, Step

BOUND_S = 120


class AgentClient(Client, Protocol):
    """A client that looks ahead."""

    async def preflight(
        self, options: JsonObject, model: str | None
    ) -> InfrastructureFailure | None: ...


@dataclass
class Made:
    """An attempt by such a program, and what the provider saw of it."""

    collected: Collected
    provider: ModelProvider
    waits_s: list[float] = field(default_factory=list)

    @property
    def ending(self) -> tuple[str, bool]:
        failure = self.collected.failure
        return failure.broke.value, failure.retryable

    @property
    def asked(self) -> int:
        return len(self.provider.asked)

    @property
    def trace(self) -> dict[str, Any]:
        found: dict[str, Any] = self.collected.stored["trace"]
        return found

    @property
    def joined(self) -> bool:
        """Whether each write in the record has the id of its call in the trace."""
        entries = lines_of(self.collected.layout.writes(AT))
        ids = {one["id"] for one in self.trace["events"]}
        return bool(entries) and all(one["joinId"] in ids for one in entries)


@dataclass
class RealProgram:
    """Makes attempts by one client's program; each client's tests say which."""

    program: str
    folder: Path

    client: ClassVar[AgentClient]
    model: ClassVar[str]
    api_path: ClassVar[str] = ""
    """What the base URL of its API has after the provider's address."""
    retries: ClassVar[int] = 1
    key_variables: ClassVar[tuple[str, ...]]
    """Which hold its key; the first that is set counts."""
    models_begin: ClassVar[str]
    """How the ids of its API's models begin."""
    joins: ClassVar[bool] = True
    """Whether it sends its own id of a call along."""

    async def make(
        self,
        script: Sequence[Step] | Callable[[Asked], Step],
        *,
        forever: bool = False,
        options: Mapping[str, Any] | None = None,
        timeout_s: float = 50,
        server: Sequence[str] = (),
        label: str = "notes",
        retries: int | None = None,
        case: Mapping[str, Any] | None = None,
    ) -> Made:
        """Make one attempt; our own tries are two, and wait for nothing."""
        waits: list[float] = []

        async def sleep(wait_s: float) -> None:
            waits.append(wait_s)

        allowed = self.retries if retries is None else retries
        given = {"command": self.program, "maxRetries": allowed, **(options or {})}
        with ModelProvider(script, forever=forever, any_request=False) as provider:
            given.setdefault("baseUrl", provider.url + self.api_path)
            spec = small(*server, label=label)
            at = target(spec, client=self.client, options=given, model=self.model)
            rules = RunRules(retry=RetryPolicy(tries=2, dice=lambda: 0.0, sleep=sleep))
            writer = writer_in(self.folder)
            with anyio.fail_after(BOUND_S):
                async with Hub() as hub:
                    ended = await collect(job(at, case, timeout_s=timeout_s), hub, writer, rules)
            writer.close()
            return Made(Collected(ended, writer.layout), provider, waits)
