"""Calls as the client tells of them and calls as the boundary recorded them: which may be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pytest_mst.domain import dispatch
from pytest_mst.domain.call_pair import CallSide
from pytest_mst.domain.json_value import JsonObject, canonical_json, json_equal
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import ServerTools, WriteEntry
from pytest_mst.grading.pairing import most_pairs
from pytest_mst.grading.shown import shown

_T = TypeVar("_T")

_FEW_COMPARISONS = 64
"""Up to so many, calls are compared one by one; beyond, by texts that equal ones have in common."""

IsWrite: TypeAlias = Callable[[str, str, JsonObject], bool]
"""Whether a call, given as server label, tool and arguments, is a write."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that reached the boundary, with the writes it held: several for a batch."""

    entries: tuple[WriteEntry, ...]

    @property
    def as_sent(self) -> WriteEntry:
        """Any of its entries: they have what was sent in common."""
        return self.entries[0]


@dataclass(frozen=True, slots=True)
class Claim:
    """A tool call of the trace that may have a place in the record."""

    event: TraceEvent
    servers: frozenset[str]
    """The servers it may have been made to; more than one where the client does not say."""
    must_be_recorded: bool
    """Whether it was a write for sure, so that the record must have it."""
    may_be_recorded: bool
    """Whether it may have been a write."""

    def may_be(self, call: RecordedCall) -> bool:
        """Tell whether the two may be one call, by what was called."""
        sent, event = call.as_sent, self.event
        if event.id is not None and sent.join_id is not None and event.id != sent.join_id:
            return False
        return self.is_same_tool(call) and json_equal(event.arguments or {}, sent.arguments)

    def is_same_tool(self, call: RecordedCall) -> bool:
        """Tell whether the same tool of the same server was called."""
        return call.as_sent.tool == self.event.name and call.as_sent.server in self.servers

    def is_joined(self, call: RecordedCall) -> bool:
        """Tell whether the two have the client's own id of the call in common."""
        return self.event.id is not None and self.event.id == call.as_sent.join_id


def claims_of(
    trace: Trace, tools: Mapping[str, ServerTools], is_write: IsWrite | None = None
) -> list[Claim]:
    """Return the tool calls of the trace that were, or may have been, made through the proxy.

    Args:
        trace: the client's account.
        tools: of the servers behind the proxy, by label.
        is_write: whether the boundary takes a call to be a write; by default what is known of
            the server's tools, of a dispatcher's call by its targets.

    """
    asked = is_write or _by_tools(tools)
    claims = []
    for event in trace.tool_calls:
        if event.source != "mcp":
            continue
        servers, certain = _servers_of(event, tools)
        writes = [asked(server, event.name, event.arguments or {}) for server in servers]
        if servers:
            claims.append(Claim(event, servers, certain and all(writes), any(writes)))
    return claims


def recorded_calls(entries: Iterable[WriteEntry]) -> list[RecordedCall]:
    """Put the entries of one call together, in the order of their first."""
    calls: list[RecordedCall] = []
    by_call: dict[int, list[int]] = {}
    for entry in entries:
        known = by_call.setdefault(entry.call_seq, [])
        at = next((at for at in known if _is_one_call(calls[at].as_sent, entry)), None)
        if at is None:
            known.append(len(calls))
            calls.append(RecordedCall((entry,)))
        else:
            calls[at] = RecordedCall((*calls[at].entries, entry))
    return calls


def side_of_event(event: TraceEvent) -> CallSide:
    """Return a call as the trace tells of it."""
    return CallSide(event.server, event.name, event.arguments or {})


def side_of_call(call: RecordedCall) -> CallSide:
    """Return a recorded call as it was sent."""
    sent = call.as_sent
    return CallSide(sent.server, sent.tool, sent.arguments)


def claim_order(claim: Claim) -> tuple[str, ...]:
    """Return what claims are sorted by, so that it does not count which stood first."""
    event = claim.event
    return (event.name, event.server or "", _text(event.arguments or {}), event.id or "")


