"""Schedulers that keep a scope on one worker, and survive the loss of one.

With xdist 3.8 a worker that ends in the middle of a scope takes more along than the item it was
at: scopes it had finished are queued again, and whoever gets such an empty piece of work answers
for it never; the item that ended the worker is run again, and ends the next one; a worker that
replaces it is given work before it has collected.
"""

from __future__ import annotations

from typing import TypeAlias

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]  # xdist has no types
from xdist.scheduler import (  # type: ignore[import-untyped]  # as above
    LoadFileScheduling,
    LoadGroupScheduling,
    LoadScopeScheduling,
)
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]  # as above

Scope: TypeAlias = dict[str, bool]
"""The node ids of one scope; whether each has been run."""


class _SurvivesLoss(LoadScopeScheduling):  # type: ignore[misc]  # as above
    """What the schedulers by scope have in common here."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Queue again what a lost worker had left, and return the item that it was at."""
        lost_at: str | None = None
        left: dict[str, Scope] = {}
        for name, scope in self.assigned_work.pop(node).items():
            if lost_at is None:
                lost_at = next((nodeid for nodeid, done in scope.items() if not done), None)
                if lost_at is not None:
                    scope[lost_at] = True
            if not all(scope.values()):
                left[name] = scope
        self.workqueue.update(left)
        if lost_at is not None:
            for other in self.assigned_work:
                self._reschedule(other)
        return lost_at

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:
            super()._reschedule(node)


class _ByScope(_SurvivesLoss, LoadScopeScheduling):  # type: ignore[misc]  # as above
    """As `--dist loadscope`."""


class _ByFile(_SurvivesLoss, LoadFileScheduling):  # type: ignore[misc]  # as above
    """As `--dist loadfile`."""


class _ByGroup(_SurvivesLoss, LoadGroupScheduling):  # type: ignore[misc]  # as above
    """As `--dist loadgroup`."""


_SCHEDULERS: dict[str, type[_SurvivesLoss]] = {
    "loadscope": _ByScope,
    "loadfile": _ByFile,
    "loadgroup": _ByGroup,
}


def scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Return the scheduler for `--dist`; `None` leaves it to xdist."""
    kind = _SCHEDULERS.get(config.getvalue("dist"))
    return None if kind is None else kind(config, log)
