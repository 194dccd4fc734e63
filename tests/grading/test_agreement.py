"""The client's account of its writes against the record of the boundary."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.json_value import canonical_json
from pytest_mst.domain.trace import Trace, TraceEvent, TraceEvidence
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.grading.agreement import agreement
from tests.grading.trials import CHAT, dispatched, entry, event, server

TWO_MAILS = {
    "mail_a": server("mail_a", writes=["send_email"]),
    "mail_b": server("mail_b", writes=["send_email"]),
}


def trace(*events: TraceEvent, evidence: TraceEvidence = "structured") -> Trace:
    return Trace(events=events, evidence=evidence)


def test_a_write_in_trace_and_record_agrees() -> None:
    found = agreement(trace(event(arguments={"n": 1})), [entry(arguments={"n": 1.0})], CHAT)
    assert found.checked
    assert found.agrees


def test_a_write_that_the_client_leaves_out_is_unreported() -> None:
    hidden = entry("delete_all")
    found = agreement(trace(event()), [entry(), hidden], CHAT)
    assert found.unreported == (hidden,)
    assert not found.unrecorded


def test_a_write_that_was_never_made_is_unrecorded() -> None:
    claimed = event("delete_all")
    found = agreement(trace(event(), claimed), [entry()], CHAT)
    assert found.unrecorded == (claimed,)
    assert not found.unreported


def test_a_read_needs_no_entry_and_a_tool_nobody_lists_does() -> None:
    made_up = event("no_such_tool")
    found = agreement(trace(event("list_channels"), made_up), [], CHAT)
    assert found.unrecorded == (made_up,)


def test_a_refused_write_is_matched_like_any_other() -> None:
    refused = entry("no_such_tool", refused="unknown-tool")
    assert agreement(trace(event("no_such_tool")), [refused], CHAT).agrees
    assert agreement(trace(), [refused], CHAT).unreported == (refused,)


@pytest.mark.parametrize("sent", [None, {}])
def test_arguments_that_are_omitted_are_empty_arguments(sent: dict[str, Any] | None) -> None:
    assert agreement(trace(event(arguments=sent)), [entry(arguments={})], CHAT).agrees


def test_arguments_are_compared_whole_and_with_their_types() -> None:
    for reported in ({"n": True}, {"n": 1, "more": 1}, {"n": "1"}, {}):
        found = agreement(trace(event(arguments=reported)), [entry(arguments={"n": 1})], CHAT)
        assert len(found.unreported) == len(found.unrecorded) == 1


def test_two_equal_writes_need_two_entries() -> None:
    found = agreement(trace(event(), event()), [entry()], CHAT)
    assert len(found.unrecorded) == 1
    assert agreement(trace(event(), event()), [entry(seq=0), entry(seq=1)], CHAT).agrees


def test_a_write_on_another_server_is_another_write() -> None:
    found = agreement(
        trace(event("send_email", server="mail_a")),
        [entry("send_email", server="mail_b")],
        TWO_MAILS,
    )
    assert len(found.unreported) == len(found.unrecorded) == 1


def test_calls_that_are_not_to_a_server_behind_the_proxy_have_no_record() -> None:
    events = (
        event("post_message", server="direct"),
        event("Bash", server=None, source="builtin"),
        event("post_message", kind="command"),
        event("unheard_of", server=None),
    )
    assert agreement(trace(*events), [], CHAT).agrees


def test_without_a_trace_each_entry_is_unreported() -> None:
    entries = [entry(seq=0), entry(seq=1, unclassified=True)]
    found = agreement(None, entries, CHAT)
    assert found.checked
    assert found.unreported == tuple(entries)
    assert found.unclassified == 1
    assert agreement(None, [], CHAT).agrees


@pytest.mark.parametrize("evidence", ["observed", "none"])
def test_a_trace_that_is_not_the_clients_own_cannot_be_checked(evidence: TraceEvidence) -> None:
    found = agreement(trace(evidence=evidence), [entry(unclassified=True)], CHAT)
    assert not found.checked
    assert found.agrees
    assert found.unclassified == 1


def test_unclassified_entries_are_counted_and_matched() -> None:
    forwarded = entry(unclassified=True, mode=WriteMode.UNGUARDED)
    found = agreement(trace(event()), [forwarded], CHAT)
    assert found.agrees
    assert found.unclassified == 1


# The client's own id of a call


def test_a_shared_id_joins_calls_whose_arguments_were_shortened() -> None:
    found = agreement(
        trace(event(arguments={"text": "long…"}, id="t1")),
        [entry(arguments={"text": "long text"}, join_id="t1")],
        CHAT,
    )
    assert found.agrees


def test_calls_with_different_ids_are_different_calls() -> None:
    found = agreement(trace(event(id="t1")), [entry(join_id="t2")], CHAT)
    assert len(found.unreported) == len(found.unrecorded) == 1


def test_a_call_without_an_id_may_be_one_with_an_id() -> None:
    assert agreement(trace(event(id="t1")), [entry()], CHAT).agrees
    assert agreement(trace(event()), [entry(join_id="t1")], CHAT).agrees


def test_ids_are_matched_before_equal_arguments() -> None:
    found = agreement(
        trace(event(arguments={"n": 1}), event(arguments={"n": 2}, id="t1")),
        [entry(arguments={"n": 1}, join_id="t1", seq=0), entry(arguments={"n": 1}, seq=1)],
        CHAT,
    )
    assert found.agrees


def test_an_id_that_stands_twice_is_matched_by_arguments_first() -> None:
    first, second = event(arguments={"n": 1}, id="t1"), event(arguments={"n": 2}, id="t1")
    found = agreement(trace(first, second), [entry(arguments={"n": 2}, join_id="t1")], CHAT)
    assert found.unrecorded == (first,)


def test_another_tool_is_another_call_whatever_its_id() -> None:
    written = entry("delete_all", join_id="t1")
    found = agreement(trace(event("list_channels", id="t1")), [written], CHAT)
    assert found.unreported == (written,)


# Calls whose server the client does not name


def test_a_tool_that_one_server_lists_is_that_servers() -> None:
    tools = {**CHAT, **TWO_MAILS}
    assert agreement(trace(event(server=None)), [entry()], tools).agrees
    assert len(agreement(trace(event(server=None)), [], tools).unrecorded) == 1


def test_a_tool_that_several_servers_list_is_matched_with_any_of_them() -> None:
    written = [
        entry("send_email", server="mail_b", seq=0),
        entry("send_email", server="mail_a", seq=1),
    ]
    events = (event("send_email", server=None), event("send_email", server="mail_b"))
    assert agreement(trace(*events), written, TWO_MAILS).agrees
    assert len(agreement(trace(*events), written[:1], TWO_MAILS).unrecorded) == 1


def test_a_tool_that_may_be_a_read_elsewhere_needs_no_entry() -> None:
    tools = {"a": server("a", writes=["find"]), "b": server("b", reads=["find"])}
    assert agreement(trace(event("find", server=None)), [], tools).agrees
    assert agreement(trace(event("find", server=None)), [entry("find", server="a")], tools).agrees


def test_a_refused_call_to_no_known_tool_is_matched_without_a_server() -> None:
    refused = entry("made_up", refused="unknown-tool")
    assert agreement(trace(event("made_up", server=None)), [refused], CHAT).agrees


# Dispatchers


def test_a_dispatched_write_is_matched_as_sent() -> None:
    written = dispatched("delete_all", {"n": 1})
    tools = {"chat": server("chat", reads=["run_tool"])}
    sent = event("run_tool", {"tool_name": "delete_all", "params": {"n": 1}})
    assert agreement(trace(sent), [written], tools).agrees
    assert agreement(trace(), [written], tools).unreported == (written,)


def test_a_batch_is_one_call() -> None:
    sent = {"operations": [{"tool": "post_message"}, {"tool": "delete_all"}]}
    target = dispatched("post_message").target
    batch = [entry("run_batch", sent, target=target, seq=seq, call_seq=5) for seq in range(2)]
    call = event("run_batch", sent)
    assert agreement(trace(call), batch, CHAT).agrees
    assert agreement(trace(call, call), batch, CHAT).unrecorded == (call,)
    assert agreement(trace(), batch, CHAT).unreported == tuple(batch)
    again = [entry("run_batch", sent, target=target, seq=2, call_seq=6)]
    assert agreement(trace(call), [*batch, *again], CHAT).unreported == tuple(again)


def test_who_knows_the_targets_says_which_dispatched_calls_are_reads() -> None:
    tools = {"chat": server("chat", writes=["run_tool"])}
    read = event("run_tool", {"tool_name": "list_people"})
    write = event("run_tool", {"tool_name": "delete_all"})

    def is_write(_server: str, _tool: str, arguments: Any) -> bool:
        return bool(arguments["tool_name"] != "list_people")

    found = agreement(trace(read, write), [], tools, is_write=is_write)
    assert found.unrecorded == (write,)


# What is left over adds up

VALUES = st.sampled_from([{"n": 1}, {"n": 1.0}, {"n": True}, {}])
IDS = st.sampled_from([None, None, "t1", "t2"])
TOOLS = st.sampled_from(["post_message", "delete_all"])
EVENTS = st.lists(
    st.builds(lambda tool, args, id_: event(tool, args, id=id_), TOOLS, VALUES, IDS), max_size=6
)
CALLS = st.lists(st.tuples(TOOLS, VALUES, IDS), max_size=6)


def _entries(calls: list[tuple[str, dict[str, Any], str | None]]) -> list[WriteEntry]:
    return [
        entry(tool, arguments, seq=seq, join_id=join_id)
        for seq, (tool, arguments, join_id) in enumerate(calls)
    ]


@given(EVENTS, CALLS)
def test_as_many_events_as_entries_are_matched(
    events: list[TraceEvent], calls: list[tuple[str, dict[str, Any], str | None]]
) -> None:
    entries = _entries(calls)
    found = agreement(trace(*events), entries, CHAT)
    assert len(events) - len(found.unrecorded) == len(entries) - len(found.unreported)


@given(EVENTS, CALLS, st.data())
def test_the_order_of_events_and_entries_does_not_count_without_ids(
    events: list[TraceEvent],
    calls: list[tuple[str, dict[str, Any], str | None]],
    data: st.DataObject,
) -> None:
    events = [event(one.name, one.arguments) for one in events]
    entries = _entries([(tool, arguments, None) for tool, arguments, _ in calls])
    found = agreement(trace(*events), entries, CHAT)
    shuffled = agreement(
        trace(*data.draw(st.permutations(events))), data.draw(st.permutations(entries)), CHAT
    )
    assert len(shuffled.unreported) == len(found.unreported)
    assert len(shuffled.unrecorded) == len(found.unrecorded)
    claimed = Counter((one.name, canonical_json(one.arguments or {})) for one in events)
    recorded = Counter((one.tool, canonical_json(one.arguments)) for one in entries)
    assert len(found.unreported) == (recorded - claimed).total()
    assert len(found.unrecorded) == (claimed - recorded).total()
