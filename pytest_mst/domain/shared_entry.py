"""Entries of the write record of a connection that several attempts share."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_mst.domain.write import WriteEntry

K = TypeVar("K", bound=Hashable)
"""What stands for an attempt."""


@dataclass(frozen=True, slots=True)
class SharedEntry(Generic[K]):
    """An entry of the record of a shared connection."""

    entry: WriteEntry
    under_way: frozenset[K]
    """The attempts that were under way between its call and its reply: it is one of theirs, or
    came late and is nobody's."""
    sole: bool = False
    """Whether the only one of them is the only attempt that the connection had had until then,
    so that nobody else can have made the call."""
