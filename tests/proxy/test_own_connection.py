"""Calls of our own, past every boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from pytest_mst.domain.ending import Scope
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.own_connection import OwnCallError
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.attempt.setting import small

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def called(
    hub: Hub, spec: UpstreamSpec, tool: str, limit_s: float = 10, **arguments: Any
) -> Mapping[str, Any]:
    with anyio.fail_after(30):
        return await hub.call_own(spec, tool, arguments, limit_s=limit_s)


async def refused(hub: Hub, spec: UpstreamSpec, tool: str, **more: Any) -> OwnCallError:
    with pytest.raises(OwnCallError) as caught:
        await called(hub, spec, tool, **more)
    return caught.value


async def test_a_result_is_handed_on_as_it_is_an_error_too() -> None:
    async with Hub() as hub:
        read = await called(hub, small(), "read_note", text="as it is")
        failed = await called(hub, small(), "fail")
    assert read["content"][0]["text"] == "as it is"
    assert failed["isError"] is True


@pytest.mark.lets_writes_through
async def test_no_boundary_stands_in_its_way() -> None:
    async with Hub() as hub:
        done = await called(hub, small(), "write_note", text="really")
    assert done["content"][0]["text"] == "write_note executed"


async def test_what_got_no_result_says_whether_a_later_go_can_help() -> None:
    async with Hub() as hub:
        rejected = await refused(hub, small(), "refuse")
        late = await refused(hub, small(), "slow", limit_s=0.2, seconds=5)
        died = await refused(hub, small(label="other"), "die")
        gone = await refused(hub, small("--exit-on-start", "7", label="gone"), "read_note")
    found = [(one.retryable, one.scope) for one in (rejected, late, died, gone)]
    assert found == [
        (False, Scope.TRIAL),
        (True, Scope.TRIAL),
        (True, Scope.TRIAL),
        (True, Scope.VARIANT),
    ]
    assert "not today (code -32050)" in rejected.reason
    assert "did not answer in 0.2 s" in late.reason
    assert died.detail is not None
    assert "boom: told to die" in died.detail


async def test_the_servers_own_limit_counts_where_it_is_shorter() -> None:
    async with Hub() as hub:
        late = await refused(hub, small(callTimeoutMs=150), "slow", seconds=5)
    assert "did not answer in 0.15 s" in late.reason


async def test_a_server_that_died_is_there_again_for_the_next_call() -> None:
    async with Hub() as hub:
        await refused(hub, small(), "die")
        assert (await called(hub, small(), "read_note"))["content"][0]["text"] == "the note"
