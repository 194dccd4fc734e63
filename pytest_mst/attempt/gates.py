"""The gates of one run: attempts behind a closed one are not begun."""

from __future__ import annotations

import threading

from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stop import Stop
from pytest_mst.store.stops import Stops


class Gates:
    """Knows what was closed here, and hears of what another process of the run closed.

    Asked from any thread. What has begun is not its business: that ends and is recorded.
    """

    def __init__(self, stops: Stops) -> None:
        self._stops = stops
        self._closed_here: tuple[Stop, ...] = ()
        self._lock = threading.Lock()

    def is_closed(self, attempt: AttemptId) -> bool:
        """Tell whether an attempt that has not begun is to stay unstarted."""
        known = self._known()
        return bool(known) and any(stop.closes(attempt) for stop in known)

    def close(self, stop: Stop) -> None:
        """Close a gate; the first reason to close it is the one that is kept.

        Raises:
            StoreError: it is closed in this process, and others cannot hear of it.

        """
        with self._lock:
            if any(one.gate == stop.gate for one in self._known()):
                return
            self._closed_here = (*self._closed_here, stop)
            self._stops.add(stop)

    def _known(self) -> tuple[Stop, ...]:
        return self._closed_here + self._stops.current()
