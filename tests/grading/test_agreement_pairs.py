"""Where trace and record differ, side by side."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.agreement import Agreement, agreement_from_json
from pytest_mst.domain.call_pair import CallDifference, CallPair, CallSide
from pytest_mst.domain.eval_config import Dispatcher
from pytest_mst.domain.json_value import canonical_json
from pytest_mst.domain.score import Score
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import ServerTools, WriteEntry
from pytest_mst.grading.agreement import agreement
from pytest_mst.grading.claims import claims_of, matching, recorded_calls
from pytest_mst.grading.difference import ABSENT, differences, path_text
from pytest_mst.grading.side_by_side import COMPARED
from pytest_mst.grading.writes import NOT_CHECKED, WritesGrader
from tests.grading.trials import CHAT, WRITE, dispatched, entry, event, facts_of


def found(events: list[TraceEvent], entries: list[WriteEntry], tools: Any = CHAT) -> Agreement:
    return agreement(Trace(events=events), entries, tools)


def only_pair(agreed: Agreement) -> CallPair:
    (pair,) = agreed.pairs
    return pair


def test_a_call_that_was_sent_otherwise_stands_beside_what_the_trace_says() -> None:
    told: dict[str, Any] = {"channel": "#a", "n": 1}
    sent: dict[str, Any] = {"channel": "#b", "n": 1}
    pair = only_pair(found([event(arguments=told)], [entry(arguments=sent)]))
    assert pair.in_trace == CallSide("chat", "post_message", told)
    assert pair.in_record == CallSide("chat", "post_message", sent)
    assert pair.difference == CallDifference("arguments.channel", "#a", "#b")


@pytest.mark.parametrize(
    ("told", "sent", "difference"),
    [
        ({"n": 1}, {}, CallDifference("arguments.n", in_trace=1, only_in="trace")),
        ({}, {"n": None}, CallDifference("arguments.n", in_record=None, only_in="record")),
        ({"n": True}, {"n": 1}, CallDifference("arguments.n", in_trace=True, in_record=1)),
        (
            {"at": [{"id": 1}, {"id": 2}]},
            {"at": [{"id": 1}, {"id": 3}]},
            CallDifference("arguments.at[1].id", 2, 3),
        ),
        (
            {"at": [1]},
            {"at": [1, 2]},
            CallDifference("arguments.at[1]", in_record=2, only_in="record"),
        ),
        ({"a b": 1}, {"a b": 2}, CallDifference('arguments["a b"]', 1, 2)),
    ],
)
def test_the_first_place_that_differs_is_named_whichever_side_has_it(
    told: dict[str, Any], sent: dict[str, Any], difference: CallDifference
) -> None:
    pair = only_pair(found([event(arguments=told)], [entry(arguments=sent)]))
    assert pair.difference == difference
    stored = agreement_from_json({"checked": True, "pairs": [pair.to_json()]}, ())
    assert stored.pairs == (pair,)


def test_each_call_stands_beside_the_one_that_comes_nearest() -> None:
    events = [event(arguments={"a": 1, "b": 9}), event(arguments={"a": 2, "b": 2})]
    entries = [
        entry(arguments={"a": 2, "b": 3}, seq=0),
        entry(arguments={"a": 1, "b": 1}, seq=1),
    ]
    pairs = found(events, entries).pairs
    assert {(pair.in_trace.arguments["b"], pair.in_record.arguments["b"]) for pair in pairs} == {
        (9, 1),
        (2, 3),
    }


def test_calls_that_have_nothing_in_common_make_no_pair() -> None:
    agreed = found([event("delete_all")], [entry("post_message")])
    assert not agreed.agrees
    assert not agreed.pairs


def test_the_clients_id_makes_a_pair_of_calls_to_different_tools() -> None:
    pair = only_pair(found([event("delete_all", id="t1")], [entry(join_id="t1")]))
    assert pair.difference == CallDifference("tool", "delete_all", "post_message")
    assert not pair.joined


def test_calls_to_another_server_differ_there() -> None:
    tools = {label: ServerTools(label, {"send": WRITE}) for label in ("a", "b")}
    pair = only_pair(found([event("send", server="a")], [entry("send", server="b")], tools))
    assert pair.difference == CallDifference("server", "a", "b")


def test_equal_calls_with_different_ids_differ_there() -> None:
    pair = only_pair(found([event(id="t1")], [entry(join_id="t2")]))
    assert pair.difference == CallDifference("id", "t1", "t2")


def test_one_call_that_the_transport_sent_four_times_is_said_to_be_one() -> None:
    entries = [entry(arguments={"text": "hi"}, seq=seq) for seq in range(4)]
    agreed = found([event(arguments={"text": "hi"})], entries)
    assert agreed.unreported == tuple(entries[1:])
    pair = only_pair(agreed)
    assert (pair.difference, pair.times_in_trace, pair.times_in_record) == (None, 1, 4)


def test_a_call_that_the_trace_has_more_often_is_said_to_be_one() -> None:
    events = [event(arguments={"n": 1})] * 3
    pair = only_pair(found(events, [entry(arguments={"n": 1.0})]))
    assert (pair.difference, pair.times_in_trace, pair.times_in_record) == (None, 3, 1)


def test_calls_that_the_id_joins_agree_and_their_difference_is_shown() -> None:
    agreed = found(
        [event(arguments={"text": "long…"}, id="t1")],
        [entry(arguments={"text": "long text"}, join_id="t1")],
    )
    assert agreed.agrees
    pair = only_pair(agreed)
    assert pair.joined
    assert pair.difference == CallDifference("arguments.text", "long…", "long text")


def test_without_a_trace_there_is_nothing_to_put_beside_the_record() -> None:
    agreed = agreement(None, [entry(), entry(seq=1)], CHAT)
    assert len(agreed.unreported) == 2
    assert not agreed.pairs


def test_what_a_cut_off_trace_has_is_matched_and_the_rest_is_unreported() -> None:
    entries = [entry(arguments={"n": n}, seq=n) for n in range(3)]
    agreed = found([event(arguments={"n": 0})], entries)
    assert agreed.unreported == tuple(entries[1:])
    assert not agreed.pairs


def test_a_read_that_was_told_of_is_no_nearest_to_a_write() -> None:
    tools = {
        "chat": ServerTools(
            "chat",
            {"run": WRITE, "list_people": {"annotations": {"readOnlyHint": True}}},
            dispatchers={"run": Dispatcher(tool="tool", arguments="params")},
        )
    }
    read = event("run", {"tool": "list_people"})
    agreed = found([read], [entry("run", {"tool": "delete_all"})], tools)
    assert len(agreed.unreported) == 1
    assert not agreed.unrecorded
    assert not agreed.pairs


def test_a_batch_is_one_call_in_a_pair_and_stands_as_sent() -> None:
    def sent(second: str) -> dict[str, Any]:
        return {"operations": [{"tool": "post_message"}, {"tool": second}]}

    target = dispatched("post_message").target
    batch = [
        entry("run_batch", sent("delete_all"), target=target, seq=seq, call_seq=5)
        for seq in range(2)
    ]
    agreed = found([event("run_batch", sent("delete_one"))], batch)
    assert agreed.unreported == tuple(batch)
    pair = only_pair(agreed)
    assert pair.in_record.tool == "run_batch"
    assert pair.times_in_record == 1
    assert pair.difference is not None
    assert pair.difference.path == "arguments.operations[1].tool"


def test_the_grader_says_where_trace_and_record_differ() -> None:
    events, entries = [event(arguments={"n": 1})], [entry(arguments={"n": 2})]
    agreed = found(events, entries)
    score = WritesGrader().grade(facts_of(events=events, writes=entries, agreement=agreed))
    assert isinstance(score, Score)
    assert not score.passed
    assert score.details is not None
    assert score.details["pairs"] == [pair.to_json() for pair in agreed.pairs]


def test_a_pass_says_that_nothing_was_compared() -> None:
    agreed = Agreement(checked=False)
    score = WritesGrader().grade(facts_of(writes=[entry()], agreement=agreed))
    assert isinstance(score, Score)
    assert score.passed
    assert score.reason == NOT_CHECKED


def test_very_many_calls_that_are_left_over_are_not_all_compared() -> None:
    count = 10 * COMPARED
    events = [event(arguments={"n": n}) for n in range(count)]
    entries = [entry(arguments={"m": n}, seq=n) for n in range(count)]
    agreed = found(events, entries)
    assert len(agreed.unreported) == len(agreed.unrecorded) == count
    assert len(agreed.pairs) == COMPARED


def test_arguments_deeper_than_python_calls_go_are_compared() -> None:
    deep: Any = "told"
    other: Any = "sent"
    for _ in range(5000):
        deep, other = [deep], [other]
    events = [event(arguments={"n": 1}), event(arguments={"at": deep})]
    entries = [entry(arguments={"n": 1}), entry(arguments={"at": other}, seq=1)]
    pair = only_pair(found(events, entries))
    assert pair.difference is not None
    assert (pair.difference.in_trace, pair.difference.in_record) == ("told", "sent")


# Properties

VALUES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{"n": 1}, {"n": 1.0}, {"n": True}, {}, {"n": 1, "m": [1, {"k": None}]}]
)
IDS = st.sampled_from([None, None, "t1", "t2"])
TOOLS = st.sampled_from(["post_message", "delete_all", "list_channels", "unheard_of"])
TWO = {
    **CHAT,
    "more": ServerTools("more", {"post_message": WRITE, "delete_all": WRITE}),
}
EVENTS = st.lists(
    st.builds(
        lambda tool, given, id_, label: event(tool, given, id=id_, server=label),
        TOOLS,
        VALUES,
        IDS,
        st.sampled_from(["chat", "more", None]),
    ),
    max_size=6,
)
ENTRIES = st.lists(
    st.tuples(TOOLS, VALUES, IDS, st.sampled_from(["chat", "more"])), max_size=6
).map(
    lambda calls: [
        entry(tool, given, join_id=id_, server=label, seq=seq)
        for seq, (tool, given, id_, label) in enumerate(calls)
    ]
)


def of_event(one: TraceEvent) -> tuple[Any, ...]:
    return (one.name, one.server, one.id, canonical_json(one.arguments or {}))


def of_entry(one: WriteEntry) -> tuple[Any, ...]:
    return (one.tool, one.server, one.join_id, canonical_json(one.arguments))


def of_pair(pair: CallPair) -> str:
    return canonical_json(pair.to_json())


@given(EVENTS, ENTRIES, st.data())
def test_it_does_not_count_in_which_order_trace_and_record_stand(
    events: list[TraceEvent], entries: list[WriteEntry], data: st.DataObject
) -> None:
    first = found(events, entries, TWO)
    other = found(data.draw(st.permutations(events)), data.draw(st.permutations(entries)), TWO)
    assert Counter(map(of_entry, first.unreported)) == Counter(map(of_entry, other.unreported))
    assert Counter(map(of_event, first.unrecorded)) == Counter(map(of_event, other.unrecorded))
    assert Counter(map(of_pair, first.pairs)) == Counter(map(of_pair, other.pairs))


@given(EVENTS, ENTRIES)
def test_no_two_calls_that_may_be_one_are_both_left_over(
    events: list[TraceEvent], entries: list[WriteEntry]
) -> None:
    claims = claims_of(Trace(events=events), TWO)
    calls = recorded_calls(entries)
    matched = matching(claims, calls)
    assert len(set(matched.values())) == len(matched)
    for left, claim in enumerate(claims):
        for right, call in enumerate(calls):
            if left not in matched and right not in matched.values():
                assert not claim.may_be(call)
                assert not (claim.is_joined(call) and claim.is_same_tool(call))


@given(EVENTS, ENTRIES)
def test_a_call_stands_in_one_pair_at_most(
    events: list[TraceEvent], entries: list[WriteEntry]
) -> None:
    pairs = found(events, entries, TWO).pairs
    told, sent = ([of_side(p.in_trace) for p in pairs], [of_side(p.in_record) for p in pairs])
    assert Counter(told) <= Counter(of_event(one)[:2] + of_event(one)[3:] for one in events)
    assert Counter(sent) <= Counter(of_entry(one)[:2] + of_entry(one)[3:] for one in entries)


def of_side(side: CallSide) -> tuple[Any, ...]:
    return (side.tool, side.server, canonical_json(side.arguments))


@given(EVENTS, ENTRIES)
def test_a_pair_shows_what_differs_or_how_often_each_side_has_it(
    events: list[TraceEvent], entries: list[WriteEntry]
) -> None:
    for pair in found(events, entries, TWO).pairs:
        if pair.difference is None:
            assert not pair.joined
            assert max(pair.times_in_trace, pair.times_in_record) > 1


@given(EVENTS, ENTRIES)
def test_an_agreement_is_read_back_as_it_was_stored(
    events: list[TraceEvent], entries: list[WriteEntry]
) -> None:
    agreed = found(events, entries, TWO)
    stored = agreement_from_json(agreed.to_json(), entries)
    assert stored.pairs == agreed.pairs
    assert stored.to_json() == agreed.to_json()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, "", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(JSON, JSON)
def test_two_values_differ_somewhere_just_when_they_are_not_equal(one: Any, other: Any) -> None:
    there = list(differences(one, other))
    assert bool(there) == (canonical_json(one) != canonical_json(other))
    mirrored = list(differences(other, one))
    assert Counter(path_text("", d.keys) for d in there) == Counter(
        path_text("", d.keys) for d in mirrored
    )
    assert not any(d.one is ABSENT and d.other is ABSENT for d in there)
