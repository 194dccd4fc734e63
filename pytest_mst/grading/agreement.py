"""Matching the client's account of its writes with the write record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.trace import Trace
from pytest_mst.domain.write import ServerTools, WriteEntry, unclassified_calls
from pytest_mst.grading.attribution import NO_DOUBT, Doubt
from pytest_mst.grading.claims import IsWrite, claims_of, matching, recorded_calls, side_of_event
from pytest_mst.grading.side_by_side import side_by_side

__all__ = ["IsWrite", "agreement"]


def agreement(
    trace: Trace | None,
    entries: Sequence[WriteEntry],
    tools: Mapping[str, ServerTools],
    *,
    is_write: IsWrite | None = None,
    doubt: Doubt = NO_DOUBT,
) -> Agreement:
    """Match trace and write record one to one, and return what is left over.

    Calls are matched by the client's own id of the call where both sides have it, and else by
    server, tool and arguments as sent. Two that both have an id and not the same one are two
    calls. The entries of a batch are one call. It does not count what stands where in the two.

    Args:
        trace: the client's account; `None` leaves each entry unreported.
        entries: the write record.
        tools: of the servers behind the proxy, by label. Calls to other servers have no record.
        is_write: whether the boundary takes a call to be a write. By default as the boundary
            itself decides it: by the tool lists, and of a dispatcher's call by its targets.
        doubt: what cannot be known of a record over a connection that attempts share. Claims
            that are contested there are not unrecorded: nobody knows which of them is true.

    """
    unclassified = unclassified_calls(entries)
    contested = tuple(side_of_event(event) for event in doubt.contested)
    if trace is not None and trace.evidence != "structured":
        return Agreement(
            checked=False,
            unclassified=unclassified,
            unattributed=doubt.unattributed,
            contested=contested,
        )
    claims = [] if trace is None else claims_of(trace, tools, is_write)
    calls = recorded_calls(entries)
    matched = matching(claims, calls)
    recorded = set(matched.values())
    return Agreement(
        checked=True,
        unreported=tuple(
            entry for i, call in enumerate(calls) if i not in recorded for entry in call.entries
        ),
        unrecorded=tuple(
            claim.event
            for i, claim in enumerate(claims)
            if claim.must_be_recorded
            and i not in matched
            and not any(claim.event is event for event in doubt.contested)
        ),
        unclassified=unclassified,
        pairs=side_by_side(claims, calls, matched),
        unattributed=doubt.unattributed,
        contested=contested,
    )
