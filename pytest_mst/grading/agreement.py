"""Matching the client's account of its writes with the write record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.json_value import JsonObject, json_equal
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import ServerTools, WriteEntry
from pytest_mst.grading.pairing import most_pairs

IsWrite: TypeAlias = Callable[[str, str, JsonObject], bool]
"""Whether a call, given as server label, tool and arguments, is a write."""


def agreement(
    trace: Trace | None,
    entries: Sequence[WriteEntry],
    tools: Mapping[str, ServerTools],
    *,
    is_write: IsWrite | None = None,
) -> Agreement:
    """Match trace and write record one to one, and return what is left over.

    Calls are matched by the client's own id of the call where both sides have it, and else by
    server, tool and arguments as sent. Two that both have an id and not the same one are two
    calls. The entries of a batch are one call.

    Args:
        trace: the client's account; `None` leaves each entry unreported.
        entries: the write record.
        tools: of the servers behind the proxy, by label. Calls to other servers have no record.
        is_write: whether the boundary takes a call to be a write. By default what the tool lists
            say of the tool, which is not enough where a tool is a dispatcher: whether a call of
            it writes is decided by its target.

    """
    unclassified = sum(entry.unclassified for entry in entries)
    if trace is None:
        return Agreement(checked=True, unreported=tuple(entries), unclassified=unclassified)
    if trace.evidence != "structured":
        return Agreement(checked=False, unclassified=unclassified)
    claims = _claims(trace, tools, is_write or _by_tool_list(tools))
    calls = _recorded_calls(entries)
    matched = _by_id(claims, calls)
    open_claims = [i for i in range(len(claims)) if i not in matched]
    open_calls = [i for i in range(len(calls)) if i not in matched.values()]
    # Writes stand before reads: what must be in the record is then matched where it can be.
    open_claims.sort(key=lambda i: not claims[i].must_be_recorded)
    fits = [
        [right for right, call in enumerate(open_calls) if claims[i].may_be(calls[call])]
        for i in open_claims
    ]
    for left, right in most_pairs(fits).items():
        matched[open_claims[left]] = open_calls[right]
    recorded = set(matched.values())
    return Agreement(
        checked=True,
        unreported=tuple(
            entry for i, call in enumerate(calls) if i not in recorded for entry in call.entries
        ),
        unrecorded=tuple(
            claim.event
            for i, claim in enumerate(claims)
            if claim.must_be_recorded and i not in matched
        ),
        unclassified=unclassified,
    )


@dataclass(frozen=True, slots=True)
class _RecordedCall:
    """A call that reached the boundary, with the writes it held: several for a batch."""

    entries: tuple[WriteEntry, ...]

    @property
    def as_sent(self) -> WriteEntry:
        return self.entries[0]


@dataclass(frozen=True, slots=True)
class _Claim:
    """A tool call of the trace that may have a place in the record."""

    event: TraceEvent
    servers: frozenset[str]
    """The servers it may have been made to; more than one where the client does not say."""
    must_be_recorded: bool
    """Whether it was a write for sure, so that the record must have it."""

    def may_be(self, call: _RecordedCall) -> bool:
        """Tell whether the two may be one call, by what was called."""
        sent, event = call.as_sent, self.event
        if event.id is not None and sent.join_id is not None and event.id != sent.join_id:
            return False
        return self.is_same_tool(call) and json_equal(event.arguments or {}, sent.arguments)

    def is_same_tool(self, call: _RecordedCall) -> bool:
        return call.as_sent.tool == self.event.name and call.as_sent.server in self.servers


def _by_tool_list(tools: Mapping[str, ServerTools]) -> IsWrite:
    def is_write(server: str, tool: str, _arguments: JsonObject) -> bool:
        return not tools[server].is_read(tool)

    return is_write


def _claims(trace: Trace, tools: Mapping[str, ServerTools], is_write: IsWrite) -> list[_Claim]:
    """Return the tool calls of the trace that were, or may have been, made through the proxy."""
    claims = []
    for event in trace.tool_calls:
        if event.source != "mcp":
            continue
        servers, certain = _servers_of(event, tools)
        writes = [is_write(server, event.name, event.arguments or {}) for server in servers]
        if servers:
            claims.append(_Claim(event, servers, must_be_recorded=certain and all(writes)))
    return claims


def _servers_of(event: TraceEvent, tools: Mapping[str, ServerTools]) -> tuple[frozenset[str], bool]:
    """Return the servers a call may have been made to, and whether it was one of them for sure."""
    if event.server is not None:
        return frozenset({event.server} & tools.keys()), True
    listing = frozenset(label for label, server in tools.items() if event.name in server.tools)
    # A tool nobody lists may be one of a server that is not behind the proxy.
    return (listing, True) if listing else (frozenset(tools), False)


def _recorded_calls(entries: Iterable[WriteEntry]) -> list[_RecordedCall]:
    """Put the entries of one call together."""
    calls: list[_RecordedCall] = []
    for entry in entries:
        for at, call in enumerate(calls):
            if _is_one_call(call.as_sent, entry):
                calls[at] = _RecordedCall((*call.entries, entry))
                break
        else:
            calls.append(_RecordedCall((entry,)))
    return calls


def _is_one_call(one: WriteEntry, other: WriteEntry) -> bool:
    """Tell whether two entries are parts of one batch, which only a dispatcher takes."""
    return (
        one.target is not None
        and other.target is not None
        and (one.call_seq, one.server, one.tool) == (other.call_seq, other.server, other.tool)
        and one.join_id == other.join_id
        and json_equal(one.arguments, other.arguments)
    )


def _by_id(claims: Sequence[_Claim], calls: Sequence[_RecordedCall]) -> dict[int, int]:
    """Match the calls that share the client's id, of the same arguments first.

    The arguments may differ, as clients shorten them in their accounts; the tool may not: a call
    of another tool is not what the trace says, whatever its id.
    """
    matched: dict[int, int] = {}
    for fits in (_Claim.may_be, _Claim.is_same_tool):
        for right, call in enumerate(calls):
            join_id = call.as_sent.join_id
            if join_id is None or right in matched.values():
                continue
            for left, claim in enumerate(claims):
                if left not in matched and claim.event.id == join_id and fits(claim, call):
                    matched[left] = right
                    break
    return matched
