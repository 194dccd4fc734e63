"""Errors of tool calls: what the peer said is kept as it came."""

from __future__ import annotations

from pytest_mst.domain.ending import InfrastructureError
from pytest_mst.domain.errors import MstError
from pytest_mst.domain.tool_call import ServerGoneError, ToolCaller, ToolCallError
from pytest_mst.proxy.boundary import Boundary
from pytest_mst.proxy.record import CallRecord


def test_a_call_error_keeps_the_peers_code_words_and_data() -> None:
    error = ToolCallError(-32050, "not today", {"why": None})
    assert (error.code, error.message, error.data) == (-32050, "not today", {"why": None})
    assert str(error) == "not today (code -32050)"
    assert ToolCallError(1, "x").data is None


def test_a_server_that_ended_in_the_call_is_a_call_error_the_client_may_catch() -> None:
    assert issubclass(ServerGoneError, ToolCallError)
    assert not issubclass(ToolCallError, InfrastructureError | MstError)


def test_the_proxys_boundary_is_what_clients_call_tools_through() -> None:
    boundary: ToolCaller = Boundary(CallRecord(lambda entry: None), "t")
    assert boundary.servers == ()
    assert boundary.guard is None
