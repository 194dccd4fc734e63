"""A finished trial as a test body sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.attempt.trial_view import FinishedTrial, Looked, WriteRecord
from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry, WriteMode, WriteTarget
from tests.attempt.setting import AT


def entry(
    tool: str = "post", arguments: Mapping[str, Any] | None = None, **fields: Any
) -> WriteEntry:
    given: dict[str, Any] = {
        "seq": 0,
        "call_seq": 0,
        "time": "2026-11-30T09:45:00.000Z",
        "server": "chat",
        "reply": {},
        "mode": WriteMode.PLANNED,
        **fields,
    }
    return WriteEntry(tool=tool, arguments=arguments or {}, **given)


POST = entry("post", {"to": "#a", "text": "hi"})
PURGE = entry("purge", {"all": True}, server="notes")
REFUSED = entry("post", {}, refused="invalid-arguments")
DISPATCHED = entry("run", {"tool": "move"}, target=WriteTarget("move", {"by": 1}, "far"))
UNCLEAR = entry("guess", unclassified=True)


def trial(*writes: WriteEntry, looked: Looked | None = None, **trace: Any) -> FinishedTrial:
    record = AttemptRecord(
        id=AT,
        dataset="cases",
        locator="@abcdefgh",
        started_at="2026-11-30T09:45:00.000Z",
        duration_ms=1500,
        ending=Trial(stopped_by="turns"),
        key="",
        trace=Trace(**trace),
        agreement=Agreement(checked=True),
    )
    return FinishedTrial(record, writes, looked)


UNREAD = entry("run", {"tool": 3}, unparsed=True)


def test_a_write_by_a_dispatcher_is_found_by_the_label_that_took_it_too() -> None:
    record = WriteRecord([POST, DISPATCHED])
    assert record.one("move", server="far") is record.one("move", server="chat") is DISPATCHED
    assert record.matching(server="notes") == []


def test_a_call_whose_target_cannot_be_read_is_a_write_and_none_in_particular() -> None:
    record = WriteRecord([UNREAD])
    assert record.matching() == record.matching(server="chat") == [UNREAD]
    assert record.matching("run") == record.matching(arguments={"tool": 3}) == []
    with pytest.raises(AssertionError, match=r"run\(.*\) whose target cannot be read"):
        record.none()


def test_the_only_write_that_matches_is_found_by_server_tool_and_partial_arguments() -> None:
    record = WriteRecord([POST, PURGE, REFUSED, DISPATCHED])
    assert record.one("purge") is PURGE
    assert record.one(server="notes") is PURGE
    assert record.one("post") is POST
    assert record.one(arguments={"to": "#a"}) is POST
    assert record.one("move", server="far", arguments={"by": 1}) is DISPATCHED
    assert record.matching("post", arguments={"to": "#b"}) == []
    assert record.matching() == [POST, PURGE, DISPATCHED]


@pytest.mark.parametrize(
    ("look", "told"),
    [
        (lambda record: record.one("post"), "2 writes match post, not 1"),
        (lambda record: record.one("send"), "0 writes match send, not 1"),
        (lambda record: record.one(server="x", arguments={"a": 1}), "match x({'a': 1}), not 1"),
        (lambda record: record.one(), "3 writes match any tool, not 1"),
        (lambda record: record.none("purge"), "no write was expected to match purge, but 1 did"),
        (lambda record: record.none(), "no write was expected to match any tool, but 3 did"),
    ],
)
def test_a_lookup_that_finds_something_else_tells_what_there_is(
    look: Callable[[WriteRecord], object], told: str
) -> None:
    with pytest.raises(AssertionError) as caught:
        look(WriteRecord([POST, PURGE, POST]))
    assert told in str(caught.value)
    assert "purge({'all': True})" in str(caught.value)


def test_an_empty_record_and_a_long_one_are_told_short() -> None:
    with pytest.raises(AssertionError, match=r"the record has: no write$"):
        WriteRecord([]).one("post")
    with pytest.raises(AssertionError, match=r"and 2 more$"):
        WriteRecord([POST] * 7).one("purge")
    assert "refused: invalid-arguments" in repr(WriteRecord([REFUSED]))
    assert repr(WriteRecord([])) == "<0 writes: no write>"


def test_a_call_the_server_would_refuse_is_in_the_record_and_is_no_write() -> None:
    record = WriteRecord([REFUSED])
    record.none()
    assert len(record) == 1
    assert record[0] is REFUSED


def test_the_record_is_a_sequence_that_compares_with_lists() -> None:
    record = WriteRecord((POST, PURGE))
    assert record == [POST, PURGE]
    assert record == (POST, PURGE)
    assert record != []
    assert WriteRecord([]) == []
    assert record != "post"
    assert record[-1] is PURGE
    assert list(record[:1]) == [POST]
    assert POST in record
    assert list(reversed(record)) == [PURGE, POST]
    assert not WriteRecord([])


def test_the_record_changes_while_the_client_acts() -> None:
    entries: list[WriteEntry] = []
    record = WriteRecord(entries)
    record.none()
    entries.append(POST)
    assert record.one("post") is POST


@given(st.lists(st.sampled_from([POST, PURGE, REFUSED, DISPATCHED, UNCLEAR]), max_size=6))
def test_one_and_none_say_what_matching_finds(entries: list[WriteEntry]) -> None:
    record = WriteRecord(entries)
    for tool in ("post", "purge", "move", "guess", "run", None):
        found = record.matching(tool)
        assert _raises(lambda: record.one(tool)) is (len(found) != 1)  # noqa: B023 - used at once
        assert _raises(lambda: record.none(tool)) is bool(found)  # noqa: B023 - used at once


def _raises(look: Callable[[], object]) -> bool:
    try:
        look()
    except AssertionError:
        return True
    return False


def test_a_trial_tells_what_it_was_and_how_it_ended() -> None:
    one = trial(answer=None, usage={"inputTokens": 3})
    assert (one.locator, one.number, one.duration_s) == ("@abcdefgh", 0, 1.5)
    assert one.ending == Trial(stopped_by="turns")
    assert one.answer == ""
    assert one.usage == {"inputTokens": 3}
    assert trial().usage == {}
    assert one.agreement is not None


def test_the_only_call_of_a_tool_is_found_in_the_trace() -> None:
    events = (
        TraceEvent("list", server="chat"),
        TraceEvent("list", server="notes"),
        TraceEvent("search", kind="tool_search"),
    )
    one = trial(events=events)
    assert one.call("list", server="notes") is events[1]
    assert one.calls() == [*events[:2]]
    assert one.calls("list", server="chat") == [events[0]]
    with pytest.raises(AssertionError, match=r"2 calls of 'list' in the trace.*: list, list"):
        one.call("list")
    with pytest.raises(AssertionError, match="0 calls of 'search'"):
        one.call("search")
    with pytest.raises(AssertionError, match="it has: no call at all"):
        trial().call("list")


@pytest.mark.parametrize(
    ("look", "level"),
    [
        (lambda one: one.answer, Evidence.CLAIMED),
        (lambda one: one.usage, Evidence.CLAIMED),
        (lambda one: one.trace, Evidence.CALLED),
        (lambda one: one.calls(), Evidence.CALLED),
        (lambda one: one.writes.matching("post"), Evidence.REQUESTED),
        (lambda one: one.writes.none(), Evidence.REQUESTED),
        (lambda one: len(one.writes), Evidence.REQUESTED),
        (lambda one: one.writes == [], Evidence.REQUESTED),
        (lambda one: one.agreement, Evidence.REQUESTED),
        (lambda one: one.ending, None),
        (lambda one: (one.locator, one.number, one.duration_s), None),
        (lambda one: one.writes, None),
        (lambda one: repr(one.writes), None),
    ],
)
def test_what_a_body_looked_at_is_what_its_assertions_can_rest_on(
    look: Callable[[FinishedTrial], object], level: Evidence | None
) -> None:
    looked = Looked()
    look(trial(looked=looked, answer="done"))
    assert looked.level is level


@pytest.mark.parametrize("look", [lambda one: one.writes.matching(), lambda one: one.agreement])
def test_a_record_with_an_unclassified_call_is_worth_a_call_at_most(
    look: Callable[[FinishedTrial], object],
) -> None:
    looked = Looked()
    look(trial(POST, UNCLEAR, looked=looked))
    assert looked.level is Evidence.CALLED


@given(st.lists(st.sampled_from(Evidence), min_size=1))
def test_the_strongest_of_what_was_looked_at_counts(levels: list[Evidence]) -> None:
    looked = Looked()
    for level in levels:
        looked.note(level)
    assert looked.level is max(levels)
