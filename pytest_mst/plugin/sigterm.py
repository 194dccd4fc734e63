"""SIGTERM, which CI sends when time is up: the session ends in order, its servers with it.

Its exit code is pytest's for an interrupted session, since for others no summary is printed.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import NoReturn

import pytest


def end_on_sigterm(config: pytest.Config) -> None:
    """End the session on SIGTERM as on Ctrl-C, unless somebody else minds the signal."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return
    signal.signal(signal.SIGTERM, _end)
    config.add_cleanup(_as_before)


def _as_before() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    pytest.exit("ended by SIGTERM")
