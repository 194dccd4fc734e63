"""The attempts that pytest's loop will ask for next, so that they can be made ahead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_mst.plugin.engine import Job
from pytest_mst.plugin.keys import CASE, SESSION
from pytest_mst.plugin.pytest_private import queued_items, worker_queue

_LOOK_AHEAD_ITEMS = 500
"""How far to look for attempts that can be made ahead."""
_SAFE_FROM_STEALING = 2
"""The items that a worker is never asked to give back: the one under way and the next."""
STEALS_INPUT = "mst_steals"
"""Under which the controller tells workers whether what they are given may be taken back.

In workers xdist has forgotten its mode.
"""


class Upcoming:
    """Knows the items that are still to run, in the order they will."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._evals = session.config.stash[SESSION]
        self._position = 0
        self._positions = {id(item): at for at, item in enumerate(session.items)}
        self._worker = worker_queue(session.config)
        self._steals = getattr(session.config, "workerinput", {}).get(STEALS_INPUT, False)

    def at(self, item: pytest.Item) -> None:
        """Take note of the item under way."""
        self._position = self._positions.get(id(item), self._position)

    def jobs(self) -> Iterator[Job]:
        """Yield the attempts of the items from the one under way on, as far as they are known.

        Cases whose body runs the client, that may yet be skipped, or whose target their own
        fixtures have still to say, are left out.
        """
        for item in self._items():
            case = item.stash.get(CASE, None)
            if case is None or case.run_by == "body" or case.may_skip:
                continue
            target = case.target
            if target is None and case.shared_key is not None:
                target = self._evals.shared_targets.get(case.shared_key)
            if target is None:
                continue
            for trial in range(case.trial, case.trials):
                yield case.job(trial, target)

    def _items(self) -> Iterator[pytest.Item]:
        items = self._session.items
        if self._worker is None:
            yield from items[self._position : self._position + _LOOK_AHEAD_ITEMS]
            return
        queue = list(queued_items(self._worker, items))
        yield from queue[:_SAFE_FROM_STEALING] if self._steals else queue
