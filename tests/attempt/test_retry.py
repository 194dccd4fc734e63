"""Trying again inside an attempt: what certainly had no effect, and not past the deadline."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.clock import Clock
from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.job import Target
from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.attempt.retry import Away
from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.clients.client import ClientRequest, endpoint_of
from pytest_mst.clients.function import FunctionClient
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.ending import Broke, InfrastructureError, Trial
from pytest_mst.domain.retry import RetryHint, RetryKind
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.proxy.hub import Hub
from pytest_mst.store.backoff import Backoff, Backoffs
from pytest_mst.store.read import StoredAttempt, read_attempt
from tests.attempt.setting import (
    AT,
    DONE,
    READ,
    WRITE,
    Collected,
    job,
    lines_of,
    scripted,
    target,
    writer_in,
)

pytestmark = pytest.mark.anyio

LIMITED = RetryHint(RetryKind.RATE_LIMIT)


NO_SERVER: dict[str, Any] = {"servers": {}, "tools": {}, "modes": {}, "definitions": {}}


def limited(**more: Any) -> dict[str, Any]:
    """Return the step that fails as a client does whose API takes no more requests."""
    said = {"broke": "provider", "reason": "too many requests", "accepted": False}
    return {"fail": {**said, "retry": "rate_limit", **more}}


@dataclass
class Waits:
    """Rules that wait without time passing, and keep what was waited for."""

    made_s: list[float] = field(default_factory=list)

    def rules(self, backoffs: Backoffs | None = None) -> RunRules:
        return RunRules(RetryPolicy(dice=lambda: 0.0, sleep=self._sleep), backoffs)

    async def _sleep(self, wait_s: float) -> None:
        self.made_s.append(wait_s)
        await anyio.lowlevel.checkpoint()


class Counting:
    """A client that raises what it is given, one for each try, and then answers."""

    name = "counting"

    def __init__(self, *errors: BaseException, call: bool = False) -> None:
        self._errors = errors
        self._call = call
        self.tries: list[int] = []

    async def run(self, request: ClientRequest) -> Trial:
        self.tries.append(request.attempt_try)
        request.trace.events.append(TraceEvent(f"thought-{request.attempt_try}", kind="command"))
        request.trace.answer = f"try {request.attempt_try}"
        if self._call:
            await request.tools.call_tool("notes", "read_note", None)
        if request.attempt_try < len(self._errors):
            raise self._errors[request.attempt_try]
        return Trial()


def refused(hint: RetryHint | None = LIMITED, **more: Any) -> InfrastructureError:
    """Return what a client raises that certainly had no effect, unless said otherwise."""
    said: dict[str, Any] = {"accepted": False, "retry": hint, **more}
    return InfrastructureError(said.pop("broke", "provider"), "too many requests", **said)


async def make(
    target: Target, folder: Path, rules: RunRules, away: Away | None = None, **fields: Any
) -> Collected:
    writer = writer_in(folder)
    more: Mapping[str, Any] = {} if away is None else {"away": away}
    with anyio.fail_after(20):
        async with Hub() as hub:
            finished = await collect(job(target, **fields), hub, writer, rules, **more)
    writer.close()
    return Collected(finished, writer.layout)


async def test_limited_twice_and_then_not_is_one_trial_with_its_waits_stored(
    tmp_path: Path,
) -> None:
    waits = Waits()
    made = await make(scripted(limited(tries=2), READ, DONE), tmp_path, waits.rules())
    assert made.ending == Trial()
    assert waits.made_s == [2, 4]
    assert [(one["reason"], one["waitMs"]) for one in made.stored["tries"]] == [
        ("rate_limit", 2000),
        ("rate_limit", 4000),
    ]
    assert all(one["at"].endswith("Z") for one in made.stored["tries"])
    assert made.events == [("read_note", False)]
    assert made.stored["trace"]["answer"] == "done"
    assert made.journal == ["begun", "retry", "retry", "ended"]
    retries = [one for one in lines_of(made.layout.journal) if one["kind"] == "retry"]
    assert [(one["try"], one["of"], one["waitMs"]) for one in retries] == [
        (2, 4, 2000),
        (3, 4, 4000),
    ]
    read = read_attempt(made.layout, AT)
    assert isinstance(read, StoredAttempt)
    assert read.record.tries == made.finished.record.tries


async def test_always_limited_is_a_failure_that_a_resume_collects_again(tmp_path: Path) -> None:
    waits, client = Waits(), Counting(*[refused()] * 9)
    made = await make(target(client=client), tmp_path, waits.rules())
    assert client.tries == [0, 1, 2, 3]
    assert waits.made_s == [2, 4, 8]
    assert made.failure.broke is Broke.PROVIDER
    assert made.failure.reason == ("retries exhausted (4 attempts, rate_limit): too many requests")
    assert made.failure.retryable
    assert made.failure.accepted is False
    assert len(made.stored["tries"]) == 3


async def test_a_try_leaves_nothing_in_the_trace_of_the_next(tmp_path: Path) -> None:
    client = Counting(refused(), refused())
    made = await make(target(client=client), tmp_path, Waits().rules())
    assert made.events == [("thought-2", None)]
    assert made.stored["trace"]["answer"] == "try 2"


async def test_the_last_try_of_a_failure_keeps_its_trace(tmp_path: Path) -> None:
    made = await make(target(client=Counting(*[refused()] * 4)), tmp_path, Waits().rules())
    assert made.events == [("thought-3", None)]


@pytest.mark.parametrize(
    "error",
    [
        refused(accepted=None),
        refused(accepted=True),
        refused(retryable=False),
        refused(scope="variant"),
        refused(broke="setup", retryable=False),
        refused(broke="setup", retryable=True, hint=None),
        ConnectionRefusedError("nothing said"),
        RuntimeError("429 Too Many Requests, retry after 1 s"),
    ],
    ids=str,
)
async def test_what_may_have_had_an_effect_or_cannot_be_helped_is_tried_once(
    tmp_path: Path, error: Exception
) -> None:
    waits, client = Waits(), Counting(error)
    made = await make(target(client=client), tmp_path, waits.rules())
    assert client.tries == [0]
    assert waits.made_s == []
    assert "tries" not in made.stored
    assert "retries exhausted" not in made.failure.reason
    assert made.journal == ["begun", "ended"]


@pytest.mark.parametrize("step", [READ, WRITE, {"hidden": READ["call"]}], ids=str)
async def test_what_reached_the_boundary_is_not_done_again(
    tmp_path: Path, step: dict[str, Any]
) -> None:
    waits = Waits()
    made = await make(scripted(step, limited()), tmp_path, waits.rules())
    assert made.failure.reason == "too many requests"
    assert waits.made_s == []
    assert len(made.finished.calls) == 1


async def test_a_call_that_was_refused_reached_the_boundary_too(tmp_path: Path) -> None:
    gone = {"call": {"server": "notes", "tool": "no_such_tool"}}
    waits = Waits()
    made = await make(scripted(gone, limited()), tmp_path, waits.rules())
    assert made.failure.reason == "too many requests"
    assert waits.made_s == []


@pytest.mark.parametrize(
    ("broke", "kind"),
    [
        (Broke.PROVIDER, "unavailable"),
        (Broke.NETWORK, "network"),
        (Broke.CLIENT_APP, "not_started"),
        (Broke.WORKSPACE, "not_started"),
    ],
)
async def test_the_kind_follows_from_what_broke_where_nothing_is_said(
    tmp_path: Path, broke: Broke, kind: str
) -> None:
    client = Counting(refused(broke=broke, hint=None))
    made = await make(target(client=client), tmp_path, Waits().rules())
    assert [one.reason for one in made.finished.record.tries] == [kind]
    assert made.ending == Trial()


async def test_a_set_up_is_waited_for_where_its_producer_says_so(tmp_path: Path) -> None:
    hint = RetryHint(RetryKind.NOT_STARTED, 0)
    client = Counting(refused(broke="setup", retryable=True, hint=hint))
    made = await make(target(client=client), tmp_path, Waits().rules())
    assert (made.ending, client.tries) == (Trial(), [0, 1])


async def test_words_change_nothing(tmp_path: Path) -> None:
    says = {"answer": "429 rate limit: network overloaded, retry after 3 s"}
    made = await make(scripted(says), tmp_path, Waits().rules())
    assert made.ending == Trial()
    assert "tries" not in made.stored


async def test_what_the_endpoint_asks_for_counts_up_to_a_cap(tmp_path: Path) -> None:
    waits = Waits()
    asked = [refused(RetryHint(RetryKind.OVERLOADED, after_s)) for after_s in (0, 7.5, 3600)]
    client = Counting(*asked)
    made = await make(target(client=client), tmp_path, waits.rules(), timeout_s=300)
    assert made.ending == Trial()
    assert waits.made_s == [0, 7.5, 60]


async def test_chance_adds_to_a_wait_also_where_it_is_cut_to_the_cap() -> None:
    policy = RetryPolicy(dice=lambda: 1.0)
    assert [policy.wait_s(number, None) for number in (2, 3, 4)] == [2.5, 5, 10]
    assert [policy.wait_s(2, after_s) for after_s in (0, 8, 59, 3600)] == [0, 10, 73.75, 75]


async def test_two_that_are_told_to_wait_for_the_longest_do_not_come_at_one_instant(
    tmp_path: Path,
) -> None:
    time = Fixed()
    waited_s = []
    for number, chance in enumerate((0.0, 0.5, 1.0)):
        waits = Waits()
        policy = replace(waits.rules().retry, dice=partial(float, chance))
        rules = RunRules(policy, time.backoffs(tmp_path / "backoff"))
        client = Counting(refused(RetryHint(RetryKind.RATE_LIMIT, 3600)))
        await make(target(client=client), tmp_path / str(number), rules, timeout_s=300)
        waited_s.append(waits.made_s[-1])
    assert waited_s == [60, 67.5, 75]


@pytest.mark.parametrize("after_s", [30, 3600])
async def test_a_wait_that_does_not_fit_the_deadline_is_not_begun(
    tmp_path: Path, after_s: float
) -> None:
    waits, client = Waits(), Counting(*[refused(RetryHint(RetryKind.RATE_LIMIT, after_s))] * 2)
    made = await make(target(client=client), tmp_path, waits.rules(), timeout_s=10)
    assert client.tries == [0]
    assert waits.made_s == []
    assert made.failure.broke is Broke.PROVIDER
    assert made.failure.retryable
    asked = "30s" if after_s == 30 else "60s"
    assert made.failure.reason.startswith(f"rate_limit: a wait of {asked} does not fit the ")
    assert made.failure.reason.endswith("before the deadline (`timeout`): too many requests")
    assert "tries" not in made.stored


async def test_waits_count_towards_the_deadline_and_not_as_duration(tmp_path: Path) -> None:
    hints = [RetryHint(RetryKind.RATE_LIMIT, after_s) for after_s in (0.3, 30)]
    rules = RunRules(RetryPolicy(dice=lambda: 0.0))  # which really waits: time is what is tested
    client = Counting(*map(refused, hints))
    began_s = anyio.current_time()
    made = await make(target(client=client, **NO_SERVER), tmp_path, rules, timeout_s=30.2)
    took_s = anyio.current_time() - began_s
    assert client.tries == [0, 1]
    assert made.failure.reason.startswith("rate_limit: a wait of 30s does not fit the 2")
    assert took_s >= 0.3
    assert made.finished.record.duration_ms <= took_s * 1000 - 290


async def test_a_clock_leaves_out_what_it_is_paused_for() -> None:
    clock = Clock()
    with clock.paused():
        await anyio.sleep(0.2)
    assert clock.elapsed_ms < 150


async def test_waiting_for_a_place_is_neither_duration_nor_at_the_deadlines_cost(
    tmp_path: Path,
) -> None:
    waits, client = Waits(), Counting(refused(RetryHint(RetryKind.RATE_LIMIT, 0)))

    @asynccontextmanager
    async def away() -> AsyncIterator[None]:
        yield
        await anyio.sleep(0.6)  # for longer than the attempt may take

    made = await make(
        target(client=client, **NO_SERVER), tmp_path, waits.rules(), away, timeout_s=0.5
    )
    assert made.ending == Trial()
    assert client.tries == [0, 1]
    assert made.finished.record.duration_ms < 500


async def test_being_stopped_in_a_wait_is_being_cut_short(tmp_path: Path) -> None:
    waiting = anyio.Event()

    async def sleep(wait_s: float) -> None:
        waiting.set()
        await anyio.sleep_forever()

    rules, writer = RunRules(retry=RetryPolicy(sleep=sleep)), writer_in(tmp_path)
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(collect, job(scripted(limited())), hub, writer, rules)
            await waiting.wait()
            tasks.cancel_scope.cancel()
    writer.close()
    stored = json.loads(writer.layout.trace(AT).read_bytes())
    assert stored["ending"]["broke"] == "collection"
    assert stored["ending"]["reason"].startswith("the attempt was cut short")
    assert [one["reason"] for one in stored["tries"]] == ["rate_limit"]


class Fixed:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def backoffs(self, folder: Path) -> Backoffs:
        return Backoffs(folder, clock=lambda: self.now_s, time_of_day=lambda: self.now_s)


async def test_another_worker_waits_before_its_first_try(tmp_path: Path) -> None:
    time, waits = Fixed(), Waits()
    one, other = (time.backoffs(tmp_path / "backoff") for _ in range(2))
    asked = limited(retryAfter=20, tries=1)
    await make(scripted(asked, DONE), tmp_path / "one", waits.rules(one), timeout_s=300)
    waits.made_s.clear()
    client = ScriptedClient([DONE])
    made = await make(target(client=client), tmp_path / "two", waits.rules(other), timeout_s=300)
    assert made.ending == Trial()
    assert waits.made_s == [20]
    (tried,) = made.stored["tries"]
    assert (tried["reason"], tried["waitMs"]) == ("rate_limit, shared with other attempts", 20000)
    (retry,) = (line for line in lines_of(made.layout.journal) if line["kind"] == "retry")
    assert retry["try"] == 1


async def test_who_fails_while_others_are_told_to_wait_longer_waits_as_long(
    tmp_path: Path,
) -> None:
    time, waits = Fixed(), Waits()
    backoffs = time.backoffs(tmp_path / "backoff")

    async def agent(request: ClientRequest) -> str:
        if request.attempt_try == 0:
            backoffs.hold("agent", RetryKind.RATE_LIMIT, 40)  # as another attempt does meanwhile
            raise refused()
        await request.tools.call_tool("notes", "read_note", None)
        return "done"

    made = await make(
        target(client=FunctionClient(agent)), tmp_path, waits.rules(backoffs), timeout_s=300
    )
    assert made.ending == Trial()
    assert waits.made_s == [40]


async def test_who_cannot_wait_for_the_others_fails_as_they_do(tmp_path: Path) -> None:
    time, waits, client = Fixed(), Waits(), Counting()
    backoffs = time.backoffs(tmp_path / "backoff")
    backoffs.hold("counting", RetryKind.RATE_LIMIT, 50)
    made = await make(target(client=client), tmp_path, waits.rules(backoffs), timeout_s=10)
    assert client.tries == []
    assert waits.made_s == []
    assert made.failure.broke is Broke.PROVIDER
    assert made.failure.retryable
    assert made.failure.reason.startswith("rate_limit: a wait of 50s does not fit the 10s")


async def test_others_do_not_wait_for_a_program_that_did_not_start(tmp_path: Path) -> None:
    time, waits = Fixed(), Waits()
    backoffs = time.backoffs(tmp_path / "backoff")
    client = Counting(refused(broke="client-app", hint=None))
    made = await make(target(client=client), tmp_path, waits.rules(backoffs))
    assert waits.made_s == [2]
    assert made.ending == Trial()
    assert backoffs.left("counting") is None


async def test_who_is_limited_to_the_end_has_the_others_wait_on(tmp_path: Path) -> None:
    time, waits = Fixed(), Waits()
    backoffs = time.backoffs(tmp_path / "backoff")
    client = Counting(*[refused()] * 4)
    await make(target(client=client), tmp_path, waits.rules(backoffs), timeout_s=300)
    assert backoffs.left("counting") == Backoff(RetryKind.RATE_LIMIT, 16)


def test_an_endpoint_is_what_the_client_says_or_the_client_and_its_model() -> None:
    class Asking(Counting):
        def endpoint(self, options: Mapping[str, Any], model: str | None) -> str:
            return f"{options['url']} {model}"

    options = {"url": "https://api.example.org"}
    assert endpoint_of(Asking(), options, "large") == "https://api.example.org large"
    assert endpoint_of(Counting(), options, "large") == "counting/large"
    assert endpoint_of(Counting(), options, None) == "counting"
    assert job(target(client=Asking(), options=options, model="m")).endpoint.endswith(" m")


async def test_an_input_of_a_test_body_is_tried_again_too(tmp_path: Path) -> None:
    waits, writer = Waits(), writer_in(tmp_path)
    script = (READ, {"answer": "first"}, limited(tries=2), WRITE, {"answer": "second"})
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            live = LiveAttempt(job(scripted(*script)), hub, writer, waits.rules())
            await tasks.start(live.serve)
            await live.run(None)
            second = await live.run("and now?")
            finished = await live.finish(None)
    writer.close()
    made = Collected(finished, writer.layout)
    assert second.ending == made.ending == Trial()
    assert waits.made_s == [2, 4]
    assert [one.reason for one in second.tries] == ["rate_limit", "rate_limit"]
    assert made.events == [("read_note", False), ("write_note", False)]
    assert made.stored["trace"]["answer"] == "second"
    assert len(made.stored["tries"]) == 2


async def test_an_input_of_a_test_body_that_stays_limited_ends_it(tmp_path: Path) -> None:
    waits, writer = Waits(), writer_in(tmp_path)
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            live = LiveAttempt(job(scripted(limited())), hub, writer, waits.rules())
            await tasks.start(live.serve)
            with pytest.raises(InfrastructureError, match="retries exhausted"):
                await live.run(None)
            finished = await live.finish(None)
    writer.close()
    assert waits.made_s == [2, 4, 8]
    assert Collected(finished, writer.layout).failure.reason.startswith("retries exhausted (4 ")
