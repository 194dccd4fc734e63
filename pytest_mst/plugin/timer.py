"""The timer of pytest-timeout, where that is installed: a case is several tests to it.

It is armed once for each item and fires once, so that a case of many attempts would run out of
it, and whatever hangs after that would hang for ever. Here each attempt gets the whole time, and
the timer is still while the plugin itself waits.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_mst.plugin.keys import TIMER

_MODULE = "pytest_timeout"


def note(item: pytest.Item, settings: Any) -> None:
    """Take note of how an item's timer is set, where it is for the whole item."""
    if not settings.func_only:
        item.stash[TIMER] = settings


def rearm(item: pytest.Item) -> None:
    """Give an item its whole time once more."""
    settings = item.stash.get(TIMER, None)
    if settings is not None:
        disarm(item)
        item.ihook.pytest_timeout_set_timer(item=item, settings=settings)


def disarm(item: pytest.Item) -> None:
    """Stop an item's timer."""
    if item.stash.get(TIMER, None) is not None:
        item.ihook.pytest_timeout_cancel_timer(item=item)


def fired(error: BaseException) -> bool:
    """Tell whether the timer raised an error: it has no type of its own, but a place."""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_globals.get("__name__") == _MODULE:
            return True
        traceback = traceback.tb_next
    return False
