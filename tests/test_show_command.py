"""`python -m pytest_mst show`: what is printed, where it looks, and how it refuses."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_mst.__main__ import main
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import Score
from pytest_mst.report.documents import Circumstances, run_document
from pytest_mst.store.layout import RunLayout
from tests.store.old_runs import OLD_RUN_ID, OldRun
from tests.store.records import RUN_ID, attempt_id, case_of, plan_of, record, writer_in

ID = attempt_id(0, "a")
LOCATOR = locator(RUN_ID, ID)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunLayout:
    """A run of two attempts, one of which is stored, below the working folder."""
    monkeypatch.chdir(tmp_path)
    writer = writer_in(tmp_path / ".mst-results")
    writer.run_json(run_document(plan_of(case_of("a", trials=2)), Circumstances("1")))
    writer.scores(ID, [Score("containsText", True)])
    writer.attempt(record(ID))
    return writer.layout


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run_it(*arguments: str) -> str:
        assert main(["show", *arguments]) == 0
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out

    return run_it


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run_it(*arguments: str) -> str:
        assert main(["show", *arguments]) == 4
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "Traceback" not in captured.err
        return captured.err

    return run_it


@pytest.mark.usefixtures("run")
def test_an_attempt_is_shown_by_its_locator(printed: Callable[..., str]) -> None:
    text = printed(LOCATOR)
    assert text.startswith(f"{LOCATOR} case a [default] trial 0\n")
    assert f"run {RUN_ID} in .mst-results/team-chat/runs/{RUN_ID}\n" in text
    assert "containsText passed" in text
    assert json.loads(printed(LOCATOR, "--json"))["locator"] == LOCATOR
    assert printed(LOCATOR.removeprefix("@")) == text


@pytest.mark.usefixtures("run")
def test_an_unstarted_attempt_is_shown_as_one(printed: Callable[..., str]) -> None:
    assert "unstarted" in printed(locator(RUN_ID, attempt_id(1, "a")))


@pytest.mark.parametrize("how", ["id", "short form", "folder", "eval's folder", "results"])
def test_a_run_is_shown_as_at_its_end(
    run: RunLayout, printed: Callable[..., str], tmp_path: Path, how: str
) -> None:
    arguments = {
        "id": [RUN_ID],
        "short form": ["7f3c2a"],
        "folder": [str(run.run_dir)],
        "eval's folder": [RUN_ID, "--results", str(run.eval_dir)],
        "results": [RUN_ID, "--results", str(tmp_path / ".mst-results")],
    }[how]
    lines = printed(*arguments).splitlines()
    assert "planned 2 = graded 1 + ungraded 0 + infrastructure 0 + unstarted 1" in lines
    assert f"run {RUN_ID} in .mst-results/team-chat/runs/{RUN_ID}" in lines
    assert lines[-1].startswith("finish it with: pytest --mst --mst-resume 7f3c2a")


@pytest.mark.usefixtures("run")
def test_the_figures_of_a_run_are_one_json_document(printed: Callable[..., str]) -> None:
    document = json.loads(printed("7f3c2a", "--json"))
    assert document["runId"] == RUN_ID
    assert document["ledger"]["unstarted"] == 1
    assert [case["verdict"] for case in document["caseRows"]] == ["incomplete"]


def test_a_run_of_an_older_tool_is_shown_with_no_resume_to_offer(
    tmp_path: Path, printed: Callable[..., str]
) -> None:
    old = OldRun(tmp_path)
    old.trial(0, scores={"answer": {"pass": True}})
    old.trial(1, failed=True, error="gone", detail="x")
    before = old.everything()
    text = printed("a3f9c1", "--results", str(tmp_path))
    assert "planned 2 = graded 1 + ungraded 0 + infrastructure 1 + unstarted 0" in text
    assert "--mst-resume" not in text
    broken = locator(OLD_RUN_ID, AttemptId("default", "find-page", 1))
    shown = printed(broken, "--results", str(tmp_path))
    assert "ending: infrastructure failure: client-app (a retry can help)\n  gone" in shown
    assert old.everything() == before


def test_a_copied_run_is_named(run: RunLayout, printed: Callable[..., str]) -> None:
    copy = run.run_dir.parent / "z-copy"
    shutil.copytree(run.run_dir, copy)
    text = printed(LOCATOR)
    assert f"run {RUN_ID} in .mst-results/team-chat/runs/{RUN_ID}\n" in text
    assert "also in .mst-results/team-chat/runs/z-copy" in text


@pytest.mark.usefixtures("run")
def test_what_is_not_found_says_where_was_looked_and_what_there_is(
    refused: Callable[..., str],
) -> None:
    assert ".mst-results: no attempt @abcdefgh in the 1 run " in refused("@abcdefgh")
    assert "elsewhere" in refused("@abcdefgh", "--results", "elsewhere")
    assert f"there are: {RUN_ID} (team-chat)" in refused("000000")
    assert "there are: none" in refused("000000", "--results", "elsewhere")


@pytest.mark.parametrize("what", ["@", "", "\x1b[2J", "a\0b", "x" * 5000, "./nothing", "@\ud83d"])
@pytest.mark.usefixtures("run")
def test_odd_names_are_refused_and_shown_safely(what: str, refused: Callable[..., str]) -> None:
    assert all(line.isprintable() for line in refused(what).split("\n"))


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"format":"mst.run/v9"}', '{"format":"mst.run/v1"}', "\xff"]
)
def test_a_damaged_run_is_told(run: RunLayout, refused: Callable[..., str], content: str) -> None:
    run.run_json.write_text(content, encoding="latin-1")
    assert "run.json" in refused(RUN_ID)
    assert "run.json" in refused("7f3c2a")
    assert "run.json" in refused(str(run.run_dir))
    assert "no attempt" in refused(LOCATOR)


def test_a_run_of_a_later_format_names_both_formats(
    run: RunLayout, refused: Callable[..., str]
) -> None:
    stored = run.run_json.read_text()
    run.run_json.write_text(stored.replace("mst.run/v1", "mst.run/v2", 1))
    text = refused(RUN_ID)
    assert "'mst.run/v2'" in text
    assert "'mst.run/v1'" in text


def test_a_name_from_a_stored_run_is_shown_safely(
    run: RunLayout, refused: Callable[..., str]
) -> None:
    stored = run.run_json.read_text()
    run.run_json.write_text(stored.replace('"team-chat"', '"\\u001b[2Jteam\\nchat"', 1))
    assert "\x1b" not in refused("000000")


@pytest.mark.usefixtures("run")
def test_a_terminal_that_knows_ascii_only_gets_ascii(tmp_path: Path) -> None:
    writer = writer_in(tmp_path / ".mst-results")
    writer.attempt(record(ID, dataset="Über"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest_mst", "show", LOCATOR],
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert b"dataset \\xdcber" in done.stdout


@pytest.mark.usefixtures("run")
def test_a_reader_that_has_read_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

        def fileno(self) -> int:
            return spare.fileno()

    with Path("spare").open("w") as spare:
        monkeypatch.setattr(sys, "stdout", Closed())
        assert main(["show", LOCATOR]) == 0
