"""What an attempt is of, hashed, so that a run that is finished later reuses nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_mst.domain.json_value import content_hash

KEY_SCHEME = 1
"""How keys are made; raised by every change that gives the same attempt another key."""
_PART_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Identity:
    """The hashes of one attempt's case, by the part that they are of; no trial number is in it."""

    parts: Mapping[str, str]
    """By name (`input`, `client`, ...): what could change what the client did."""
    grading_key: str
    """Of what its trials are graded by: expected, assertions, judges, a body's source."""
    tools: str = ""
    """Of the tools that its servers list; in neither key. Empty where they are not known."""
    key: str = field(init=False, default="")
    """The collection key: all parts together."""

    def __post_init__(self) -> None:
        """Work out the key once: it is written into every attempt's file."""
        object.__setattr__(self, "key", content_hash(dict(self.parts)))

    def changed_from(self, parts: Mapping[str, str]) -> tuple[str, ...]:
        """Name the parts that differ from stored ones, in order; those that are gone come last."""
        names = dict.fromkeys((*self.parts, *parts))
        return tuple(name for name in names if self.parts.get(name) != parts.get(name))


def part_hash(value: object) -> str:
    """Hash one part, a JSON value: twelve hex digits."""
    return content_hash(value).removeprefix("sha256:")[:_PART_DIGITS]
