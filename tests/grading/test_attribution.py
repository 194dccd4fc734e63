"""Whose the calls are that came over a connection which attempts share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.call_pair import CallSide
from pytest_mst.domain.shared_entry import SharedEntry
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry
from pytest_mst.grading.attribution import Attribution, attribute
from tests.grading.trials import CHAT, dispatched, entry, event


def wrote(
    under_way: str, arguments: Mapping[str, Any] | None = None, *, sole: bool = False, **more: Any
) -> SharedEntry[str]:
    """Make an entry, recorded while these attempts were under way: a letter each."""
    return SharedEntry(entry(arguments=arguments, **more), frozenset(under_way), sole)


def numbered(*entries: SharedEntry[str]) -> list[SharedEntry[str]]:
    """Number entries in the order of the record."""
    return [
        replace(one, entry=replace(one.entry, seq=seq, call_seq=seq))
        for seq, one in enumerate(entries)
    ]


def told(*arguments: Mapping[str, Any], **fields: Any) -> Trace:
    return Trace(events=tuple(event(arguments=one, **fields) for one in arguments))


def found(
    traces: Mapping[str, Trace | None],
    entries: Sequence[SharedEntry[str]],
    owners: Mapping[int, str] | None = None,
) -> Attribution[str]:
    return attribute(traces, entries, CHAT, owners)


def seqs(attribution: Attribution[str]) -> dict[str, list[int]]:
    return {who: [one.seq for one in theirs] for who, theirs in attribution.given.items()}


def nobodys(attribution: Attribution[str]) -> list[int]:
    return [one.entry.seq for one in attribution.unattributed]


def test_an_entry_is_the_attempts_whose_trace_has_the_call() -> None:
    entries = numbered(wrote("ab", {"n": 1}), wrote("ab", {"n": 2}), wrote("ab", {"n": 1.0}))
    given = found({"a": told({"n": 2}), "b": told({"n": 1}, {"n": 1})}, entries)
    assert seqs(given) == {"a": [1], "b": [0, 2]}
    assert not given.unattributed
    assert not given.contested


def test_what_no_trace_has_is_nobodys_and_in_doubt_for_all_that_were_under_way() -> None:
    entries = numbered(wrote("ab", {"n": 1}), wrote("b", {"n": 2}))
    given = found({"a": told(), "b": told(), "c": told()}, entries)
    assert nobodys(given) == [0, 1]
    assert [side.arguments for side in given.doubt("a").unattributed] == [{"n": 1}]
    assert [side.arguments for side in given.doubt("b").unattributed] == [{"n": 1}, {"n": 2}]
    assert not given.doubt("c").unattributed


def test_an_attempt_is_given_nothing_from_when_it_was_not_under_way() -> None:
    given = found({"a": told({"n": 1}), "b": told()}, numbered(wrote("b", {"n": 1})))
    assert nobodys(given) == [0]


def test_a_late_call_of_another_attempt_is_not_given_to_who_is_alone() -> None:
    given = found({"a": told(), "b": told()}, numbered(wrote("b", {"n": 1})))
    assert nobodys(given) == [0]


def test_what_came_before_there_was_any_other_attempt_needs_no_claim() -> None:
    entries = numbered(wrote("a", {"n": 1}, sole=True), wrote("a", {"n": 2}))
    assert seqs(found({}, entries)) == {"a": [0]}
    assert seqs(found({"a": told()}, entries)) == {"a": [0]}


def test_of_equal_calls_who_ended_first_has_the_earliest() -> None:
    entries = numbered(wrote("ab", {}), wrote("b", {}))
    given = found({"a": told({}), "b": told({})}, entries)
    assert seqs(given) == {"a": [0], "b": [1]}


def test_what_was_given_stays_and_what_comes_later_is_given_beside_it() -> None:
    entries = numbered(wrote("ab", {}), wrote("ab", {}), wrote("bc", {}))
    first = found({"a": told({}, {})}, entries[:1])
    assert first.owners == {0: "a"}
    later = found({"a": told({}, {}), "b": told({}), "c": told()}, entries, first.owners)
    assert seqs(later) == {"a": [0, 1], "b": [2]}


def test_more_claims_than_calls_leave_all_who_claim_them_in_doubt() -> None:
    traces = {"a": told({"n": 1}), "b": told({"n": 1}), "c": told({"n": 2})}
    given = found(traces, numbered(wrote("abc", {"n": 1}), wrote("abc", {"n": 2})))
    assert seqs(given) == {"a": [0], "c": [1]}
    assert set(given.contested) == {"a", "b"}
    assert given.doubt("a").contested == tuple(traces["a"].events)
    assert given.doubt("b").contested == tuple(traces["b"].events)
    assert not given.doubt("c").contested


def test_a_claim_of_what_was_never_called_is_contested_by_nobody() -> None:
    given = found({"a": told({"n": 1}), "b": told({"n": 2})}, numbered(wrote("ab", {"n": 1})))
    assert not given.contested


def test_the_clients_id_comes_before_equal_arguments() -> None:
    entries = numbered(wrote("ab", {}, join_id="b1"), wrote("ab", {}, join_id="a1"))
    given = found({"a": told({}, id="a1"), "b": told({}, id="b1")}, entries)
    assert seqs(given) == {"a": [1], "b": [0]}


def test_an_id_that_one_attempt_has_joins_what_its_trace_shortens() -> None:
    given = found(
        {"a": told({"text": "long…"}, id="a1"), "b": told()},
        numbered(wrote("ab", {"text": "long text"}, join_id="a1")),
    )
    assert seqs(given) == {"a": [0]}


def test_an_id_that_attempts_count_anew_joins_equal_arguments_only() -> None:
    traces = {"a": told({"n": 1}, id="1"), "b": told({"n": 2}, id="1")}
    entries = numbered(wrote("ab", {"n": 2}, join_id="1"), wrote("ab", {"n": 3}, join_id="1"))
    given = found(traces, entries)
    assert seqs(given) == {"b": [0]}
    assert nobodys(given) == [1]


def test_a_shortened_call_waits_until_no_other_attempt_can_have_its_id() -> None:
    entries = numbered(wrote("ab", {"text": "long"}, join_id="1"))
    trace = told({"text": "l…"}, id="1")
    assert nobodys(found({"a": trace}, entries)) == [0]
    assert seqs(found({"a": trace, "b": told()}, entries)) == {"a": [0]}


def test_a_trace_that_is_no_account_claims_nothing() -> None:
    observed = Trace(events=(event(arguments={}),), evidence="observed")
    assert nobodys(found({"a": observed, "b": None}, numbered(wrote("ab", {})))) == [0]


def test_a_batch_goes_to_one_attempt_as_a_whole() -> None:
    sent = {"operations": [{"tool": "post_message"}, {"tool": "delete_all"}]}
    target = dispatched("post_message").target
    batch = [
        SharedEntry(entry("run_batch", sent, target=target, seq=seq, call_seq=5), frozenset("ab"))
        for seq in range(2)
    ]
    claim = Trace(events=(event("run_batch", sent),))
    assert seqs(found({"a": claim, "b": claim}, batch)) == {"a": [0, 1]}
    doubt = found({"a": told(), "b": told()}, batch).doubt("a")
    assert doubt.unattributed == (CallSide("chat", "run_batch", sent),)


# Properties

WHO = "abcd"
CALLS = st.sampled_from([{"n": 1}, {"n": 2}, {"n": 1.0}])
IDS = st.sampled_from([None, None, "1", "2"])
EVENTS = st.lists(
    st.builds(lambda args, id_: event(arguments=args, id=id_), CALLS, IDS), max_size=4
)
TRACES = st.lists(EVENTS, max_size=len(WHO), min_size=1).map(
    lambda lists: {who: Trace(events=events) for who, events in zip(WHO, lists, strict=False)}
)
ENTRIES = st.lists(
    st.builds(
        lambda who, args, id_: wrote("".join(who), args, join_id=id_),
        st.sets(st.sampled_from(WHO), min_size=1),
        CALLS,
        IDS,
    ),
    max_size=6,
).map(lambda entries: numbered(*entries))


@given(TRACES, ENTRIES)
def test_each_entry_is_given_once_at_most_and_none_is_lost(
    traces: dict[str, Trace], entries: list[SharedEntry[str]]
) -> None:
    given = found(traces, entries)
    everywhere = [one.seq for theirs in given.given.values() for one in theirs]
    assert sorted([*everywhere, *nobodys(given)]) == [one.entry.seq for one in entries]
    by_seq = {one.entry.seq: one for one in entries}
    for who, theirs in given.given.items():
        assert len(theirs) <= len(traces[who].events)
        assert all(who in by_seq[one.seq].under_way for one in theirs)


@given(TRACES, ENTRIES)
def test_without_ids_no_claim_is_left_that_something_left_over_fits(
    traces: dict[str, Trace], entries: list[SharedEntry[str]]
) -> None:
    traces = {
        who: told(*(one.arguments or {} for one in trace.events)) for who, trace in traces.items()
    }
    given = found(traces, entries)
    for who, trace in traces.items():
        theirs = given.given.get(who, ())
        free = [one.entry for one in given.unattributed if who in one.under_way]
        assert _most(trace.events, [*theirs, *free]) <= len(theirs)


def _most(events: Sequence[TraceEvent], entries: Sequence[WriteEntry]) -> int:
    """Count how many can be matched one to one by what was sent, by trying everything."""
    if not events:
        return 0
    first, rest = events[0], events[1:]
    best = _most(rest, entries)
    for at, one in enumerate(entries):
        ids_differ = first.id is not None and one.join_id not in (None, first.id)
        if not ids_differ and dict(first.arguments or {}) == dict(one.arguments):
            best = max(best, 1 + _most(rest, [*entries[:at], *entries[at + 1 :]]))
    return best


@given(TRACES, ENTRIES, st.data())
def test_what_was_given_once_is_never_taken_back(
    traces: dict[str, Trace], entries: list[SharedEntry[str]], data: st.DataObject
) -> None:
    ended = data.draw(st.integers(0, len(traces)))
    seen = data.draw(st.integers(0, len(entries)))
    early = dict(list(traces.items())[:ended])
    first = found(early, entries[:seen])
    later = found(traces, entries, first.owners)
    assert first.owners.items() <= later.owners.items()
    for who, trace in traces.items():
        assert len(later.given.get(who, ())) <= len(trace.events)


@given(st.data())
def test_as_many_equal_calls_are_given_away_as_can_be(data: st.DataObject) -> None:
    """Attempts begin and end at some times, calls come at some times: all of them alike."""
    ends = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    spans = sorted(
        (end, data.draw(st.integers(0, end - 1)), data.draw(st.integers(0, 3))) for end in ends
    )
    times = sorted(data.draw(st.lists(st.integers(0, 8), max_size=6)))
    who_when = list(zip(WHO, spans, strict=False))
    under_way = [
        "".join(who for who, (end, begin, _) in who_when if begin <= time < end) for time in times
    ]
    entries = numbered(*(wrote(who, {}) for who in under_way if who))
    traces = {who: told(*[{}] * claims) for who, (_, _, claims) in who_when}
    given = found(traces, entries)
    assert sum(map(len, given.given.values())) == _most_shared(
        [who for who, trace in traces.items() for _ in trace.events],
        [one.under_way for one in entries],
    )


def _most_shared(claims: Sequence[str], entries: Sequence[frozenset[str]]) -> int:
    """Count how many can be given away at most, by augmenting paths."""
    owner: dict[int, int] = {}

    def place(claim: int, tried: set[int]) -> bool:
        for at, under_way in enumerate(entries):
            if claims[claim] in under_way and at not in tried:
                tried.add(at)
                if at not in owner or place(owner[at], tried):
                    owner[at] = claim
                    return True
        return False

    return sum(place(claim, set()) for claim in range(len(claims)))
