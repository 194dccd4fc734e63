"""Whose the calls are that came over one connection which several attempts share.

Nothing in such a call says which attempt made it, and its time does not tell either: a call may
arrive after its attempt has ended. So it is the attempt's whose trace claims it. What no trace
claims, or more traces than there are such calls, is not known to be anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from pytest_mst.domain.call_pair import CallSide
from pytest_mst.domain.shared_entry import K, SharedEntry
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import ServerTools, WriteEntry
from pytest_mst.grading.claims import (
    Claim,
    RecordedCall,
    by_key,
    claims_of,
    equality_text,
    recorded_calls,
    side_of_call,
)
from pytest_mst.grading.pairing import most_pairs


@dataclass(frozen=True, slots=True)
class Doubt:
    """What one attempt cannot know of its record."""

    unattributed: tuple[CallSide, ...] = ()
    """Writes that were made while it was under way, and are nobody's."""
    contested: tuple[TraceEvent, ...] = ()
    """Calls of its trace that another trace claims, too, where the record has fewer."""


NO_DOUBT = Doubt()
"""For a record that is one attempt's alone."""


@dataclass(frozen=True, slots=True)
class Attribution(Generic[K]):
    """Whose the entries are."""

    owners: Mapping[int, K]
    """By the entry's `seq`; each has one owner, or is not in here."""
    given: Mapping[K, tuple[WriteEntry, ...]]
    """The entries of each attempt, in the order of the record."""
    unattributed: tuple[SharedEntry[K], ...] = ()
    contested: Mapping[K, tuple[TraceEvent, ...]] = field(default_factory=dict)

    def doubt(self, attempt: K) -> Doubt:
        """Return what an attempt cannot know, once all that were under way with it have ended."""
        calls = recorded_calls(one.entry for one in self.unattributed if attempt in one.under_way)
        return Doubt(tuple(map(side_of_call, calls)), self.contested.get(attempt, ()))


def attribute(
    traces: Mapping[K, Trace | None],
    entries: Sequence[SharedEntry[K]],
    tools: Mapping[str, ServerTools],
    owners: Mapping[int, K] | None = None,
) -> Attribution[K]:
    """Give each entry to one attempt at most.

    Attempts take what their traces claim, one to one and as much as can be, who ended first
    first, and of equal calls the earliest: so an attempt leaves to the others what was recorded
    after it had ended. No other order would give away more where calls are told apart by what
    was sent. A trace that is not the client's own account claims nothing.

    What an earlier attribution gave away stays where it is, whatever has ended since.

    Args:
        traces: of the attempts that have ended, in the order in which they did.
        entries: of the connection, in the order of the record.
        tools: of the servers behind the connection, by label.
        owners: whose entries are already, by `seq`.

    """
    claims: dict[K, list[Claim]] = {
        attempt: claims_of(trace, tools)
        if trace is not None and trace.evidence == "structured"
        else []
        for attempt, trace in traces.items()
    }
    calls = _shared_calls(entries)
    known = owners or {}
    owner: dict[int, K] = {
        at: known[call.seq] for at, call in enumerate(calls) if call.seq in known
    }
    unmatched: dict[K, list[Claim]] = {}
    for attempt, told in claims.items():
        taken, left = _taken(attempt, claims, calls, owner)
        owner.update(dict.fromkeys(taken, attempt))
        unmatched[attempt] = [told[i] for i in left]
    for at, call in enumerate(calls):
        if call.sole and at not in owner:
            (owner[at],) = call.under_way
    return _attribution(entries, calls, owner, _contested(unmatched, claims, calls, owner))


@dataclass(frozen=True, slots=True)
class _SharedCall(Generic[K]):
    call: RecordedCall
    under_way: frozenset[K]
    sole: bool
    text: str | None
    """What equal calls have in common; `None` where there is no such text."""

    @property
    def seq(self) -> int:
        return self.call.as_sent.seq


def _shared_calls(entries: Sequence[SharedEntry[K]]) -> list[_SharedCall[K]]:
    by_seq = {one.entry.seq: one for one in entries}
    calls = recorded_calls(one.entry for one in entries)
    shared = []
    for call in calls:
        first = by_seq[call.as_sent.seq]
        text = equality_text(call.as_sent.arguments)
        shared.append(_SharedCall(call, first.under_way, first.sole, text))
    return shared


