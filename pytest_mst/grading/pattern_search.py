"""Searching a text for a regular expression, for so long and no longer.

A pattern can take time without end (`(a|aa)+$`), and while `re` searches, nothing else in its
process runs. So it searches in a small process of its own, which the system ends when the time
is up.
"""

from __future__ import annotations

import atexit
import json
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Final

_CHILD: Final = """
import json, re, signal, sys
for line in sys.stdin:
    pattern, text, limit_s = json.loads(line)
    signal.setitimer(signal.ITIMER_REAL, limit_s)  # SIGALRM, not handled, ends the process
    try:
        answer = re.search(pattern, text) is not None
    except Exception as error:
        answer = str(error)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps(answer), flush=True)
"""
_START_S: Final = 30.0
"""How long the process may take to start and answer, on top of a search's own limit."""


class PatternSearch:
    """Searches in one process, started at the first search and again after one that was ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def found(self, pattern: str, text: str, limit_s: float) -> bool:
        """Tell whether a pattern is found somewhere in a text, as `re.search` has it.

        Args:
            pattern: a regular expression.
            text: where to search.
            limit_s: how long the search may take, in seconds.

        Raises:
            TimeoutError: it took longer.
            ValueError: the pattern cannot be read.

        """
        line = json.dumps([pattern, text, limit_s])
        with self._lock:
            answer = self._ask(line, limit_s)
            if answer is None:  # ended by somebody else, maybe long ago
                answer = self._ask(line, limit_s)
        if answer is None:
            raise TimeoutError
        if isinstance(answer, bool):
            return answer
        raise ValueError(answer)

    def _ask(self, line: str, limit_s: float) -> bool | str | None:
        """Return its answer; `None` where the process ended without one, and not for the time.

        Raises:
            TimeoutError: the time was up.

        """
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        answered, is_late = "", False
        with suppress(BrokenPipeError):
            process.stdin.write(line + "\n")
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], limit_s + _START_S)
            is_late = not ready
            answered = process.stdout.readline() if ready else ""
        if answered:
            answer: bool | str = json.loads(answered)
            return answer
        self._end()
        if is_late or process.returncode == -signal.SIGALRM:
            raise TimeoutError
        return None

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="ascii",
            start_new_session=True,  # Ctrl-C is not for it
        )
        return self._process

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:  # closes its pipes and waits for it
                pass


SEARCH: Final = PatternSearch()
"""The one of this process."""
atexit.register(SEARCH.close)
