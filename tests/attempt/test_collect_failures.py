"""Attempts that say nothing about the client: what broke, and what is kept of them."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

from pytest_mst.attempt.collect import CUT_SHORT, collect
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import (
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Scope,
    Trial,
)
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.proxy.hub import Hub
from tests.attempt.setting import (
    AT,
    DONE,
    HIDDEN,
    READ,
    WRITE,
    Collected,
    job,
    make,
    scripted,
    small,
    target,
    writer_in,
)

pytestmark = pytest.mark.anyio

WRITES = {"expected": {"writes": [{"tool": "write_note"}]}}


def raising(error: BaseException) -> FunctionClient:
    """Make an agent that writes and then raises something."""

    async def agent(request: ClientRequest) -> NoReturn:
        await request.tools.call_tool("notes", "write_note", {"text": "hi"})
        raise error

    return FunctionClient(agent)


async def test_an_exception_of_the_clients_own_is_a_failure_of_its_program(tmp_path: Path) -> None:
    made = await make(scripted(WRITE, {"raise": "out of ideas"}), tmp_path, WRITES)
    failure = made.failure
    assert failure.broke is Broke.CLIENT_APP
    assert failure.retryable
    assert failure.accepted is None
    assert failure.scope is Scope.TRIAL
    assert failure.reason == "the client raised ScriptedError: out of ideas"
    assert failure.detail is not None
    assert failure.detail.startswith("Traceback")
    assert "raise ScriptedError(step.text)\npytest_mst" in failure.detail
    assert made.stored["ending"]["detail"] == failure.detail
    assert made.stored["infrastructureError"] is True


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), pytest.fail.Exception("no"), pytest.skip.Exception("no key")],
    ids=lambda error: type(error).__name__,
)
async def test_what_would_end_a_program_or_a_test_ends_the_attempt_only(
    tmp_path: Path, error: BaseException
) -> None:
    made = await make(target(client=raising(error)), tmp_path)
    assert made.failure.broke is Broke.CLIENT_APP
    assert made.journal == ["begun", "ended"]


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError("refused"),
        socket.gaierror(-2, "Name or service not known"),
        ssl.SSLError("handshake"),
        ExceptionGroup("two", [ConnectionResetError("a"), ExceptionGroup("", [BrokenPipeError()])]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_network_errors_are_known_by_their_type(tmp_path: Path, error: Exception) -> None:
    made = await make(target(client=raising(error)), tmp_path, WRITES)
    assert made.failure.broke is Broke.NETWORK
    assert made.failure.retryable
    assert made.failure.detail is not None


async def test_options_that_the_client_does_not_take_are_the_setups_fault(tmp_path: Path) -> None:
    made = await make(target(options={"script": [{"cal": {}}]}), tmp_path)
    assert made.failure.broke is Broke.SETUP
    assert not made.failure.retryable
    assert made.failure.accepted is False
    assert "did you mean 'call'?" in made.failure.reason
    assert "trace" not in made.stored


async def test_what_the_client_knows_of_its_own_failure_is_kept_as_it_says_it(
    tmp_path: Path,
) -> None:
    fail = {
        "fail": {
            "broke": "provider",
            "reason": "quota is used up",
            "retryable": False,
            "scope": "run",
            "accepted": False,
        }
    }
    made = await make(scripted(fail), tmp_path)
    assert made.ending == InfrastructureFailure(
        Broke.PROVIDER, "quota is used up", retryable=False, scope=Scope.RUN, accepted=False
    )
    assert made.stored["ending"]["scope"] == "run"


async def test_a_failure_keeps_the_record_and_matches_what_there_is_of_the_trace(
    tmp_path: Path,
) -> None:
    made = await make(scripted(READ, WRITE, HIDDEN, {"raise": "no"}, DONE), tmp_path, WRITES)
    assert made.stored_writes == ["write_note", "write_note"]
    assert made.unreported == ["write_note"]
    assert made.events == [("read_note", False), ("write_note", False)]
    assert made.stored["trace"]["answer"] is None
    assert made.scores == {}
    assert made.finished.outcomes == ()
    assert made.journal == ["begun", "ended"]


async def test_with_no_trace_every_entry_of_the_record_is_unreported(tmp_path: Path) -> None:
    made = await make(scripted(HIDDEN, HIDDEN, {"raise": "no"}), tmp_path)
    assert "trace" not in made.stored
    assert made.unreported == ["write_note", "write_note"]


async def test_our_deadline_ends_what_hangs_and_the_partial_trace_is_kept(tmp_path: Path) -> None:
    made = await make(scripted(WRITE, {"sleep": 60}, DONE), tmp_path, timeout_s=0.3)
    assert made.failure.broke is Broke.DEADLINE
    assert made.failure.retryable
    assert "0.3 s" in made.failure.reason
    assert made.events == [("write_note", False)]
    assert made.unreported == []
    assert made.journal == ["begun", "ended"]


async def test_a_server_that_is_still_starting_at_the_deadline_is_ended_with_it(
    tmp_path: Path,
) -> None:
    nobody = tmp_path / "nobody comes here"
    nobody.mkdir()
    slow = small("--meet", str(nobody), "99")
    made = await make(target(slow), tmp_path / "results", timeout_s=0.05)
    assert made.failure.broke is Broke.DEADLINE
    assert made.finished.calls == ()


async def swallows(request: ClientRequest) -> str:
    """Catch everything, also being cut off."""
    await request.tools.call_tool("notes", "write_note", {"text": "hi"})
    try:
        await anyio.sleep(60)
    except BaseException:  # noqa: BLE001 - what this agent does wrong
        return "I ended well"
    return "never"


async def complains(request: ClientRequest) -> NoReturn:
    """Make something else of being cut off."""
    try:
        await anyio.sleep(60)
    except BaseException as error:
        msg = "cut off"
        raise ValueError(msg) from error
    raise AssertionError


@pytest.mark.parametrize("agent", [swallows, complains])
async def test_a_client_that_keeps_being_cut_off_to_itself_does_not_escape_the_deadline(
    tmp_path: Path, agent: Any
) -> None:
    made = await make(target(client=FunctionClient(agent)), tmp_path, timeout_s=0.3)
    assert made.failure.broke is Broke.DEADLINE


@pytest.mark.parametrize("how", ["sleeps", "swallows", "complains"])
async def test_an_attempt_that_is_cancelled_is_stored_as_cut_short_and_stays_cancelled(
    tmp_path: Path, how: str
) -> None:
    acting = anyio.Event()

    async def agent(request: ClientRequest) -> str:
        await request.tools.call_tool("notes", "write_note", {"text": "hi"})
        acting.set()
        if how == "swallows":
            return await swallows(request)
        if how == "complains":
            await complains(request)
        await anyio.sleep(60)
        return "never"

    writer = writer_in(tmp_path)
    ended: list[Any] = []
    with anyio.fail_after(20):
        async with Hub() as hub:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:

                    async def attempt() -> None:
                        ended.append(
                            await collect(job(target(client=FunctionClient(agent))), hub, writer)
                        )

                    tasks.start_soon(attempt)
                    await acting.wait()
                    scope.cancel()
    assert ended == []
    assert scope.cancelled_caught
    writer.close()
    made = Collected(None, writer.layout)  # type: ignore[arg-type]  # cancelled: nothing returned
    assert made.stored["ending"]["broke"] == "collection"
    assert made.stored["ending"]["reason"] == CUT_SHORT.reason
    assert made.stored["ending"]["retryable"] is True
    assert made.events[0] == ("write_note", False)
    assert made.journal == ["begun", "ended"]


async def test_a_server_that_another_attempt_ended_comes_before_the_clients_words(
    tmp_path: Path,
) -> None:
    waiting = anyio.Event()

    async def kills(request: ClientRequest) -> None:
        await waiting.wait()
        with pytest.raises(ToolCallError):
            await request.tools.call_tool("notes", "die", None)

    async def meets_it(request: ClientRequest) -> str:
        await request.tools.call_tool("notes", "read_note", None)
        waiting.set()
        await killed.wait()
        with pytest.raises(InfrastructureError):
            await request.tools.call_tool("notes", "read_note", None)
        return "all is well"

    killed = anyio.Event()
    endings: dict[str, Any] = {}

    async def one(name: str, agent: Any) -> None:
        made = await make(target(client=FunctionClient(agent)), tmp_path / name, hub=hub)
        endings[name] = made.ending
        killed.set()

    with anyio.fail_after(20):
        async with Hub() as hub, anyio.create_task_group() as tasks:
            tasks.start_soon(one, "meets it", meets_it)
            tasks.start_soon(one, "kills", kills)
    assert endings["kills"] == Trial()
    lost = endings["meets it"]
    assert isinstance(lost, InfrastructureFailure)
    assert lost.broke is Broke.SETUP
    assert lost.retryable
    assert "isolation: attempt" in lost.reason


async def test_a_server_that_cannot_start_is_a_setup_failure_of_the_variant(tmp_path: Path) -> None:
    made = await make(target(small("--exit-on-start", "5")), tmp_path)
    assert made.failure.broke is Broke.SETUP
    assert made.failure.retryable
    assert made.failure.scope is Scope.VARIANT
    assert "status 5" in made.failure.reason
    assert "boom: cannot start" in (made.failure.detail or "")
    assert made.journal == ["begun", "ended"]


async def test_what_the_load_check_found_ends_every_attempt_without_the_client(
    tmp_path: Path,
) -> None:
    found = InfrastructureFailure(Broke.SETUP, "no such command", retryable=True)
    made = await make(scripted(DONE, failure=found), tmp_path, hub=None)
    assert made.ending == found
    assert made.stored["ending"]["reason"] == "no such command"
    assert "trace" not in made.stored
    assert made.journal == ["ended"]


async def test_a_client_that_returns_no_ending_is_told_so(tmp_path: Path) -> None:
    class Forgetful:
        name = "forgetful"

        async def run(self, request: ClientRequest) -> None:
            """Forget to return."""

    made = await make(target(client=Forgetful()), tmp_path)  # type: ignore[arg-type]  # the mistake
    assert made.failure.broke is Broke.CLIENT_APP
    assert "client 'forgetful' returned NoneType; `run` returns a Trial" in made.failure.reason


async def test_a_task_the_client_lets_loose_cannot_call_past_the_limit(tmp_path: Path) -> None:
    loose: list[asyncio.Task[Any]] = []

    async def agent(request: ClientRequest) -> None:
        loose.extend(
            asyncio.create_task(request.tools.call_tool("notes", "write_note", {"text": str(n)}))
            for n in range(4)
        )
        await anyio.sleep(60)

    case = {"clientOptions": {"maxToolCalls": 2}}
    with anyio.fail_after(20):
        made = await make(target(client=FunctionClient(agent)), tmp_path, case)
        results = await asyncio.gather(*loose, return_exceptions=True)
    assert made.ending == Trial(stopped_by="calls")
    assert [isinstance(result, ToolCallError) for result in results] == [False, False, True, True]
    assert made.stored_writes == ["write_note", "write_note"]


async def test_an_attempt_that_has_ended_takes_no_call_any_more(tmp_path: Path) -> None:
    kept: list[ClientRequest] = []

    async def agent(request: ClientRequest) -> None:
        kept.append(request)

    async with Hub() as hub:
        made = await make(target(client=FunctionClient(agent)), tmp_path, hub=hub)
        with pytest.raises(ToolCallError, match="has ended"):
            await kept[0].tools.call_tool("notes", "write_note", {"text": "late"})
    assert made.finished.calls == ()
    assert not made.layout.writes(AT).exists()
