"""The tries of an attempt, in lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_mst.domain.attempt import Try
from pytest_mst.domain.retry import TRIES, retry_text
from pytest_mst.report.text import shown


def retry_lines(tries: Iterable[Try]) -> Iterator[str]:
    """Yield a line for each wait of an attempt, with the try that it was for and when it began."""
    number = 1
    for one in tries:
        number = number + 1 if one.next_try is None else one.next_try
        text = retry_text(number, TRIES, shown(one.reason), one.wait_ms)
        yield f"{text} (at {shown(one.at)})"
