"""Calls of trace and write record side by side, as people read them below one another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pytest_mst.domain.call_pair import CallDifference, CallPair, CallSide, pair_from_json
from pytest_mst.domain.stored_field import object_list_field
from pytest_mst.report.text import shown
from pytest_mst.store.encode import encode

_CALL_CHARS = 1000
_VALUE_CHARS = 200


def stored_pairs(agreement: Mapping[str, object]) -> list[CallPair]:
    """Return the pairs that a stored agreement has; none where they cannot be read."""
    try:
        return [pair_from_json(one) for one in object_list_field(agreement, "pairs")]
    except ValueError:
        return []  # of a form that is not known here


def pair_lines(pairs: Iterable[CallPair]) -> Iterator[str]:
    """Yield the lines of pairs.

    The calls of a pair stand in one column, so that the eye finds where they differ.
    """
    for pair in pairs:
        yield from _lines(pair)


def _lines(pair: CallPair) -> Iterator[str]:
    if pair.difference is None:
        yield (
            f"the same call, {_times(pair.times_in_trace)} in the trace and"
            f" {_times(pair.times_in_record)} in the record:"
        )
        yield f"  {_call(pair.in_record)}"
        return
    same = ", matched by the client's id of the call" if pair.joined else ""
    yield f"side by side{same}:"
    yield f"  in the trace:  {_call(pair.in_trace)}"
    yield f"  in the record: {_call(pair.in_record)}"
    yield from _difference(pair.difference)


def _difference(found: CallDifference) -> Iterator[str]:
    in_trace = "nothing" if found.only_in == "record" else _value(found.in_trace)
    in_record = "nothing" if found.only_in == "trace" else _value(found.in_record)
    yield f"  differ at {shown(found.path)}: {in_trace} | {in_record}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _call(side: CallSide) -> str:
    tool = side.tool if side.server is None else f"{side.server}.{side.tool}"
    return f"{shown(tool)} {shown(encode(side.arguments), _CALL_CHARS)}"


def _value(value: object) -> str:
    return shown(encode(value), _VALUE_CHARS)
