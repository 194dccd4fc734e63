"""Calls of trace and record that do not match, beside those of the other side that come nearest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from pytest_mst.domain.call_pair import CallDifference, CallPair
from pytest_mst.domain.json_value import json_equal
from pytest_mst.grading.claims import (
    Claim,
    RecordedCall,
    call_order,
    claim_order,
    in_order,
    side_of_call,
    side_of_event,
)
from pytest_mst.grading.difference import Absent, differences, path_text

COMPARED = 100
"""How many calls of each side that are left over are compared with one another."""
_COUNTED_DIFFERENCES = 100

_Distance: TypeAlias = tuple[bool, bool, int]


def side_by_side(
    claims: Sequence[Claim], calls: Sequence[RecordedCall], matched: Mapping[int, int]
) -> tuple[CallPair, ...]:
    """Return the pairs that show where trace and record differ, each call in one at most.

    First those that are left over and come nearest to one another, then calls that one side has
    more often than the other, then those that are matched by the client's id and differ.

    Args:
        claims: the calls of the trace.
        calls: the recorded calls.
        matched: positions of calls by positions of claims.

    """
    taken = set(matched.values())
    open_claims = in_order(
        [one for i, one in enumerate(claims) if i not in matched and one.may_be_recorded],
        claim_order,
    )[:COMPARED]
    open_calls = in_order([one for i, one in enumerate(calls) if i not in taken], call_order)
    open_calls = open_calls[:COMPARED]
    joined = [
        (claims[left], calls[right])
        for left, right in matched.items()
        if not claims[left].may_be(calls[right])
    ]
    if not (open_claims or open_calls or joined):
        return ()
    together = [(claims[left], calls[right]) for left, right in matched.items()]
    counts = _Counts(claims, calls)
    repeated, other_claims, other_calls = _repeated(together, open_claims, open_calls)
    left_over = [*_nearest(other_claims, other_calls), *repeated]
    return tuple(
        CallPair(
            in_trace=side_of_event(claim.event),
            in_record=side_of_call(call),
            difference=_difference(claim, call),
            times_in_trace=counts.in_trace(claim),
            times_in_record=counts.in_record(call),
            joined=is_joined,
        )
        for pairs, is_joined in ((left_over, False), (joined, True))
        for claim, call in pairs
    )


class _Counts:
    """How often each side has one and the same call."""

    def __init__(self, claims: Sequence[Claim], calls: Sequence[RecordedCall]) -> None:
        self._claims = claims
        self._calls = calls

    def in_trace(self, claim: Claim) -> int:
        return sum(_same_claims(claim, other) for other in self._claims)

    def in_record(self, call: RecordedCall) -> int:
        return sum(_same_calls(call, other) for other in self._calls)


def _same_claims(one: Claim, other: Claim) -> bool:
    return (
        one.event.name == other.event.name
        and one.servers == other.servers
        and json_equal(one.event.arguments or {}, other.event.arguments or {})
    )


def _same_calls(one: RecordedCall, other: RecordedCall) -> bool:
    a, b = one.as_sent, other.as_sent
    return (a.tool, a.server) == (b.tool, b.server) and json_equal(a.arguments, b.arguments)


def _repeated(
    together: Sequence[tuple[Claim, RecordedCall]],
    open_claims: Sequence[Claim],
    open_calls: Sequence[RecordedCall],
) -> tuple[list[tuple[Claim, RecordedCall]], list[Claim], list[RecordedCall]]:
    """Find the matched pairs that one side has more of, and what is left over beside those."""
    pairs: list[tuple[Claim, RecordedCall]] = []
    claims, calls = list(open_claims), list(open_calls)
    for claim, call in together:
        if not claim.may_be(call):
            continue
        more_calls = [one for one in calls if _same_calls(call, one)]
        more_claims = [one for one in claims if _same_claims(claim, one)]
        if bool(more_calls) != bool(more_claims):
            pairs.append((claim, call))
            calls = [one for one in calls if not _is_in(one, more_calls)]
            claims = [one for one in claims if not _is_in(one, more_claims)]
    return pairs, claims, calls


def _is_in(one: object, several: Sequence[object]) -> bool:
    return any(one is other for other in several)


def _nearest(
    claims: Sequence[Claim], calls: Sequence[RecordedCall]
) -> list[tuple[Claim, RecordedCall]]:
    """Pair calls that are left over, the nearest first, each once; they come in their order."""
    candidates = [
        (distance, left, right)
        for left, claim in enumerate(claims)
        for right, call in enumerate(calls)
        if (distance := _distance(claim, call)) is not None
    ]
    pairs: list[tuple[Claim, RecordedCall]] = []
    used: tuple[set[int], set[int]] = (set(), set())
    for _, left, right in sorted(candidates):
        if left not in used[0] and right not in used[1]:
            used[0].add(left)
            used[1].add(right)
            pairs.append((claims[left], calls[right]))
    return pairs


def _distance(claim: Claim, call: RecordedCall) -> _Distance | None:
    """Return how far two calls are apart; `None` where they have nothing in common."""
    joined = claim.is_joined(call)
    if call.as_sent.tool != claim.event.name and not joined:
        return None
    found = differences(claim.event.arguments or {}, call.as_sent.arguments)
    return (
        not joined,
        call.as_sent.server not in claim.servers,
        sum(1 for _ in islice(found, _COUNTED_DIFFERENCES)),
    )


def _difference(claim: Claim, call: RecordedCall) -> CallDifference | None:
    """Return the first place where two calls differ; `None` where they are one and the same."""
    return next(_all_differences(claim, call), None)


def _all_differences(claim: Claim, call: RecordedCall) -> Iterator[CallDifference]:
    event, sent = claim.event, call.as_sent
    if event.name != sent.tool:
        yield CallDifference("tool", event.name, sent.tool)
    if sent.server not in claim.servers:
        yield CallDifference("server", event.server, sent.server)
    for found in differences(event.arguments or {}, sent.arguments):
        path = path_text("arguments", found.keys)
        if isinstance(found.one, Absent):
            assert not isinstance(found.other, Absent)
            yield CallDifference(path, in_record=found.other, only_in="record")
        elif isinstance(found.other, Absent):
            yield CallDifference(path, in_trace=found.one, only_in="trace")
        else:
            yield CallDifference(path, found.one, found.other)
    if event.id is not None and sent.join_id is not None and event.id != sent.join_id:
        yield CallDifference("id", event.id, sent.join_id)
