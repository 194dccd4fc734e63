"""Finding runs by id, short form and folder, and attempts by locator."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pytest_mst.domain.errors import ResumeError, SelectionError, StoreError
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.store.find import attempt_at, damaged_runs, find_runs, run_in, run_named
from pytest_mst.store.layout import RunLayout
from tests.store.old_runs import OLD_RUN_ID, OldRun

NEW = "20261130T094500Z-7f3c2a"
NEWER = "20261130T094501Z-0badc0"


def run_of(
    results_dir: Path, run_id: str, eval_name: str = "team-chat", *, trials: int = 1
) -> RunLayout:
    """Store a run with a plan and nothing else."""
    layout = RunLayout(results_dir, eval_name, run_id)
    case = {"variant": "default", "id": "a", "datasetName": "d", "trials": trials}
    OldRun(
        results_dir,
        eval_name,
        run_id,
        folder=layout.run_dir,
        plannedCases=[case],
        variants=[{"name": "default", "client": "scripted"}],
    )
    return layout


def test_runs_of_all_evals_are_found_the_newest_first(tmp_path: Path) -> None:
    older, newer = run_of(tmp_path, NEW), run_of(tmp_path, NEWER, "Team Chat!")
    oldest = OldRun(tmp_path)
    assert find_runs(tmp_path) == [newer, older, run_in(oldest.folder)]
    assert find_runs(newer.eval_dir) == [newer]
    assert find_runs(tmp_path / "none") == []


def test_what_is_no_run_is_left_out(tmp_path: Path) -> None:
    layout = run_of(tmp_path, NEW)
    (tmp_path / "notes.txt").write_text("mine")
    (layout.eval_dir / "runs" / "empty").mkdir()
    for number, content in enumerate(["", "{", "[]", '{"format": "mst.run/v1"}', "\0"]):
        folder = layout.eval_dir / "runs" / f"damaged{number}"
        folder.mkdir()
        (folder / "run.json").write_text(content)
    assert find_runs(tmp_path) == [layout]
    assert [Path(one.path).parent.name for one in damaged_runs(tmp_path)] == [
        f"damaged{number}" for number in range(5)
    ]


@pytest.mark.skipif(os.getuid() == 0, reason="root may list any folder")
def test_a_results_folder_that_is_closed_to_us_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0)
    try:
        with pytest.raises(StoreError):
            find_runs(tmp_path)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("text", [NEW, "7f3c2a", "7F3C2A"])
def test_a_run_is_named_by_its_id_and_by_its_short_form(tmp_path: Path, text: str) -> None:
    layout = run_of(tmp_path, NEW)
    run_of(tmp_path, NEWER)
    assert run_named([tmp_path / "none", tmp_path], text) == layout


def test_a_run_is_named_by_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = run_of(tmp_path, NEW)
    assert run_named([], str(layout.run_dir)) == layout
    assert run_named([], str(layout.run_json)) == layout
    monkeypatch.chdir(tmp_path)
    found = run_named([], os.path.join("team-chat", "runs", NEW))  # noqa: PTH118
    assert found.run_dir.resolve() == layout.run_dir.resolve()
    monkeypatch.chdir(layout.run_dir)
    assert run_named([], ".").run_dir.resolve() == layout.run_dir.resolve()
    monkeypatch.chdir(layout.run_dir.parent)
    assert run_named([], NEW).run_dir.resolve() == layout.run_dir.resolve()


def test_a_short_form_of_two_runs_is_refused_with_both(tmp_path: Path) -> None:
    run_of(tmp_path, NEW)
    run_of(tmp_path, "20261201T000000Z-7f3c2a", "other")
    with pytest.raises(ResumeError) as raised:
        run_named([tmp_path], "7f3c2a")
    assert raised.value.asked == "--mst-resume 7f3c2a"
    assert raised.value.problem == (
        "there are several runs of this short form: "
        f"20261201T000000Z-7f3c2a (other), {NEW} (team-chat)"
    )
    assert raised.value.remedy == "name one by its whole id or its folder"


@pytest.mark.parametrize("text", ["000000", "a\0b", "x" * 5000, "", "@abc", "7f3c2"])
def test_a_run_that_is_not_there_is_told_with_those_that_are(tmp_path: Path, text: str) -> None:
    run_of(tmp_path, NEW)
    with pytest.raises(SelectionError) as raised:
        run_named([tmp_path], text, option="show")
    assert raised.value.valid == (f"{NEW} (team-chat)",)
    assert str(tmp_path) in str(raised.value)


def test_a_damaged_run_that_is_named_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    layout = run_of(tmp_path, NEW)
    layout.run_json.write_text('{"format": "mst.run/v1", "ki')
    for text in (NEW, "7f3c2a", str(layout.run_dir)):
        with pytest.raises(StoreError) as raised:
            run_named([tmp_path], text)
        assert raised.value.path == str(layout.run_json)


def test_a_run_in_another_place_can_be_read_and_not_be_written_to(tmp_path: Path) -> None:
    layout = run_of(tmp_path / "results", NEW)
    moved = tmp_path / "downloaded" / "artifact"
    shutil.copytree(layout.run_dir, moved)
    run = run_named([], str(moved), in_place=False)
    assert run.run_dir == moved
    assert run.run_id == NEW
    with pytest.raises(StoreError) as raised:
        run_named([], str(moved))
    assert raised.value.remedy is not None
    assert raised.value.remedy.endswith(NEW)


def test_a_run_is_taken_before_its_copies(tmp_path: Path) -> None:
    layout = run_of(tmp_path, NEW)
    shutil.copytree(layout.run_dir, layout.run_dir.parent / "a-copy")
    shutil.copytree(layout.run_dir, layout.run_dir.parent / "z-copy")
    assert run_named([tmp_path], NEW) == layout
    assert run_named([tmp_path], "7f3c2a") == layout
    assert find_runs(tmp_path)[0] == layout


def test_an_attempt_is_found_by_its_locator_also_when_it_never_began(tmp_path: Path) -> None:
    layout = run_of(tmp_path, NEW, trials=3)
    run_of(tmp_path, NEWER, trials=3)
    id_ = AttemptId("default", "a", 2)
    for text in (locator(NEW, id_), locator(NEW, id_)[1:], locator(NEW, id_).upper()):
        [found] = attempt_at([tmp_path], text)
        assert (found.layout, found.id) == (layout, id_)


def test_an_attempt_of_an_older_tool_is_found_too(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(case="Über", place="default/%C3%9Cber/0")
    id_ = AttemptId("default", "Über", 0)
    [found] = attempt_at([tmp_path], locator(OLD_RUN_ID, id_))
    assert found.id == id_
    assert Path(found.layout.trace_file(id_)).is_file()


def test_an_attempt_of_a_copied_run_is_found_in_each(tmp_path: Path) -> None:
    layout = run_of(tmp_path, NEW)
    copy = layout.run_dir.parent / "z-copy"
    shutil.copytree(layout.run_dir, copy)
    found = attempt_at([tmp_path], locator(NEW, AttemptId("default", "a", 0)))
    assert [one.layout.run_dir for one in found] == [layout.run_dir, copy]


def test_a_locator_that_is_nowhere_says_where_was_looked(tmp_path: Path) -> None:
    run_of(tmp_path, NEW)
    with pytest.raises(StoreError) as raised:
        attempt_at([tmp_path, tmp_path / "b"], "@abcdefgh")
    assert raised.value.path == f"{tmp_path}, {tmp_path / 'b'}"
    assert "@abcdefgh" in raised.value.problem
    assert "1 run " in raised.value.problem
