"""Servers that end in a call: who is told what, and whose attempt goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.tool_call import ServerGoneError, ToolCallError
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.hub import Hub
from tests.proxy.setting import attempt, text, wild

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("protocol", ["auto", "legacy"])


async def pid(boundary: Boundary) -> str:
    return text(await boundary.call_tool("wild", "pid", {}))


@ERAS
@pytest.mark.parametrize(("tool", "words"), [("die", "status 3"), ("half", "status 0")])
async def test_whose_call_ends_the_server_sees_it_and_goes_on(
    protocol: str, tool: str, words: str
) -> None:
    with anyio.fail_after(10):
        async with attempt(wild(protocol=protocol)) as boundary:
            before = await pid(boundary)
            with pytest.raises(ServerGoneError, match=words) as caught:
                await boundary.call_tool("wild", tool, {})
            assert boundary.lost is None
            await boundary.call_tool("wild", "write_item", {"id": "a"})
            assert await pid(boundary) != before
    assert caught.value.data == ("boom: told to die" if tool == "die" else None)
    assert [call.is_error for call in boundary.calls] == [False, True, False, False]
    assert len(boundary.entries) == 1


async def test_others_that_used_the_shared_server_are_lost_and_those_that_did_not_are_not() -> None:
    spec = wild()
    with anyio.fail_after(10):
        async with (
            Hub() as hub,
            attempt(spec, hub=hub) as culprit,
            attempt(spec, hub=hub) as bystander,
            attempt(spec, hub=hub) as newcomer,
        ):
            await pid(culprit)
            await pid(bystander)
            with pytest.raises(ServerGoneError):
                await culprit.call_tool("wild", "die", {})
            assert bystander.lost is not None
            with pytest.raises(InfrastructureError) as caught:
                await pid(bystander)
            assert await pid(newcomer) == await pid(culprit)
            assert (newcomer.lost, culprit.lost) == (None, None)
    failure = caught.value.failure
    assert (failure.broke, failure.retryable, failure.scope) == (Broke.SETUP, True, Scope.TRIAL)
    assert "isolation: attempt" in failure.reason


async def in_flight_together(
    calls: Mapping[str, tuple[str, dict[str, Any]]], boundaries: Mapping[str, Boundary]
) -> dict[str, object]:
    """Make calls that are all in flight when the server ends; gives what each came to."""
    outcomes: dict[str, object] = {}

    async def one(name: str) -> None:
        tool, arguments = calls[name]
        try:
            outcomes[name] = await boundaries[name].call_tool("wild", tool, arguments)
        except (ToolCallError, InfrastructureError) as error:
            outcomes[name] = error

    async with anyio.create_task_group() as tasks:
        for name in calls:
            tasks.start_soon(one, name)
    return outcomes


@ERAS
async def test_of_several_calls_in_flight_the_one_that_ends_it_again_is_to_blame(
    protocol: str,
) -> None:
    spec = wild(protocol=protocol, alwaysWriteTools=["slow"])
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "culprit": ("die", {}),
        "reader": ("read_item", {}),
        "writer": ("slow", {"seconds": 0}),
    }
    with anyio.fail_after(20):
        async with (
            Hub() as hub,
            attempt(spec, hub=hub) as culprit,
            attempt(spec, hub=hub) as reader,
            attempt(spec, hub=hub, mode=WriteMode.UNGUARDED) as writer,
        ):
            boundaries = {"culprit": culprit, "reader": reader, "writer": writer}
            outcomes = await in_flight_together(calls, boundaries)
    assert isinstance(outcomes["culprit"], ServerGoneError)
    assert culprit.lost is None
    for name in ("reader", "writer"):
        assert isinstance(outcomes[name], InfrastructureError), name
        assert boundaries[name].lost is outcomes[name]
    assert [entry.unclassified for entry in writer.entries] == [True]


async def test_several_calls_of_one_attempt_are_its_own_doing() -> None:
    with anyio.fail_after(10):
        async with attempt(wild()) as boundary:
            outcomes = await in_flight_together(
                {"a": ("die", {}), "b": ("read_item", {})}, {"a": boundary, "b": boundary}
            )
    assert all(isinstance(one, ServerGoneError) for one in outcomes.values())
    assert boundary.lost is None


async def test_a_server_that_ends_after_its_answer_is_told_of_at_the_next_call() -> None:
    with anyio.fail_after(10):
        async with attempt(wild(), isolation="attempt") as boundary:
            await boundary.call_tool("wild", "die_idle", {})
            upstream = boundary._gates["wild"].upstream
            await upstream.gone.wait()
            with pytest.raises(ServerGoneError, match="status 4"):
                await pid(boundary)
            await pid(boundary)


async def test_a_server_that_ends_idle_is_a_setup_failure_of_all_that_shared_it() -> None:
    spec = wild()
    with anyio.fail_after(10):
        async with Hub() as hub, attempt(spec, hub=hub) as one, attempt(spec, hub=hub) as two:
            await pid(two)
            await one.call_tool("wild", "die_idle", {})
            await one._gates["wild"].upstream.gone.wait()
            for boundary in (one, two):
                assert boundary.lost is not None
                assert boundary.lost.failure.retryable


async def test_a_cancelled_call_leaves_the_server_to_the_others() -> None:
    spec = wild()
    with anyio.fail_after(10):
        async with Hub() as hub, attempt(spec, hub=hub) as one, attempt(spec, hub=hub) as two:
            with anyio.move_on_after(0.1) as scope:
                await one.call_tool("wild", "slow", {"seconds": 0.3})
            assert scope.cancelled_caught
            assert await pid(one) == await pid(two)


async def test_attempts_that_wait_for_one_start_are_not_cancelled_with_one_another() -> None:
    spec = wild("--noise-bytes", "1")
    with anyio.fail_after(10):
        async with Hub() as hub:
            listed: list[int] = []

            async def list_tools() -> None:
                listed.append(len((await hub.list_tools(spec)).tools))

            async with anyio.create_task_group() as tasks:
                with anyio.move_on_after(0):
                    await hub.list_tools(spec)
                for _ in range(3):
                    tasks.start_soon(list_tools)
    assert len(listed) == 3
