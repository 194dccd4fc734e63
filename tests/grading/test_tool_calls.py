"""Graders of the tool calls in the trace."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mst.domain.case import ToolCallCount, ToolsTriggered
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, Score, Unknown
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.grading.tool_calls import ToolCallCountGrader, ToolsTriggeredGrader
from tests.grading.trials import event, facts_of


def outcome(
    calls: list[dict[str, Any]],
    *events: TraceEvent,
    trace: Trace | None = None,
    **keys: Any,
) -> GradeOutcome:
    expected = ToolsTriggered.model_validate({"calls": calls, **keys})
    return ToolsTriggeredGrader(expected).grade(facts_of(events=events, trace=trace))


def triggered(*args: Any, **keys: Any) -> Score:
    score = outcome(*args, **keys)
    assert isinstance(score, Score)
    assert score.evidence is Evidence.CALLED
    return score


def test_expected_calls_are_looked_for_in_the_trace() -> None:
    assert triggered([{"name": "list_channels"}], event("list_channels")).passed
    score = triggered([{"name": "a"}, {"name": "b"}], event("a"))
    assert not score.passed
    assert score.value == 0.5
    assert score.reason is not None
    assert score.reason.startswith("no tool call matches b {}; the nearest is chat.a {}")


def test_events_that_are_no_tool_calls_do_not_count() -> None:
    assert not triggered([{"name": "a"}], event("a", kind="skill")).passed


def test_a_name_may_have_its_servers_label() -> None:
    assert triggered([{"name": "chat.post"}], event("post")).passed
    score = triggered([{"name": "docs.post"}], event("post", server="chat"))
    assert not score.passed


def test_a_call_whose_server_the_client_does_not_name_is_the_only_servers() -> None:
    call = event("post", server=None)
    assert triggered([{"name": "chat.post"}], call).passed
    two = Trace(answer="", events=(call,), servers=("chat", "docs"))
    assert not triggered([{"name": "chat.post"}], trace=two).passed


def test_a_tool_whose_name_has_dots_is_tried_first() -> None:
    dotted = event("mail.send", server="chat")
    assert triggered([{"name": "mail.send"}], dotted).passed
    assert triggered([{"name": "chat.mail.send"}], dotted).passed
    assert triggered([{"name": "mail.send"}], event("send", server="mail")).passed
    both = [event("send", server="mail", arguments={"n": 1}), dotted]
    assert triggered([{"name": "mail.send"}], *both).passed
    assert not triggered([{"name": "mail.send", "arguments": {"n": 1}}], *both).passed


def test_exclusive_names_the_calls_that_are_too_many() -> None:
    calls, events = [{"name": "a"}], (event("a"), event("b", arguments={"n": 1}))
    assert triggered(calls, *events).passed
    score = triggered(calls, *events, exclusive=True)
    assert not score.passed
    assert score.value == 1
    assert score.reason == 'tool calls that are not expected: chat.b {"n": 1}'
    assert not triggered([], event("a"), exclusive=True).passed
    assert triggered([], exclusive=True).passed


def test_strict_order_is_the_order_of_the_trace() -> None:
    calls = [{"name": "a"}, {"name": "b"}]
    assert triggered(calls, event("b"), event("a")).passed
    assert not triggered(calls, event("b"), event("a"), order="strict").passed


def test_without_a_trace_calls_are_unknown() -> None:
    none = Trace(answer="done", evidence="none")
    found = outcome([{"name": "a"}], trace=none)
    assert isinstance(found, Unknown)
    counted = ToolCallCountGrader(ToolCallCount(max=0)).grade(facts_of(trace=none))
    assert isinstance(counted, Unknown)


@pytest.mark.parametrize(
    ("limits", "passes"),
    [
        ({"exact": 2}, True),
        ({"exact": 1}, False),
        ({"exact": 3}, False),
        ({"min": 2}, True),
        ({"min": 3}, False),
        ({"max": 2}, True),
        ({"max": 1}, False),
        ({"max": 0}, False),
        ({"min": 1, "max": 3}, True),
    ],
)
def test_tool_calls_are_counted_whatever_their_source(limits: dict[str, int], passes: bool) -> None:
    events = [event("a"), event("Bash", server=None, source="builtin"), event("s", kind="skill")]
    grader = ToolCallCountGrader(ToolCallCount.model_validate(limits))
    score = grader.grade(facts_of(events=events))
    assert isinstance(score, Score)
    assert score.passed is passes
    assert score.evidence is Evidence.CALLED
    assert (score.reason is None) is passes


def test_a_count_that_is_off_says_what_was_called() -> None:
    score = ToolCallCountGrader(ToolCallCount(min=3)).grade(facts_of(events=[event("a")]))
    assert isinstance(score, Score)
    assert score.reason == "expected at least 3, found 1 tool calls (chat.a)"
