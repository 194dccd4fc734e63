"""Everything that is stored of one attempt, read for somebody who looks at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.stop import Stop
from pytest_mst.report.owed import OwedCleanup, owed_by
from pytest_mst.store.find import FoundAttempt
from pytest_mst.store.journal import JournalLine, begun
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import (
    StoredAttempt,
    UnreadableAttempt,
    WriteRecord,
    read_attempt,
    read_writes,
)
from pytest_mst.store.stops import read_stops
from pytest_mst.store.stored_run import StoredRun
from pytest_mst.store.supersede import Replaced, replaced_attempts, superseded_stamps

LOG_LINES = 20
"""How many of a server's last lines are shown."""
_LOG_TAIL_BYTES = 1 << 16

Stored: TypeAlias = StoredAttempt | UnreadableAttempt
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class ServerLogTail:
    """The last that a server wrote to its standard error in the run, for one variant."""

    label: str
    path: Path
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One planned attempt with everything there is of it."""

    run: StoredRun
    id: AttemptId
    stored: Stored | None
    """`None`: its own file is not there."""
    began: JournalLine | None = None
    """Of one that began and has not ended, as far as the journal knows."""
    writes: WriteRecord = field(default_factory=WriteRecord)
    earlier: tuple[Replaced, ...] = ()
    """Oldest first."""
    logs: tuple[ServerLogTail, ...] = ()
    stops: tuple[Stop, ...] = ()
    """Of the run: why attempts of it were not begun."""
    problems: tuple[str, ...] = ()
    """What could not be read."""
    owed: tuple[OwedCleanup, ...] = ()
    """The cleanups that it, or an earlier go at it, still owes."""
    also_in: tuple[Path, ...] = ()
    """Other folders that hold an attempt of this locator, as copies of a run do."""

    @property
    def locator(self) -> str:
        """Its short name."""
        return locator(self.run.plan.run_id, self.id)

    @property
    def failure(self) -> InfrastructureFailure | None:
        """The infrastructure failure that it ended with."""
        ending = self.stored.ending if isinstance(self.stored, StoredAttempt) else None
        return ending if isinstance(ending, InfrastructureFailure) else None


def attempt_view(found: Sequence[FoundAttempt]) -> AttemptView:
    """Read all that is stored of an attempt. Nothing is raised for what cannot be read.

    Args:
        found: the attempt, in the run to look at first and in others; not empty.

    """
    first, *others = found
    layout, id_ = first.layout, first.id
    problems: list[str] = []

    def tried(read: Callable[[], _Read], default: _Read) -> _Read:
        try:
            return read()
        except StoreError as error:
            problems.append(str(error))
            return default

    stored: Stored | None = tried(lambda: read_attempt(layout, id_), None)
    under_way: dict[AttemptId, JournalLine] = tried(lambda: begun(layout), {})
    owed: tuple[OwedCleanup, ...] = tried(lambda: owed_by(layout), ())
    return AttemptView(
        run=first.run,
        id=id_,
        stored=stored,
        began=None if stored is not None else under_way.get(id_),
        writes=tried(lambda: read_writes(layout, id_), WriteRecord()),
        earlier=tried(lambda: _earlier(layout, id_, stored), ()),
        logs=tuple(_logs(first.run, id_.variant, stored)),
        stops=tried(lambda: read_stops(layout), ()),
        owed=tuple(one for one in owed if one.debt.id == id_),
        problems=tuple(problems),
        also_in=tuple(one.layout.run_dir for one in others),
    )


def _earlier(layout: RunLayout, attempt: AttemptId, now: Stored | None) -> tuple[Replaced, ...]:
    stamps = superseded_stamps(layout)
    return tuple(replaced_attempts(layout, attempt, stamps, now, scored=True))


def _logs(run: StoredRun, variant: str, stored: Stored | None) -> Iterator[ServerLogTail]:
    trace = stored.record.trace if isinstance(stored, StoredAttempt) else None
    planned = [one for one in run.plan.variants if one.name == variant]
    labels = [server.label for one in planned for server in one.servers]
    for label in dict.fromkeys([*labels, *(trace.servers if trace is not None else ())]):
        path = run.layout.server_log(variant, label)
        lines = _last_lines(path)
        if lines:
            yield ServerLogTail(label, path, lines)


def _last_lines(path: Path) -> tuple[str, ...]:
    """Read the end of a log; empty where there is none, or none that can be read."""
    try:
        # a pipe in a log's place would keep us waiting
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        start = max(0, os.fstat(fd).st_size - _LOG_TAIL_BYTES)
        tail = os.pread(fd, _LOG_TAIL_BYTES, start)
    except OSError:
        return ()
    finally:
        os.close(fd)
    lines = tail.decode(errors="replace").removesuffix("\n").split("\n")
    return tuple(lines[-LOG_LINES:]) if tail else ()
