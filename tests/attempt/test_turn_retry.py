"""Waiting inside a turn: noted, shared, given up in time, and left out of what is measured."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Broke, InfrastructureFailure, Trial
from pytest_mst.domain.retry import RetryHint, RetryKind
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.store.backoff import Backoffs
from tests.attempt.setting import target
from tests.attempt.test_retry import NO_SERVER, Waits, make

pytestmark = pytest.mark.anyio

BUSY = InfrastructureFailure(Broke.PROVIDER, "too many requests", retryable=True)


class Asking:
    """A client whose every request is refused so often before it is answered."""

    name = "asking"

    def __init__(self, *refused: int, hangs: bool = False, hint: RetryHint | None = None) -> None:
        self._refused = refused
        self._hangs = hangs
        self._hint = hint or RetryHint(RetryKind.RATE_LIMIT)
        self.runs = 0

    async def run(self, request: ClientRequest) -> Trial:
        self.runs += 1
        request.trace.evidence = "structured"
        for number, times in enumerate(self._refused):
            request.trace.events.append(TraceEvent(f"turn-{number}", kind="command"))
            for one in range(times):
                await request.turns.wait(BUSY, self._hint, next_try=one + 2)
            if self._hangs:
                await anyio.sleep_forever()
            request.turns.answered()
        request.trace.answer = "done"
        return Trial()


async def test_waits_of_every_turn_are_noted_and_the_attempt_is_made_once(tmp_path: Path) -> None:
    waits, client = Waits(), Asking(2, 0, 1)
    made = await make(target(client=client, **NO_SERVER), tmp_path, waits.rules())
    assert isinstance(made.finished.record.ending, Trial)
    assert client.runs == 1
    assert waits.made_s == [2.0, 4.0, 2.0]
    tries = made.finished.record.tries
    assert [(one.reason, one.next_try, one.wait_ms) for one in tries] == [
        ("rate_limit", 2, 2000),
        ("rate_limit", 3, 4000),
        ("rate_limit", 2, 2000),
    ]


async def test_what_the_endpoint_asks_for_is_waited_for(tmp_path: Path) -> None:
    waits = Waits()
    client = Asking(1, hint=RetryHint(RetryKind.OVERLOADED, 7.0))
    await make(target(client=client, **NO_SERVER), tmp_path, waits.rules())
    assert waits.made_s == [7.0]


async def test_a_turn_whose_tries_are_used_up_ends_the_attempt_and_is_not_begun_anew(
    tmp_path: Path,
) -> None:
    waits, client = Waits(), Asking(9)
    made = await make(target(client=client, **NO_SERVER), tmp_path, waits.rules())
    ending = made.finished.record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert (ending.broke, ending.retryable) == (Broke.PROVIDER, True)
    assert ending.reason == "retries exhausted (4 attempts, rate_limit): too many requests"
    assert client.runs == 1
    assert len(waits.made_s) == 3


async def test_a_wait_that_does_not_fit_the_deadline_is_not_begun(tmp_path: Path) -> None:
    waits = Waits()
    client = Asking(1, hint=RetryHint(RetryKind.RATE_LIMIT, 50.0))
    made = await make(target(client=client, **NO_SERVER), tmp_path, waits.rules(), timeout_s=5.0)
    ending = made.finished.record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert ending.broke is Broke.PROVIDER
    assert "does not fit" in ending.reason
    assert waits.made_s == []


async def test_waits_are_in_no_duration_and_give_the_place_away(tmp_path: Path) -> None:
    places: list[str] = []

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        places.append("left")
        yield
        places.append("back")

    async def sleep(_: float) -> None:
        await anyio.sleep(0.5)

    rules = RunRules(RetryPolicy(dice=lambda: 0.0, sleep=sleep))
    made = await make(target(client=Asking(1, 1), **NO_SERVER), tmp_path, rules, away)
    assert isinstance(made.finished.record.ending, Trial)
    assert places == ["left", "back", "left", "back"]
    assert made.finished.record.duration_ms < 500


async def test_a_deadline_while_the_endpoint_refuses_is_the_providers(tmp_path: Path) -> None:
    client = Asking(1, hangs=True)
    made = await make(target(client=client, **NO_SERVER), tmp_path, Waits().rules(), timeout_s=3.0)
    ending = made.finished.record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert (ending.broke, ending.retryable) == (Broke.PROVIDER, True)


async def test_a_deadline_after_an_answer_is_a_deadline(tmp_path: Path) -> None:
    client = Asking(0, hangs=True)
    made = await make(target(client=client, **NO_SERVER), tmp_path, Waits().rules(), timeout_s=0.3)
    ending = made.finished.record.ending
    assert isinstance(ending, InfrastructureFailure)
    assert ending.broke is Broke.DEADLINE


async def test_others_that_ask_the_same_endpoint_hear_of_it(tmp_path: Path) -> None:
    backoffs = Backoffs(tmp_path / "backoffs")
    waits, client = Waits(), Asking(1)
    await make(target(client=client, **NO_SERVER), tmp_path, waits.rules(backoffs))
    known = backoffs.left("asking")
    assert known is not None
    assert known.kind is RetryKind.RATE_LIMIT
