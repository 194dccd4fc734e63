"""Attempts that wait to be tried again: others go on meanwhile, and it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import Broke, InfrastructureError, Trial
from pytest_mst.domain.retry import RetryHint, RetryKind
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.plugin.crew import Crew, Order
from pytest_mst.plugin.places import Places
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import RUN_ID, job, target, writer_in
from tests.plugin.eval_project import EvalProject, answer, call, case

OK = answer("ok")
NO_SERVER: Mapping[str, Any] = {"servers": {}, "tools": {}, "modes": {}, "definitions": {}}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def limited(**more: Any) -> dict[str, Any]:
    """Return the step that fails as a client does whose API takes no more requests."""
    said = {"broke": "provider", "reason": "too many requests", "accepted": False}
    return {"fail": {**said, "retry": "rate_limit", "retryAfter": 0, **more}}


class Team:
    """A crew, and attempts whose first one is limited in its first tries."""

    def __init__(self, folder: Path, size: int, limited_tries: int = 1) -> None:
        self.size = size
        self.events: list[str] = []
        self.under_way = 0
        self.most_under_way = 0
        self.rules = RunRules(RetryPolicy(dice=lambda: 0.0, sleep=self.sleep))
        self._limited_tries = limited_tries
        self._writer = writer_in(folder)
        self._client = FunctionClient(self._act)

    async def sleep(self, wait_s: float) -> None:
        self.events.append("waits")
        await anyio.lowlevel.checkpoint()

    async def _act(self, request: ClientRequest) -> str:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            self.events.append(f"{request.trial} begins")
            await anyio.lowlevel.checkpoint()
            if request.trial == 0 and request.attempt_try < self._limited_tries:
                hint = RetryHint(RetryKind.RATE_LIMIT, 0)
                raise InfrastructureError(Broke.PROVIDER, "429", accepted=False, retry=hint)
        finally:
            self.under_way -= 1
        self.events.append(f"{request.trial} ends")
        return "done"

    async def work(self, attempts: int) -> list[FinishedAttempt]:
        """Have the crew make some attempts, and return them once all have ended."""
        orders = []
        for trial in range(attempts):
            at = AttemptId("default", "c", trial)
            asked = job(target(client=self._client, **NO_SERVER))
            asked = replace(asked, id=at, locator=locator(RUN_ID, at))
            orders.append(Order(asked, self._writer, self.rules))
        with anyio.fail_after(20):
            async with Hub() as hub, anyio.create_task_group() as tasks:
                crew = Crew(hub, self.size)
                await tasks.start(lambda task_status: crew.serve(task_status=task_status))
                crew.take(orders)
                futures = [asyncio.wrap_future(order.future) for order in orders]
                made = await asyncio.gather(*futures)
                await crew.end()
        self._writer.close()
        return [one for one in made if one is not None]


@pytest.mark.anyio
@pytest.mark.parametrize("size", [1, 2])
async def test_others_go_on_while_one_waits(tmp_path: Path, size: int) -> None:
    team = Team(tmp_path, size)
    others_ended = anyio.Event()

    async def sleep(wait_s: float) -> None:
        team.events.append("waits")
        while sum(one.endswith("ends") for one in team.events) < 4:
            await anyio.lowlevel.checkpoint()
        others_ended.set()

    team.rules = RunRules(RetryPolicy(sleep=sleep))
    made = await team.work(5)
    assert others_ended.is_set()
    assert [one.record.ending for one in made] == [Trial()] * 5
    assert team.events[-2:] == ["0 begins", "0 ends"]
    assert len(made[0].record.tries) == 1
    assert team.most_under_way == size


@pytest.mark.anyio
async def test_who_has_waited_comes_before_who_has_not_begun(tmp_path: Path) -> None:
    team = Team(tmp_path, 1, limited_tries=2)
    await team.work(4)
    assert team.events == [
        *("0 begins", "waits", "1 begins", "1 ends"),
        *("0 begins", "waits", "2 begins", "2 ends"),
        *("0 begins", "0 ends", "3 begins", "3 ends"),
    ]
    assert team.most_under_way == 1


@pytest.mark.anyio
async def test_one_that_is_given_up_in_a_wait_takes_nothing_from_the_others(
    tmp_path: Path,
) -> None:
    places = Places(1, lambda: None)
    places.take()
    waiting = anyio.Event()

    async def wait() -> None:
        async with places.away():
            waiting.set()
            await anyio.sleep_forever()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await waiting.wait()
            assert places.free == 1
            places.take()  # another's, and then there is one too many
            tasks.cancel_scope.cancel()
    assert places.free == 0
    places.leave()
    assert places.free == 0
    places.leave()
    assert places.free == 1


@pytest.mark.anyio
@pytest.mark.parametrize("handed", [False, True])
async def test_one_that_is_given_up_while_it_wants_its_place_back_has_one_to_end_in(
    tmp_path: Path, *, handed: bool
) -> None:
    freed: list[int] = []
    places = Places(1, lambda: freed.append(1))
    places.take()
    back = anyio.Event()

    async def want() -> None:
        async with places.away():
            places.take()  # as another does meanwhile
            back.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(want)
            await back.wait()
            await anyio.lowlevel.checkpoint()
            if handed:
                places.leave()
            tasks.cancel_scope.cancel()
    for _ in range(1 if handed else 2):
        assert places.free == 0
        places.leave()
    assert places.free == 1


def test_retries_are_stored_and_shown(project: EvalProject) -> None:
    project.eval(
        case("limited-twice", limited(tries=2), call("find"), OK),
        case("limited", limited()),
        case("accepted", limited(accepted=None)),
        case("called", call("find"), limited()),
        case("cannot-be-helped", limited(broke="setup", retryable=False)),
        case("in-words", answer("ok: 429, rate limit, network")),
    )
    session = project.run("--mst", "--mst-concurrency", "1")
    assert session.code == 10
    run = session.run
    assert run.ledger == {
        "planned": 6, "graded": 2, "ungraded": 0, "infrastructure": 4, "unstarted": 0
    }  # fmt: skip
    assert run.verdicts["limited-twice"] == run.verdicts["in-words"] == "passed"
    tries = run.trace_file("limited-twice")["tries"]
    assert [(one["reason"], one["waitMs"]) for one in tries] == [("rate_limit", 0)] * 2
    ending = run.ending("limited")
    assert ending["reason"] == "retries exhausted (4 attempts, rate_limit): too many requests"
    assert (ending["broke"], ending["retryable"]) == ("provider", True)
    assert len(run.trace_file("limited")["tries"]) == 3
    for once in ("accepted", "called", "cannot-be-helped", "in-words"):
        assert "tries" not in run.trace_file(once)
    assert run.ending("called")["reason"] == "too many requests"
    assert sum(line["kind"] == "retry" for line in run.journal) == 5
    for number in (2, 3, 4):
        assert f"turn retry {number}/4 (rate_limit) — waiting 0s" in session.out


def test_a_wait_is_shown_while_it_lasts(project: EvalProject) -> None:
    project.eval(case("limited", limited(tries=1, retryAfter=1.2), OK), case("next", OK, model="m"))
    session = project.run("--mst", "--mst-concurrency", "1")
    assert session.code == 0
    (at,) = {line["locator"] for line in session.run.journal if line["kind"] == "retry"}
    line = f"mst: {at} limited [default] trial 0: turn retry 2/4 (rate_limit) — waiting 1."
    assert line in session.out
    record = session.run.trace_file("limited")
    assert record["tries"][0]["waitMs"] >= 1200
    assert record["durationMs"] < 1200
    ended = [line["caseId"] for line in session.run.journal if line["kind"] == "ended"]
    assert ended == ["next", "limited"]


def test_a_wait_that_does_not_fit_names_the_limit(project: EvalProject) -> None:
    project.eval(case("limited", limited(retryAfter="30")), timeout=5000)
    session = project.run("--mst")
    ending = session.run.ending("limited")
    assert (ending["broke"], ending["retryable"]) == ("provider", True)
    assert ending["reason"].startswith("rate_limit: a wait of ")
    assert "does not fit" in ending["reason"]
    assert session.run.trace_file("limited")["durationMs"] < 4000


def test_workers_wait_together(project: EvalProject) -> None:
    project.eval(*(case(f"c{number}", limited(tries=1, retryAfter=0.5), OK) for number in range(4)))
    session = project.run("--mst", "-n", "2", "--mst-concurrency", "2")
    assert session.code == 0
    run = session.run
    assert run.ledger["graded"] == 4
    told = [content for name, content in run.files.items() if name.startswith("backoff/")]
    assert [(one["kind"], one["reason"]) for one in told] == [("backoff", "rate_limit")]
