"""A deadline after nothing but refusals of the provider's is the provider's failure."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pytest_mst.attempt.live import LiveAttempt
from pytest_mst.clients.client import ClientRequest
from pytest_mst.domain.ending import Broke, InfrastructureError, Trial
from pytest_mst.domain.retry import RetryHint, RetryKind
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import Collected, job, target, writer_in
from tests.attempt.test_retry import NO_SERVER, Waits, make, refused

pytestmark = pytest.mark.anyio


class Hanging:
    """A client that is refused a few times and then never ends."""

    name = "hanging"

    def __init__(self, *errors: BaseException, calls: bool = False, says: bool = False) -> None:
        self._errors = errors
        self._calls = calls
        self._says = says

    async def run(self, request: ClientRequest) -> Trial:
        if request.attempt_try < len(self._errors):
            raise self._errors[request.attempt_try]
        if self._calls:
            await request.tools.call_tool("notes", "read_note", None)
        if self._says:
            request.trace.answer = "let me think"
        await anyio.sleep_forever()
        return Trial()


ANSWERS = [RetryKind.RATE_LIMIT, RetryKind.OVERLOADED, RetryKind.UNAVAILABLE]


@pytest.mark.parametrize("kind", ANSWERS)
async def test_a_deadline_after_nothing_but_refusals_is_the_providers_failure(
    tmp_path: Path, kind: RetryKind
) -> None:
    client = Hanging(refused(RetryHint(kind, 0)))
    made = await make(target(client=client, **NO_SERVER), tmp_path, Waits().rules(), timeout_s=0.3)
    assert (made.failure.broke, made.failure.retryable) == (Broke.PROVIDER, True)
    assert made.failure.reason == (
        f"{kind}: the endpoint answered nothing else until the deadline (`timeout`), after 0.3 s"
    )
    assert len(made.stored["tries"]) == 1


async def test_so_it_is_for_an_input_of_a_test_body(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    client = Hanging(refused(RetryHint(RetryKind.OVERLOADED, 0)))
    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            made = job(target(client=client, **NO_SERVER), timeout_s=0.3)
            live = LiveAttempt(made, hub, writer, Waits().rules())
            await tasks.start(live.serve)
            with pytest.raises(InfrastructureError, match="overloaded: the endpoint answered"):
                await live.run(None)
            finished = await live.finish(None)
    writer.close()
    assert Collected(finished, writer.layout).failure.broke is Broke.PROVIDER


@pytest.mark.parametrize(
    "client",
    [
        Hanging(),
        Hanging(refused(RetryHint(RetryKind.NETWORK, 0))),
        Hanging(refused(broke="client-app", hint=RetryHint(RetryKind.NOT_STARTED, 0))),
        Hanging(refused(RetryHint(RetryKind.RATE_LIMIT, 0)), says=True),
        Hanging(refused(RetryHint(RetryKind.RATE_LIMIT, 0)), calls=True),
    ],
    ids=["none", "no connection", "not started", "said more", "called since"],
)
async def test_a_deadline_after_anything_else_is_a_deadline(
    tmp_path: Path, client: Hanging
) -> None:
    made = await make(target(client=client), tmp_path, Waits().rules(), timeout_s=2)
    assert made.failure.broke is Broke.DEADLINE