def _taken(
    attempt: K,
    claims: Mapping[K, Sequence[Claim]],
    calls: Sequence[_SharedCall[K]],
    owner: Mapping[int, K],
) -> tuple[list[int], list[int]]:
    """Return the calls that an attempt takes, and the claims it has left: positions of both."""
    told = claims[attempt]
    by_id = by_key(range(len(told)), lambda i: told[i].event.id)
    by_text = by_key(range(len(told)), lambda i: equality_text(told[i].event.arguments or {}))
    # What it has already stands first, and so keeps a claim of its own; then the earliest.
    own = [at for at in range(len(calls)) if owner.get(at) == attempt]
    free = [at for at in range(len(calls)) if at not in owner and attempt in calls[at].under_way]
    used: set[int] = set()

    def joined(call: _SharedCall[K]) -> list[int]:
        join_id = call.call.as_sent.join_id
        there = [] if join_id is None else by_id.get(join_id, [])
        return [i for i in there if i not in used and _is_joined(attempt, told[i], call, claims)]

    def alike(call: _SharedCall[K]) -> list[int]:
        there = by_text.get(call.text, [])
        return [i for i in there if i not in used and told[i].may_be(call.call)]

    def pairs(fits: Callable[[_SharedCall[K]], list[int]], lefts: Sequence[int]) -> dict[int, int]:
        found = most_pairs([fits(calls[at]) for at in lefts])
        return {lefts[left]: claim for left, claim in found.items()}

    taken = pairs(joined, own)
    used.update(taken.values())
    own = [at for at in own if at not in taken]
    kept = set(pairs(alike, own).values())  # no id that comes later takes these
    used |= kept
    taken |= pairs(joined, free)
    used = set(taken.values())
    taken |= pairs(alike, own + [at for at in free if at not in taken])
    used.update(taken.values())
    return list(taken), [i for i in range(len(told)) if i not in used]


def _is_joined(
    attempt: K, claim: Claim, call: _SharedCall[K], claims: Mapping[K, Sequence[Claim]]
) -> bool:
    """Tell whether the client's id joins the two.

    Some clients count their calls anew in each attempt: where another attempt has the id too, or
    has not ended and may have it, the arguments have to be the same.
    """
    if not claim.is_same_tool(call.call):
        return False
    return claim.may_be(call.call) or not any(
        somebody not in claims or any(other.is_joined(call.call) for other in claims[somebody])
        for somebody in call.under_way
        if somebody != attempt
    )


def _contested(
    unmatched: Mapping[K, Sequence[Claim]],
    claims: Mapping[K, Sequence[Claim]],
    calls: Sequence[_SharedCall[K]],
    owner: Mapping[int, K],
) -> dict[K, tuple[TraceEvent, ...]]:
    """Return the claims of which nobody knows whether it is they or another's that are true."""
    found: dict[K, dict[int, TraceEvent]] = {}
    by_text = by_key(range(len(calls)), lambda at: calls[at].text)

    def note(attempt: K, claim: Claim) -> None:
        found.setdefault(attempt, {})[id(claim.event)] = claim.event

    for attempt, left in unmatched.items():
        for claim in (one for one in left if one.must_be_recorded):
            for at in by_text.get(equality_text(claim.event.arguments or {}), []):
                call, has = calls[at], owner.get(at, attempt)
                if has == attempt or attempt not in call.under_way or not claim.may_be(call.call):
                    continue
                note(attempt, claim)
                for other in claims.get(has, ()):
                    if other.may_be(call.call):
                        note(has, other)
    return {attempt: tuple(events.values()) for attempt, events in found.items()}


def _attribution(
    entries: Sequence[SharedEntry[K]],
    calls: Sequence[_SharedCall[K]],
    owner: Mapping[int, K],
    contested: Mapping[K, tuple[TraceEvent, ...]],
) -> Attribution[K]:
    owners = {
        entry.seq: owner[at]
        for at, call in enumerate(calls)
        if at in owner
        for entry in call.call.entries
    }
    given: dict[K, list[WriteEntry]] = {}
    for one in entries:
        if one.entry.seq in owners:
            given.setdefault(owners[one.entry.seq], []).append(one.entry)
    return Attribution(
        owners=owners,
        given={attempt: tuple(theirs) for attempt, theirs in given.items()},
        unattributed=tuple(one for one in entries if one.entry.seq not in owners),
        contested=contested,
    )
