"""Endpoints that are left alone, known to every process of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mst.domain.retry import RetryKind
from pytest_mst.store.backoff import Backoff, Backoffs

API = "api.example.org/large model"
LIMIT = RetryKind.RATE_LIMIT


@dataclass
class Time:
    """Two clocks: one that does not jump, and the time of day."""

    clock_s: float = 1000.0
    day_s: float = 1_796_031_900.0

    def pass_s(self, seconds: float) -> None:
        self.clock_s += seconds
        self.day_s += seconds

    def backoffs(self, folder: Path | None) -> Backoffs:
        """Make what one process knows."""
        return Backoffs(folder, clock=lambda: self.clock_s, time_of_day=lambda: self.day_s)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture(params=["in memory", "in a folder"])
def backoffs(request: pytest.FixtureRequest, time: Time, tmp_path: Path) -> Backoffs:
    return time.backoffs(tmp_path / "backoff" if request.param == "in a folder" else None)


def test_an_endpoint_is_left_alone_until_the_time_is_over(backoffs: Backoffs, time: Time) -> None:
    assert backoffs.left(API) is None
    backoffs.hold(API, LIMIT, 8)
    assert backoffs.left(API) == Backoff(LIMIT, 8)
    assert backoffs.left("api.example.org/other") is None
    time.pass_s(5)
    assert backoffs.left(API) == Backoff(LIMIT, 3)
    time.pass_s(3)
    assert backoffs.left(API) is None


def test_the_longer_of_two_times_counts(backoffs: Backoffs) -> None:
    backoffs.hold(API, LIMIT, 8)
    backoffs.hold(API, RetryKind.OVERLOADED, 2)
    assert backoffs.left(API) == Backoff(LIMIT, 8)
    backoffs.hold(API, RetryKind.OVERLOADED, 20)
    assert backoffs.left(API) == Backoff(RetryKind.OVERLOADED, 20)


def test_nothing_is_held_for_longer_than_the_cap_or_for_no_time(backoffs: Backoffs) -> None:
    backoffs.hold(API, LIMIT, 3600)
    assert backoffs.left(API) == Backoff(LIMIT, 60)
    backoffs.hold("other", LIMIT, 0)
    assert backoffs.left("other") is None


def test_processes_of_a_run_tell_each_other(time: Time, tmp_path: Path) -> None:
    one, other = time.backoffs(tmp_path / "backoff"), time.backoffs(tmp_path / "backoff")
    assert other.left(API) is None
    one.hold(API, LIMIT, 8)
    assert other.left(API) == Backoff(LIMIT, 8)
    other.hold(API, RetryKind.UNAVAILABLE, 20)
    assert one.left(API) == Backoff(RetryKind.UNAVAILABLE, 20)
    time.pass_s(20)
    assert one.left(API) is other.left(API) is None


def test_what_is_told_is_a_whole_file_of_the_run(time: Time, tmp_path: Path) -> None:
    time.backoffs(tmp_path / "backoff").hold(API, LIMIT, 8)
    (path,) = (tmp_path / "backoff").iterdir()
    stored = json.loads(path.read_bytes())
    assert (stored["format"], stored["kind"], stored["reason"]) == (
        "mst.run/v1", "backoff", "rate_limit"
    )  # fmt: skip
    assert stored["untilMs"] == (time.day_s + 8) * 1000
    assert stored["until"].endswith("Z")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("jump_s", [-86_400, 86_400])
def test_a_time_of_day_that_jumps_holds_nobody_up(
    time: Time, tmp_path: Path, jump_s: float
) -> None:
    one, other = time.backoffs(tmp_path / "backoff"), time.backoffs(tmp_path / "backoff")
    one.hold(API, LIMIT, 8)
    time.day_s += jump_s
    seen = other.left(API)
    assert seen is None if jump_s > 0 else seen == Backoff(LIMIT, 60)
    time.pass_s(60)
    assert one.left(API) is other.left(API) is None


def test_a_time_of_day_that_jumps_changes_nothing_once_it_was_seen(
    time: Time, tmp_path: Path
) -> None:
    one, other = time.backoffs(tmp_path / "backoff"), time.backoffs(tmp_path / "backoff")
    one.hold(API, LIMIT, 8)
    assert other.left(API) == Backoff(LIMIT, 8)
    time.day_s -= 3600
    assert one.left(API) == other.left(API) == Backoff(LIMIT, 8)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b'{"reason": "rate_limit"}',
        b'{"reason": "later", "untilMs": 99999999999999}',
        b'{"reason": ["rate_limit"], "untilMs": 99999999999999}',
        b'{"reason": "rate_limit", "untilMs": "tomorrow"}',
        b'{"reason": "rate_limit", "untilMs": Infinity}',
    ],
)
def test_what_cannot_be_read_tells_nothing(time: Time, tmp_path: Path, content: bytes) -> None:
    time.backoffs(tmp_path).hold(API, LIMIT, 8)
    (path,) = tmp_path.iterdir()
    path.write_bytes(content)
    other = time.backoffs(tmp_path)
    assert other.left(API) is None
    other.hold(API, LIMIT, 2)
    assert other.left(API) == Backoff(LIMIT, 2)


def test_where_nothing_can_be_written_a_process_keeps_to_what_it_knows(
    time: Time, tmp_path: Path
) -> None:
    (tmp_path / "backoff").write_text("a file", encoding="utf-8")
    backoffs = time.backoffs(tmp_path / "backoff")
    backoffs.hold(API, LIMIT, 8)
    assert backoffs.left(API) == Backoff(LIMIT, 8)
