"""A client's own limits: running out of one is a trial, and no client escapes it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.clients.limits import LIMITS, Limits, run_within_limits
from pytest_mst.domain.ending import InfrastructureError, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.tool_call import ToolCallError
from tests.clients.boundaries import Boundary, request

pytestmark = pytest.mark.anyio


async def run(agent: Any, options: Any, boundary: Boundary | None = None) -> Trial:
    """Run an agent within its limits, and within a bound of the test's own."""
    with anyio.fail_after(5):
        return await run_within_limits(FunctionClient(agent), request(boundary, options))


def test_limits_are_read_from_the_options() -> None:
    options: Any = {"maxTurns": 3, "maxToolCalls": 4, "maxDurationMs": 1500, "other": "x"}
    assert Limits.of(options) == Limits(turns=3, calls=4, duration_s=1.5)
    assert Limits.of({}) == Limits()
    assert Limits.of(dict.fromkeys(LIMITS)) == Limits()


@given(
    st.sampled_from(LIMITS),
    st.integers(max_value=0)
    | st.booleans()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.integers(), max_size=2),
)
def test_a_limit_is_a_positive_whole_number(key: str, value: Any) -> None:
    with pytest.raises(OptionsError) as caught:
        Limits.of({key: value})
    assert caught.value.key == key


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_client_may_make_as_many_calls_as_its_limit_and_no_more(limit: int) -> None:
    boundary = Boundary()

    async def agent(request: ClientRequest) -> None:
        for _ in range(limit):
            await request.tools.call_tool("chat", "list", None)

    async def greedy(request: ClientRequest) -> str:
        await agent(request)
        await request.tools.call_tool("chat", "post", None)
        return "never"

    options = {"maxToolCalls": limit}
    assert await run(agent, options, boundary) == Trial()
    assert await run(greedy, options, boundary) == Trial(stopped_by="calls")
    assert boundary.tools == ["list"] * limit * 2


async def test_calls_that_get_an_error_count_too() -> None:
    boundary = Boundary()

    async def agent(request: ClientRequest) -> None:
        while True:
            with pytest.raises(ToolCallError):
                await request.tools.call_tool("chat", "refuse", None)

    assert await run(agent, {"maxToolCalls": 3}, boundary) == Trial(stopped_by="calls")
    assert boundary.tools == ["refuse"] * 3


async def test_a_client_that_takes_too_long_is_stopped_by_time() -> None:
    async def agent(request: ClientRequest) -> None:
        await anyio.sleep(60)

    assert await run(agent, {"maxDurationMs": 20}) == Trial(stopped_by="time")
    assert await run(agent, {"maxDurationMs": 20, "maxToolCalls": 1}) == Trial(stopped_by="time")


async def keeps_calling(request: ClientRequest) -> str:
    """Catch whatever a call raises, and call again."""
    for _ in range(10):
        with suppress(BaseException):  # what this agent does wrong
            await request.tools.call_tool("chat", "list", None)
    return "all is well"


async def gives_up(request: ClientRequest) -> str:
    """Say that all is well, whatever happened."""
    try:
        await _one_call_and_a_rest(request)
    except BaseException:  # noqa: BLE001 - what this agent does wrong
        return "all is well"
    return "never"


async def complains(request: ClientRequest) -> None:
    """Make an error of its own of being cut off."""
    try:
        await _one_call_and_a_rest(request)
    except BaseException as error:
        msg = "cut off"
        raise ValueError(msg) from error


async def in_a_group(request: ClientRequest) -> None:
    """Fail in a task of its own while it is cut off."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(complains, request)
        tasks.start_soon(anyio.sleep, 60)


async def _one_call_and_a_rest(request: ClientRequest) -> None:
    await request.tools.call_tool("chat", "list", None)
    await request.tools.call_tool("chat", "list", None)
    await anyio.sleep(60)


@pytest.mark.parametrize("agent", [keeps_calling, gives_up, complains, in_a_group])
async def test_a_client_that_swallows_what_it_gets_does_not_escape_the_limit_of_calls(
    agent: Callable[..., Any],
) -> None:
    boundary = Boundary()
    assert await run(agent, {"maxToolCalls": 1}, boundary) == Trial(stopped_by="calls")
    assert boundary.tools == ["list"]


@pytest.mark.parametrize("agent", [gives_up, complains, in_a_group])
async def test_a_client_that_swallows_what_it_gets_does_not_escape_the_limit_of_time(
    agent: Callable[..., Any],
) -> None:
    assert await run(agent, {"maxDurationMs": 20}) == Trial(stopped_by="time")


async def test_a_client_cut_off_from_outside_stays_cut_off() -> None:
    async def agent(request: ClientRequest) -> None:
        await anyio.sleep(60)

    with anyio.move_on_after(0.02) as scope:
        await run(agent, {"maxDurationMs": 30_000, "maxToolCalls": 1})
    assert scope.cancelled_caught


@pytest.mark.parametrize("error", [InfrastructureError("network", "cut"), ValueError("a bug")])
async def test_what_a_client_raises_within_its_limits_passes_through(error: Exception) -> None:
    async def agent(request: ClientRequest) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await run(agent, {"maxDurationMs": 30_000, "maxToolCalls": 1})
    assert caught.value is error


async def test_the_limit_is_taken_off_once_the_client_has_ended() -> None:
    boundary = Boundary()
    await run(keeps_calling, {"maxToolCalls": 1}, boundary)
    assert boundary.guard is None
    await run(keeps_calling, {}, boundary)
    assert boundary.tools == ["list"] * 11


async def test_limits_that_are_none_are_told_before_the_client_acts() -> None:
    boundary = Boundary()
    with pytest.raises(OptionsError, match="maxToolCalls"):
        await run(keeps_calling, {"maxToolCalls": "many"}, boundary)
    assert boundary.calls == []


@pytest.mark.parametrize("returned", [None, "done", object()])
async def test_a_client_that_returns_no_ending_is_told_so(returned: Any) -> None:
    class Wrong:
        name = "wrong"

        async def run(self, request: ClientRequest) -> Any:
            return returned

    with pytest.raises(TypeError, match=r"client 'wrong' returned .*; `run` returns a Trial"):
        await run_within_limits(Wrong(), request())
