"""Schedulers of xdist that survive the loss of a worker.

With xdist 3.8 a worker that ends takes more along than the item it was at:

- work that is sent to a worker which has just ended, before xdist has heard of it, ends the
  session with an internal error;
- an item that was waiting in a worker, or that was reported already, is told to have ended it;
- by scope, what a lost worker had finished is queued again, and whoever gets such an empty piece
  of work answers for it never; the item that ended the worker is run again, and ends the next
  one; a worker that replaces it is given work before it has collected.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]  # xdist has no types
from xdist.scheduler import (  # type: ignore[import-untyped]  # as above
    LoadFileScheduling,
    LoadGroupScheduling,
    LoadScheduling,
    LoadScopeScheduling,
    WorkStealingScheduling,
)
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # as above

from pytest_mst.plugin.discover import is_eval_file
from pytest_mst.plugin.outcomes import verdict_of

Scope: TypeAlias = dict[str, bool]
"""The node ids of one scope; whether each has been run."""


class Fate(Enum):
    """What becomes of an item that a lost worker had not finished, as far as xdist knows."""

    REPORTED = auto()
    """It had been reported: nothing is left to do."""
    LOST = auto()
    """It is lost with the worker, which may have ended by it."""
    WAITS = auto()
    """Another worker is to run it."""


FateOf: TypeAlias = Callable[[str], Fate]
"""Tells, by node id, what becomes of the first item that a lost worker had not finished."""


class Fates:
    """Follows, in the controller, how far workers have come with their items.

    A case of an eval file is run once more: what ended the worker may have been an attempt of
    another case, made ahead; and what was under way is written down as lost by then, and not made
    again. Of a test, the body may have ended the worker, and would end the next one.
    """

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._reported: set[str] = set()
        self._lost_once: set[str] = set()
        self._heard_from: dict[str, WorkerController] = {}
        """Of the items under way, the worker that they were heard of from first."""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Take note of an item that a worker begins."""
        self._begun.add(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a case whose verdict is told.

        What is told of a case that is run once more is put to the worker which was at it first:
        JUnit's reporter has a row for each worker that it hears of an item from.
        """
        node = getattr(report, "node", None)
        if node is not None:
            first = self._heard_from.setdefault(report.nodeid, node)
            report.node = first  # type: ignore[attr-defined]  # where xdist puts it
        if verdict_of(report) is not None:
            self._reported.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Take note of an item that a worker has reported, its teardown too."""
        self._reported.add(nodeid)
        self._heard_from.pop(nodeid, None)

    def of(self, nodeid: str) -> Fate:
        """Tell what becomes of the item that a worker which was lost had next."""
        if nodeid in self._reported:
            return Fate.REPORTED
        if nodeid not in self._begun:
            return Fate.WAITS
        if nodeid in self._lost_once or not is_eval_file(Path(nodeid.partition("::")[0])):
            return Fate.LOST
        self._lost_once.add(nodeid)
        return Fate.WAITS


class _ByItem:
    """What `load` and `worksteal` have in common here; goes before xdist's own class."""

    fate_of: FateOf
    collection: list[str] | None
    node2pending: dict[WorkerController, list[int]]
    pending: list[int]

    def remove_node(self, node: WorkerController) -> str | None:
        """Queue again what a lost worker had left, and return the item that it was at."""
        left = self.node2pending[node]
        fate = self._fate_of_first(left)
        while fate is Fate.REPORTED:
            left.pop(0)
            fate = self._fate_of_first(left)
        if fate is not Fate.WAITS:
            lost_at: str | None = super().remove_node(node)  # type: ignore[misc]  # of xdist's class
            return lost_at
        self.pending[:0] = left
        left.clear()
        super().remove_node(node)  # type: ignore[misc]  # as above
        self._give_out()
        return None

    def _fate_of_first(self, left: list[int]) -> Fate | None:
        if not left:
            return None
        assert self.collection is not None  # what is left was given out of it
        return self.fate_of(self.collection[left[0]])

    def _give_out(self) -> None:
        """Give workers more to do, where there is more."""
        raise NotImplementedError

    def _send_tests(self, node: WorkerController, number: int) -> None:
        items = self.pending[:number]
        try:
            super()._send_tests(node, number)  # type: ignore[misc]  # as above
        except OSError:  # the worker has just ended, which xdist hears of after this
            del self.node2pending[node][-len(items) :]
            self.pending[:0] = items


class _Load(_ByItem, LoadScheduling):  # type: ignore[misc]  # xdist has no types
    """As `--dist load`."""

    def _give_out(self) -> None:
        for node in self.nodes:
            self.check_schedule(node)


class _WorkSteal(_ByItem, WorkStealingScheduling):  # type: ignore[misc]  # as above
    """As `--dist worksteal`."""

    def _give_out(self) -> None:
        self.check_schedule()

    def check_schedule(self) -> None:
        """Give idle workers more to do."""
        with suppress(OSError):  # asked a worker to give back some, and it has just ended
            super().check_schedule()


class _ByScope(LoadScopeScheduling):  # type: ignore[misc]  # as above
    """As `--dist loadscope`, and what the schedulers by scope have in common here."""

    fate_of: FateOf

    def remove_node(self, node: WorkerController) -> str | None:
        """Queue again what a lost worker had left, and return the item that it was at."""
        lost_at: str | None = None
        scopes: dict[str, Scope] = self.assigned_work.pop(node)
        unfinished = (
            (scope, nodeid) for scope in scopes.values() for nodeid in scope if not scope[nodeid]
        )
        for scope, nodeid in unfinished:
            fate = self.fate_of(nodeid)
            if fate is Fate.WAITS:
                break
            scope[nodeid] = True
            if fate is Fate.LOST:
                lost_at = nodeid
                break
        left = {name: scope for name, scope in scopes.items() if not all(scope.values())}
        self.workqueue.update(left)
        if left or lost_at is not None:
            for other in self.nodes:
                self._reschedule(other)
        return lost_at

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        name = next(iter(self.workqueue))
        try:
            super()._assign_work_unit(node)
        except OSError:  # the worker has just ended, which xdist hears of after this
            self.workqueue[name] = self.assigned_work[node].pop(name)
            self.workqueue.move_to_end(name, last=False)


class _ByFile(_ByScope, LoadFileScheduling):  # type: ignore[misc]  # as above
    """As `--dist loadfile`."""


class _ByGroup(_ByScope, LoadGroupScheduling):  # type: ignore[misc]  # as above
    """As `--dist loadgroup`."""


_SCHEDULERS: dict[str, type[Any]] = {
    "load": _Load,
    "worksteal": _WorkSteal,
    "loadscope": _ByScope,
    "loadfile": _ByFile,
    "loadgroup": _ByGroup,
}


def scheduler(config: pytest.Config, log: Producer) -> object | None:
    """Return the scheduler for `--dist`; `None` leaves it to xdist."""
    kind = _SCHEDULERS.get(config.getvalue("dist"))
    if kind is None:
        return None
    fates = Fates()
    config.pluginmanager.register(fates, "mst-fates")
    made = kind(config, log)
    made.fate_of = fates.of
    return made  # type: ignore[no-any-return]  # as above
