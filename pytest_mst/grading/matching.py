"""Matching the calls a case expects with the calls that were made, one to one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, NamedTuple, TypeAlias

from pytest_mst.domain.json_value import JsonObject, JsonValue, json_equal, json_type
from pytest_mst.grading.difference import ABSENT, Absent, Keys, path_text
from pytest_mst.grading.pairing import Pairs, most_pairs, most_pairs_in_order
from pytest_mst.grading.shown import (
    described,
    named,
    same_text,
    shown_call,
    text_difference,
)

Order: TypeAlias = Literal["any", "strict"]

_COUNTED_DIFFERENCES = 100
"""Beyond this many, calls count as equally far from what was expected."""
_ENCODED_LIMIT_CHARS = 100_000
"""The longest text that is looked into for JSON."""


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """One call that a case expects."""

    tool: str
    server: str | None = None
    """The server's label; any server without it."""
    arguments: JsonObject = field(default_factory=dict)
    """Matched partially; empty matches any."""
    required: bool = True


@dataclass(frozen=True, slots=True)
class ActualCall:
    """One call that was made."""

    tool: str
    server: str | None
    """The server's label, or what a dispatcher's call names it; `None` where nobody knows it."""
    arguments: JsonObject
    taken_by: str | None = None
    """The label of the server that took the call, where the call names another."""

    def is_to(self, server: str | None) -> bool:
        """Tell whether it was for a server, or went to it; every call was for any (`None`)."""
        return server is None or server in (self.server, self.taken_by)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first place where a call differs from what was expected. Texts are for people."""

    path: str
    """Such as `arguments.items[2].id`; `tool` or `server` where the difference is there."""
    expected: str
    """The value with its JSON type in words."""
    found: str
    """The value with its JSON type in words, or `nothing`."""
    note: str | None = None
    """What may not be seen in the two values."""

    def __str__(self) -> str:
        """Say where, what was expected and what was found."""
        note = f" ({self.note})" if self.note else ""
        return f"at {self.path} expected {self.expected}, found {self.found}{note}"


@dataclass(frozen=True, slots=True)
class Unmet:
    """A required call that no call was paired with, and the call that comes nearest to it."""

    expected: ExpectedCall
    nearest: ActualCall | None = None
    """`None` when no call was made at all."""
    mismatch: Mismatch | None = None
    """How the nearest call differs; `None` when it does not."""
    taken: bool = False
    """Whether the nearest call is paired with another expectation."""

    def reason(self, noun: str) -> str:
        """Say for people what is missing.

        Args:
            noun: what the calls are, such as `write`.

        """
        wanted = shown_call(self.expected.server, self.expected.tool, self.expected.arguments)
        if self.nearest is None:
            return f"expected {noun} {wanted}, but there was none at all"
        nearest = shown_call(self.nearest.server, self.nearest.tool, self.nearest.arguments)
        if self.mismatch is not None:
            return f"no {noun} matches {wanted}; the nearest is {nearest}: {self.mismatch}"
        if self.taken:
            return f"too few {noun}s match {wanted}: {nearest} is matched with another expectation"
        return f"{noun} {wanted} was made, but out of order"


@dataclass(frozen=True, slots=True)
class MatchResult:
    """What was paired, and what is left over."""

    pairs: Pairs
    """Positions of actual calls by positions of expected calls."""
    required: int
    """How many expected calls are required."""
    unmet: tuple[Unmet, ...]
    """Required calls that no call was paired with."""
    surplus: tuple[int, ...]
    """Positions of the actual calls that no expectation was paired with."""
    exclusive: bool
    """Whether a surplus is a fault."""

    @property
    def matched(self) -> bool:
        """Whether all that is required was paired and nothing is there that must not be."""
        return not self.unmet and not (self.exclusive and self.surplus)

    @property
    def share(self) -> float | None:
        """The share of required calls that were paired, 0 to 1; `None` when none is required."""
        return 1 - len(self.unmet) / self.required if self.required else None


def match_arguments(expected: JsonObject, actual: JsonObject | None) -> Mismatch | None:
    """Compare arguments with what is expected of them, partially.

    Expected keys must be there and equal, at every level; other keys do not matter. Lists match
    element by element and in length. JSON's types are kept apart: `true` is not `1`, `"1"` is not
    `1`, null is not absent; `1` equals `1.0`. Texts are equal when they are canonically equivalent
    (NFC); case, compatibility forms and spaces are not folded.

    Args:
        expected: what the case says; empty matches anything.
        actual: the arguments of a call; `None`, none sent, is the same as empty.

    Returns:
        the first difference in the order of `expected`, or `None` for a match.

    """
    difference = next(_differences(expected, actual or {}), None)
    return None if difference is None else _mismatch(difference)


def match_calls(
    expected: Sequence[ExpectedCall],
    actual: Sequence[ActualCall],
    order: Order = "any",
    *,
    exclusive: bool = False,
) -> MatchResult:
    """Pair expected calls with calls that were made, one to one and as many as possible.

    No other pairing has more required calls in it, nor, among those, more calls at all; so the
    result does not depend on which call was looked at first. Calls that are not required may be
    paired and need not be.

    Args:
        expected: what the case expects.
        actual: the calls that were made, in order.
        order: `strict` pairs in sequence only.
        exclusive: whether a call that is left over is a fault.

    """
    known: dict[tuple[int, int], bool] = {}

    def fits(left: int, right: int) -> bool:
        pair = (left, right)
        if pair not in known:
            known[pair] = call_fits(expected[left], actual[right])
        return known[pair]

    if order == "strict":
        weights = [len(expected) + 1 if call.required else 1 for call in expected]
        pairs = most_pairs_in_order(fits, weights, len(actual))
    else:
        first = sorted(range(len(expected)), key=lambda left: not expected[left].required)
        edges = [[r for r in range(len(actual)) if fits(left, r)] for left in first]
        pairs = {first[left]: right for left, right in most_pairs(edges).items()}
    taken = frozenset(pairs.values())
    return MatchResult(
        pairs=pairs,
        required=sum(call.required for call in expected),
        unmet=tuple(
            _unmet(call, actual, taken)
            for left, call in enumerate(expected)
            if call.required and left not in pairs
        ),
        surplus=tuple(right for right in range(len(actual)) if right not in taken),
        exclusive=exclusive,
    )


def call_fits(expected: ExpectedCall, actual: ActualCall) -> bool:
    """Tell whether one call is what one expectation asks for."""
    return (
        expected.tool == actual.tool
        and actual.is_to(expected.server)
        and not any(True for _ in _differences(expected.arguments, actual.arguments))
    )


class _Difference(NamedTuple):
    path: Keys
    expected: JsonValue
    found: JsonValue | Absent


def _differences(expected: JsonValue, found: JsonValue) -> Iterator[_Difference]:
    """Yield the differences in the order of `expected`, at any depth."""
    pending: list[_Difference] = [_Difference(None, expected, found)]
    while pending:
        here = pending.pop()
        want, got = here.expected, here.found
        if isinstance(got, Absent) or json_type(want) != json_type(got):
            yield here
        elif isinstance(want, Mapping) and isinstance(got, Mapping):
            members = [_Difference((here.path, k), v, _member(got, k)) for k, v in want.items()]
            pending.extend(reversed(members))
        elif isinstance(want, str) and isinstance(got, str):
            if not same_text(want, got):
                yield here
        elif isinstance(want, Sequence) and isinstance(got, Sequence):
            if len(want) != len(got):
                yield here
            both = enumerate(zip(want, got, strict=False))
            elements = [_Difference((here.path, i), one, other) for i, (one, other) in both]
            pending.extend(reversed(elements))
        elif not json_equal(want, got):
            yield here


def _member(found: JsonObject, key: str) -> JsonValue | Absent:
    if key in found:
        return found[key]
    if key.isascii():
        return ABSENT
    return next((value for name, value in found.items() if same_text(key, name)), ABSENT)


def _mismatch(difference: _Difference) -> Mismatch:
    want, got = difference.expected, difference.found
    path = path_text("arguments", difference.path)
    if isinstance(got, Absent):
        return Mismatch(path, described(want), got.value)
    if isinstance(want, str) and isinstance(got, str):
        return Mismatch(path, *text_difference(want, got))
    note = None
    if isinstance(got, str) and _is_encoded(got, json_type(want)):
        note = f"the {json_type(want)} arrived JSON-encoded, as a string"
    elif isinstance(want, list | tuple) and isinstance(got, list | tuple):
        note = f"{len(want)} expected, {len(got)} found"
    return Mismatch(path, described(want), described(got), note)


def _is_encoded(text: str, wanted_type: str) -> bool:
    """Tell whether a text holds JSON of a type that is not text."""
    if len(text) > _ENCODED_LIMIT_CHARS:
        return False
    try:
        return json_type(json.loads(text)) == wanted_type
    except (ValueError, RecursionError):
        return False


def _unmet(expected: ExpectedCall, actual: Sequence[ActualCall], taken: frozenset[int]) -> Unmet:
    """Name the nearest call: of the same tool first, then the same server, then not yet paired."""

    def distance(right: int) -> tuple[bool, bool, bool, int]:
        call = actual[right]
        differences = _differences(expected.arguments, call.arguments)
        return (
            call.tool != expected.tool,
            not call.is_to(expected.server),
            right in taken,
            sum(1 for _ in islice(differences, _COUNTED_DIFFERENCES)),
        )

    nearest = min(range(len(actual)), key=distance, default=None)
    if nearest is None:
        return Unmet(expected)
    call = actual[nearest]
    return Unmet(expected, call, _call_mismatch(expected, call), taken=nearest in taken)


def _call_mismatch(expected: ExpectedCall, call: ActualCall) -> Mismatch | None:
    if call.tool != expected.tool:
        return Mismatch("tool", named(None, expected.tool), named(None, call.tool))
    if expected.server is not None and not call.is_to(expected.server):
        found = "unknown" if call.server is None else named(None, call.server)
        return Mismatch("server", named(None, expected.server), found)
    return match_arguments(expected.arguments, call.arguments)
