"""Stops on disk: every process of a run hears of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_mst.domain.ending import Scope
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stop import Stop
from pytest_mst.store.append import RunWriter
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.stops import Stops, put_stops_away, read_stops

RUN_ID = "20261130T094500Z-7f3c2a"
WHEN = "2026-11-30T09:45:00.000Z"


def stop(scope: Scope = Scope.RUN, reason: str = "gone", case: str = "c") -> Stop:
    return Stop.met(AttemptId("default", case, 0), scope, reason, "@k7f3abcd", WHEN)


class Process:
    """One process of a run, as far as stops go."""

    def __init__(self, layout: RunLayout, secrets: tuple[str, ...] = ()) -> None:
        self.stops = Stops(RunWriter(layout, secrets=secrets))


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(tmp_path, "team-chat", RUN_ID)


@pytest.fixture
def two(layout: RunLayout) -> Iterator[tuple[Stops, Stops]]:
    pair = Process(layout).stops, Process(layout).stops
    yield pair
    for one in pair:
        one.close()


def test_without_a_stop_there_is_no_file(layout: RunLayout, two: tuple[Stops, Stops]) -> None:
    assert two[0].current() == read_stops(layout) == ()
    assert not layout.run_dir.exists()


def test_a_stop_is_heard_of_by_another_process(two: tuple[Stops, Stops]) -> None:
    here, there = two
    assert there.current() == ()
    here.add(stop(Scope.CASE))
    assert there.current() == (stop(Scope.CASE),)
    there.add(stop(Scope.RUN))
    assert here.current() == there.current() == (stop(Scope.CASE), stop(Scope.RUN))


def test_an_unchanged_file_is_not_read_again(
    layout: RunLayout, two: tuple[Stops, Stops], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = two
    here.add(stop())
    assert there.current() == (stop(),)
    monkeypatch.setattr("pytest_mst.store.stops.json_lines", None)
    assert there.current() == (stop(),)


def test_a_reader_gets_one_stop_for_each_gate_the_first(
    layout: RunLayout, two: tuple[Stops, Stops]
) -> None:
    two[0].add(stop(reason="first"))
    two[1].add(stop(reason="second"))
    two[1].add(stop(Scope.CASE, case="other"))
    assert read_stops(layout) == (stop(reason="first"), stop(Scope.CASE, case="other"))


@pytest.mark.parametrize("torn", [b'{"scope": "ru', b"[1]", b'{"scope": "world"}', b"\xff"])
def test_a_torn_line_is_left_out(layout: RunLayout, two: tuple[Stops, Stops], torn: bytes) -> None:
    two[0].add(stop(reason="whole"))
    with layout.stops.open("ab") as file:
        file.write(torn)
    assert read_stops(layout) == two[1].current() == (stop(reason="whole"),)
    two[1].add(stop(Scope.VARIANT))
    assert read_stops(layout) == (stop(reason="whole"), stop(Scope.VARIANT))


def test_a_secret_is_not_written_and_the_names_that_attempts_are_matched_with_are(
    layout: RunLayout,
) -> None:
    stops = Process(layout, secrets=("hunter2hunter2",)).stops
    stops.add(stop(Scope.CASE, "bad key hunter2hunter2", case="hunter2hunter2"))
    stops.close()
    (found,) = read_stops(layout)
    assert (found.case, found.reason) == ("hunter2hunter2", "bad key [redacted]")
    (line,) = layout.stops.read_text().splitlines()
    assert json.loads(line)["format"] == "mst.run/v1"


def test_stops_that_are_put_away_close_nothing_and_can_still_be_counted(
    layout: RunLayout, tmp_path: Path
) -> None:
    first = Process(layout).stops
    first.add(stop())
    first.close()
    away = tmp_path / "superseded" / "1" / "stops.jsonl"
    put_stops_away(layout, away)
    put_stops_away(layout, away)  # nothing is there: nothing is lost either
    assert read_stops(layout) == ()
    assert Process(layout).stops.current() == ()
    assert json.loads(away.read_text())["reason"] == "gone"


def test_a_stop_that_cannot_be_written_is_an_error_that_names_the_file(layout: RunLayout) -> None:
    layout.stops.mkdir(parents=True)
    stops = Process(layout).stops
    with pytest.raises(StoreError, match=r"stops\.jsonl"):
        stops.add(stop())
    assert stops.current() == ()
