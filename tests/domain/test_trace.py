"""Traces: what the client did, in order, and their stored form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.attempt import trace_from_json
from pytest_mst.domain.trace import Trace, TraceEvent

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OBJECTS = st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS, max_size=3)
EVENTS = st.builds(
    TraceEvent,
    name=TEXTS,
    kind=st.sampled_from(["tool_call", "skill", "command", "subagent", "tool_search"]),
    source=st.sampled_from(["mcp", "builtin"]),
    server=st.none() | TEXTS,
    arguments=st.none() | OBJECTS,
    output=st.none() | OBJECTS,
    is_error=st.none() | st.booleans(),
    id=st.none() | TEXTS,
)
TRACES = st.builds(
    Trace,
    answer=st.none() | TEXTS,
    events=st.lists(EVENTS, max_size=4).map(tuple),
    servers=st.lists(TEXTS, max_size=2).map(tuple),
    evidence=st.sampled_from(["structured", "observed", "none"]),
    usage=st.none() | OBJECTS,
)


@given(TRACES)
def test_a_trace_is_read_back_as_it_was_written(trace: Trace) -> None:
    assert trace_from_json(json.loads(json.dumps(trace.to_json()))) == trace


@given(TRACES)
def test_tool_calls_are_those_events_in_order(trace: Trace) -> None:
    assert trace.tool_calls == [event for event in trace.events if event.kind == "tool_call"]


def test_what_an_event_does_not_have_is_left_out_and_what_is_empty_is_not() -> None:
    assert TraceEvent("list").to_json() == {"kind": "tool_call", "source": "mcp", "name": "list"}
    event = TraceEvent("list", arguments={}, output="", is_error=False)
    assert event.to_json() == {
        "kind": "tool_call",
        "source": "mcp",
        "name": "list",
        "arguments": {},
        "output": "",
        "isError": False,
    }


def test_an_empty_trace_says_that_there_is_no_answer() -> None:
    assert Trace().to_json() == {
        "answer": None,
        "events": [],
        "servers": [],
        "evidence": "structured",
    }


@pytest.mark.parametrize(
    "stored",
    [
        {"evidence": "guessed"},
        {"events": [{"name": "x", "kind": "dance"}]},
        {"events": [{"kind": "tool_call"}]},
        {"events": [{"name": "x", "kind": "tool_call", "arguments": []}]},
        {"answer": 1},
    ],
    ids=str,
)
def test_what_is_no_trace_is_refused(stored: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        trace_from_json(stored)
