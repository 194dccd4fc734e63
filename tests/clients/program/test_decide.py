"""How an attempt by a program ended: which fact counts before which."""

from __future__ import annotations

import anyio
import httpx2
import pytest

from pytest_mst.clients.program.decide import Said, decided
from pytest_mst.clients.program.model_api import ModelApi, recorded_api
from pytest_mst.clients.program.run import Ran
from pytest_mst.domain.ending import Broke, InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.retry import RetryKind
from tests.clients.boundaries import request
from tests.model_provider import Fail, ModelProvider, say

pytestmark = pytest.mark.anyio

RAN = Ran(1, "exited with status 1", "last words: 429")
KILLED = Ran(-15, "was ended by SIGTERM", "", killed=Trial(stopped_by="turns"))
BUSY = InfrastructureFailure(Broke.PROVIDER, "busy", retryable=True)
BAD_KEY = InfrastructureFailure(Broke.PROVIDER, "bad key", retryable=False)


class Servers:
    """A session as the boundary has it, whose one server was reached or not."""

    def __init__(self, *, connected: bool) -> None:
        self.connected = connected

    def seen(self, label: str) -> Servers:
        return self


def failed(
    ran: Ran, said: Said | None, api: ModelApi | None = None, *, connected: bool = True
) -> InfrastructureError:
    with pytest.raises(InfrastructureError) as raised:
        decided(request(session=Servers(connected=connected)), ran, said, api)
    return raised.value


async def ask(api: ModelApi) -> int:
    async with httpx2.AsyncClient() as http:
        body = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "."}]}
        return (await http.post(f"{api.url}/v1/messages", json=body)).status_code


def test_what_we_ended_it_for_counts_first() -> None:
    assert decided(request(), KILLED, Said(BUSY)) == Trial(stopped_by="turns")
    assert decided(request(), KILLED, None) == Trial(stopped_by="turns")


def test_without_a_final_record_no_exit_status_makes_a_trial() -> None:
    for code in (0, 1, -9):
        failure = failed(Ran(code, f"exited with status {code}", ""), None).failure
        assert (failure.broke, failure.retryable) == (Broke.CLIENT_APP, True)


def test_typed_fields_count_before_what_the_proxy_saw() -> None:
    assert failed(RAN, Said(BAD_KEY), connected=False).failure.reason == "bad key"


def test_a_trial_without_the_servers_is_none() -> None:
    assert failed(RAN, Said(Trial()), connected=False).failure.broke is Broke.SETUP
    assert decided(request(session=Servers(connected=True)), RAN, Said(Trial())) == Trial()


def test_what_nothing_tells_keeps_the_raw_fields() -> None:
    failure = failed(RAN, Said(None, raw={"code": "odd"})).failure
    assert failure.broke is Broke.CLIENT_APP
    assert failure.detail is not None
    assert '"odd"' in failure.detail
    assert "last words" in failure.detail


async def test_the_recording_says_what_fields_cannot_tell_or_tell_less_exactly() -> None:
    with anyio.fail_after(20), ModelProvider([Fail(429, retry_after_s=7)]) as provider:
        async with recorded_api(request(), provider.url, recorded=True) as api:
            assert api is not None
            assert failed(RAN, None, api).failure.broke is Broke.CLIENT_APP
            assert await ask(api) == 429
            for said in (None, Said(None), Said(BUSY)):
                error = failed(RAN, said, api)
                assert (error.failure.broke, error.failure.accepted) == (Broke.PROVIDER, False)
                assert error.retry is not None
                assert (error.retry.kind, error.retry.after_s) == (RetryKind.RATE_LIMIT, 7)
            assert failed(RAN, Said(BAD_KEY), api).failure.reason == "bad key"
            assert decided(request(), RAN, Said(Trial()), api) == Trial()


async def test_a_model_that_has_answered_has_taken_the_input() -> None:
    with anyio.fail_after(20), ModelProvider([say("hi"), Fail(503)]) as provider:
        async with recorded_api(request(), provider.url, recorded=True) as api:
            assert api is not None
            assert [await ask(api), await ask(api)] == [200, 503]
            assert failed(RAN, None, api).failure.accepted is None


async def test_turns_are_counted_by_what_the_model_answers() -> None:
    with anyio.fail_after(20), ModelProvider([Fail(503), say("a"), say("b")]) as provider:
        async with recorded_api(request(), provider.url, recorded=True) as api:
            assert api is not None
            ended: list[Trial] = []

            async def watch(api: ModelApi) -> None:
                ending = await api.until_turns(1)()
                assert isinstance(ending, Trial)
                ended.append(ending)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch, api)
                await ask(api)
                await ask(api)
                assert ended == []
                await ask(api)
            assert ended == [Trial(stopped_by="turns")]


async def test_cut_off_while_the_model_has_no_time_that_is_said_in_the_trace() -> None:
    asked = request()
    with anyio.fail_after(20), ModelProvider([Fail(529)]) as provider:
        with anyio.CancelScope() as scope:
            async with recorded_api(asked, provider.url, recorded=True) as api:
                assert api is not None
                await ask(api)
                scope.cancel()
                await anyio.lowlevel.checkpoint()
    assert asked.trace.failing is not None
    assert asked.trace.failing.broke is Broke.PROVIDER
