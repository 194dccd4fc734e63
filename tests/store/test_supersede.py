"""Files that are replaced stay: they lie in `superseded/` as they lay in the run."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pytest_mst.domain.ending import Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import Score
from pytest_mst.store.append import RunWriter
from pytest_mst.store.read import StoredAttempt, read_attempt
from pytest_mst.store.supersede import (
    replaced_attempts,
    restore_attempt,
    supersede_attempt,
    supersede_grades,
    superseded_stamps,
)
from tests.store.records import LOST, attempt_id, entry, record, writer_in

FIRST, SECOND = "20261130T094500000Z", "20261130T104500000Z"


def store(writer: RunWriter, id_: AttemptId, at: str = "1", *, passed: bool | None = True) -> None:
    """Store an attempt with a write and two scores; with `None` as an infrastructure failure."""
    with writer.write_sink(id_) as sink:
        sink(entry())
    ending = LOST if passed is None else Trial()
    writer.attempt(record(id_, ending, started_at=at, graders=("a", "b")))
    if passed is not None:
        writer.scores(id_, [Score("a", passed=passed), Score("b", passed=True)])


def files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file below a folder with its content and its time."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_all_of_one_attempt_moves_as_it_is_and_nothing_of_another(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    one, other = attempt_id(0), attempt_id(10)
    store(writer, one)
    store(writer, other)
    before = files(writer.layout.run_dir)
    supersede_attempt(writer.layout, one, FIRST)
    after = files(writer.layout.run_dir)
    moved = {name for name in before if Path(name).stem == "0"}
    assert len(moved) == 4
    expected = {
        f"superseded/{FIRST}/{name}" if name in moved else name: held
        for name, held in before.items()
    }
    assert after == expected


def test_nothing_is_made_for_an_attempt_that_nothing_is_stored_of(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    store(writer, attempt_id(1))
    supersede_attempt(writer.layout, attempt_id(0), FIRST)
    assert superseded_stamps(writer.layout) == []


def test_grades_move_and_the_attempts_own_file_is_in_both_places(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_)
    before = files(writer.layout.run_dir)
    supersede_grades(writer.layout, id_, FIRST)
    aside = files(writer.layout.run_dir / "superseded" / FIRST)
    assert aside == {name: held for name, held in before.items() if not name.startswith("writes")}
    there = files(writer.layout.run_dir)
    assert [name for name in there if name.startswith("scores")] == []
    assert {name: there[name] for name in before if not name.startswith("scores")}
    writer.attempt(record(id_, started_at="later"))  # what is put aside does not change with it
    assert files(writer.layout.run_dir / "superseded" / FIRST) == aside


def test_grades_are_put_aside_where_a_file_can_have_one_name_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_)
    trace = writer.layout.trace(id_)
    before = (trace.read_bytes(), trace.stat().st_mtime_ns)
    supersede_grades(writer.layout, id_, FIRST)
    kept = writer.layout.superseded(FIRST).trace(id_)
    assert (kept.read_bytes(), kept.stat().st_mtime_ns) == before


def test_putting_grades_aside_twice_at_one_time_keeps_the_first(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_, "1")
    supersede_grades(writer.layout, id_, FIRST)
    writer.attempt(record(id_, started_at="2"))
    supersede_grades(writer.layout, id_, FIRST)
    [kept] = replaced_attempts(writer.layout, id_, [FIRST])
    assert kept.stored.record.started_at == "1"


@pytest.mark.parametrize("moves", range(4))
def test_a_process_that_is_killed_between_two_moves_leaves_an_attempt_to_collect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_)
    replace, left = os.replace, [moves]

    def replace_until_killed(source: str, target: str) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_until_killed)
    with pytest.raises(KeyboardInterrupt):
        supersede_attempt(writer.layout, id_, FIRST)
    monkeypatch.undo()
    found = read_attempt(writer.layout, id_)
    if found is not None:  # then nothing of it has moved
        assert isinstance(found, StoredAttempt)
        assert moves == 0
        assert len(found.writes.entries) == 1
    supersede_attempt(writer.layout, id_, SECOND)
    assert not [name for name in files(writer.layout.run_dir) if not name.startswith("superseded")]
    assert len(files(writer.layout.run_dir)) == 4  # nothing is lost
    store(writer, id_, "2")
    [kept] = replaced_attempts(writer.layout, id_, superseded_stamps(writer.layout))
    assert kept.stored.record.started_at == "1"


def test_earlier_goes_are_told_the_oldest_first_and_each_once(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_, "1", passed=None)
    supersede_attempt(writer.layout, id_, FIRST)
    store(writer, id_, "2")
    supersede_grades(writer.layout, id_, SECOND)
    supersede_attempt(writer.layout, id_, "30000101T000000000Z")
    stamps = superseded_stamps(writer.layout)
    earlier = replaced_attempts(writer.layout, id_, stamps)
    assert [(one.stored.record.started_at, one.stored.ending.kind) for one in earlier] == [
        ("1", "infrastructure"),
        ("2", "trial"),
    ]
    assert [one.stamp for one in earlier] == [FIRST, "30000101T000000000Z"]  # as it was last
    assert replaced_attempts(writer.layout, attempt_id(1), stamps) == []


def test_what_is_in_its_place_now_is_no_earlier_go(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_, "1")
    supersede_grades(writer.layout, id_, FIRST)
    now = read_attempt(writer.layout, id_)
    assert replaced_attempts(writer.layout, id_, [FIRST], now) == []
    [kept] = replaced_attempts(writer.layout, id_, [FIRST], scored=True)
    assert len(kept.stored.outcomes) == 2


def test_grades_of_some_graders_move_and_those_of_others_stay(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_)
    supersede_grades(writer.layout, id_, FIRST, ["b", "c"])
    assert Path(writer.layout.score_file("a", id_)).exists()
    assert not Path(writer.layout.score_file("b", id_)).exists()
    assert Path(writer.layout.superseded(FIRST).score_file("b", id_)).exists()


def test_what_was_put_aside_moves_back_as_it_was(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_)
    before = files(writer.layout.run_dir)
    supersede_attempt(writer.layout, id_, FIRST)
    restore_attempt(writer.layout, id_, FIRST)
    assert files(writer.layout.run_dir) == before


def test_what_a_lost_process_put_aside_first_stays_there(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    for at in ("1", "2"):
        store(writer, id_, at)
        supersede_attempt(writer.layout, id_, FIRST)
    [kept] = replaced_attempts(writer.layout, id_, [FIRST])
    assert kept.stored.record.started_at == "1"
    assert read_attempt(writer.layout, id_) is None


def test_foreign_things_among_what_was_replaced_are_passed_over(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_, "1")
    supersede_attempt(writer.layout, id_, FIRST)
    folder = writer.layout.run_dir / "superseded"
    (folder / "notes.txt").write_text("mine")
    shutil.copytree(folder / FIRST, folder / "0-broken")
    writer.layout.superseded("0-broken").trace(id_).write_text("{")
    stamps = superseded_stamps(writer.layout)
    [kept] = replaced_attempts(writer.layout, id_, stamps)
    assert kept.stored.record.started_at == "1"


def test_a_file_that_cannot_be_moved_is_an_error_and_is_where_it_was(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    store(writer, id_)
    (writer.layout.run_dir / "superseded").write_text("in the way")
    before = files(writer.layout.run_dir)
    for supersede in (supersede_attempt, supersede_grades):
        with pytest.raises(StoreError):
            supersede(writer.layout, id_, FIRST)
        assert files(writer.layout.run_dir) == before
    assert superseded_stamps(writer.layout) == []


def test_what_was_put_aside_first_stays(tmp_path: Path) -> None:
    """A process is lost after it has graded again; another does so in the same session."""
    writer = writer_in(tmp_path)
    id_ = attempt_id()
    store(writer, id_, passed=True)
    before = files(writer.layout.run_dir)
    supersede_grades(writer.layout, id_, FIRST)
    writer.scores(id_, [Score("a", passed=False)])
    supersede_grades(writer.layout, id_, FIRST)
    aside = files(writer.layout.superseded(FIRST).run_dir)
    assert aside == {name: held for name, held in before.items() if not name.startswith("writes")}
    assert not writer.layout.score("a", id_).exists()


def test_only_the_scores_of_the_graders_that_are_asked_again_move(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    id_ = attempt_id()
    store(writer, id_)
    supersede_grades(writer.layout, id_, FIRST, {"b"})
    assert writer.layout.score("a", id_).exists()
    assert not writer.layout.score("b", id_).exists()
    assert writer.layout.superseded(FIRST).score("b", id_).exists()
