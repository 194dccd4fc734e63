"""Where two JSON values differ, looked at from both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pytest_mst.domain.json_value import JsonValue, json_equal, json_type
from pytest_mst.grading.shown import canonical_text, shown


class Absent(Enum):
    """What is there where nothing is."""

    ABSENT = "nothing"


ABSENT = Absent.ABSENT

Keys: TypeAlias = "tuple[Keys, str | int] | None"
"""The keys from the outermost value down, innermost first; written out only where it is shown."""


def path_text(root: str, keys: Keys) -> str:
    """Write a place in a value down, such as `arguments.items[2].id`."""
    steps = []
    while keys is not None:
        keys, key = keys
        if isinstance(key, str) and key.isidentifier():
            steps.append(f".{canonical_text(key)}")
        else:
            steps.append(f"[{shown(key)}]")
    return root + "".join(reversed(steps))


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ."""

    keys: Keys
    one: JsonValue | Absent
    other: JsonValue | Absent


def differences(one: JsonValue, other: JsonValue) -> Iterator[Difference]:
    """Yield the places where two values differ, in the order of the first; at any depth.

    What only one side has is a difference, too.
    """
    pending = [Difference(None, one, other)]
    while pending:
        here = pending.pop()
        left, right = here.one, here.other
        if isinstance(left, Absent) or isinstance(right, Absent):
            yield here  # of which only one is: the other's key brought us here
        elif json_type(left) != json_type(right):
            yield here
        elif isinstance(left, Mapping) and isinstance(right, Mapping):
            keys = [*left, *(key for key in right if key not in left)]
            pending += [
                Difference((here.keys, key), left.get(key, ABSENT), right.get(key, ABSENT))
                for key in reversed(keys)
            ]
        elif isinstance(left, str) or isinstance(right, str):
            if left != right:
                yield here
        elif isinstance(left, Sequence) and isinstance(right, Sequence):
            pending += [
                Difference((here.keys, at), _item(left, at), _item(right, at))
                for at in reversed(range(max(len(left), len(right))))
            ]
        elif not json_equal(left, right):
            yield here


def _item(values: Sequence[JsonValue], at: int) -> JsonValue | Absent:
    return values[at] if at < len(values) else ABSENT