def call_order(call: RecordedCall) -> tuple[str, ...]:
    """Return what recorded calls are sorted by."""
    sent = call.as_sent
    return (sent.tool, sent.server, _text(sent.arguments), sent.join_id or "")


def _text(arguments: JsonObject) -> str:
    text = equality_text(arguments)
    return shown(arguments) if text is None else text


def _by_tools(tools: Mapping[str, ServerTools]) -> IsWrite:
    def is_write(server: str, tool: str, arguments: JsonObject) -> bool:
        return dispatch.is_write(tools[server], tool, arguments)

    return is_write


def _servers_of(event: TraceEvent, tools: Mapping[str, ServerTools]) -> tuple[frozenset[str], bool]:
    """Return the servers a call may have been made to, and whether it was one of them for sure."""
    if event.server is not None:
        return frozenset({event.server} & tools.keys()), True
    listing = frozenset(label for label, server in tools.items() if event.name in server.tools)
    # A tool nobody lists may be one of a server that is not behind the proxy.
    return (listing, True) if listing else (frozenset(tools), False)


def _is_one_call(one: WriteEntry, other: WriteEntry) -> bool:
    """Tell whether two entries are parts of one batch, which only a dispatcher takes."""
    return (
        one.target is not None
        and other.target is not None
        and (one.call_seq, one.server, one.tool) == (other.call_seq, other.server, other.tool)
        and one.join_id == other.join_id
        and json_equal(one.arguments, other.arguments)
    )


def matching(claims: Sequence[Claim], calls: Sequence[RecordedCall]) -> dict[int, int]:
    """Match claims and recorded calls one to one, as many as can be.

    Calls that share the client's id come first, of the same arguments before others: clients
    shorten arguments in their accounts. The tool may not differ: a call of another tool is not
    what the trace says, whatever its id. It does not count in which order they are given.

    Returns:
        Positions of calls by positions of claims.

    """
    matched: dict[int, int] = {}
    # Writes stand before reads: what must be in the record is then matched where it can be.
    lefts = in_order(
        range(len(claims)), lambda i: (str(not claims[i].must_be_recorded), *claim_order(claims[i]))
    )
    rights = in_order(range(len(calls)), lambda i: call_order(calls[i]))
    by_id = by_key(rights, lambda i: calls[i].as_sent.join_id)
    many = len(lefts) * len(rights) > _FEW_COMPARISONS
    by_text = by_key(rights, lambda i: equality_text(calls[i].as_sent.arguments) if many else None)

    def alike(claim: Claim) -> Sequence[int]:
        return by_text.get(equality_text(claim.event.arguments or {}) if many else None, ())

    def joined(claim: Claim) -> Sequence[int]:
        return () if claim.event.id is None else by_id.get(claim.event.id, ())

    steps: list[tuple[Callable[[Claim], Sequence[int]], Callable[[Claim, RecordedCall], bool]]] = [
        (joined, Claim.may_be),
        (joined, Claim.is_same_tool),
        (alike, Claim.may_be),
    ]
    for candidates, fits in steps:
        taken = set(matched.values())
        open_lefts = [i for i in lefts if i not in matched]
        edges = [
            [at for at in candidates(claims[i]) if at not in taken and fits(claims[i], calls[at])]
            for i in open_lefts
        ]
        for left, right in most_pairs(edges).items():
            matched[open_lefts[left]] = right
    return matched


def in_order(of: Iterable[_T], key: Callable[[_T], tuple[str, ...]]) -> list[_T]:
    """Sort; the keys of a single one, which may be long texts, are not worked out."""
    items = list(of)
    return sorted(items, key=key) if len(items) > 1 else items


def by_key(of: Iterable[_T], key: Callable[[_T], str | None]) -> dict[str | None, list[_T]]:
    """Put together what has the same key, in the given order."""
    found: dict[str | None, list[_T]] = {}
    for one in of:
        found.setdefault(key(one), []).append(one)
    return found


def equality_text(arguments: JsonObject) -> str | None:
    """Return a text that equal arguments have in common; `None` for what there is none of."""
    try:
        return canonical_json(arguments)
    except (TypeError, RecursionError):  # deeper than Python calls go, or no JSON at all
        return None
