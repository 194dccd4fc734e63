"""Several processes and threads at one run, and one that is killed."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pytest_mst.store.append import RunWriter
from pytest_mst.store.journal import JournalLine, begun, read_journal
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import StoredAttempt, read_writes
from pytest_mst.store.run_id import new_run_id
from tests.store.records import (
    attempt_id,
    case_of,
    layout_in,
    plan_of,
    read_attempts,
    record,
    writer_in,
)

ROOT = Path(__file__).parents[2]
ENDLESS_WRITER = """
import itertools, sys
from pathlib import Path
from pytest_mst.domain.score import Score
from tests.store.records import attempt_id, entry, record, writer_in

writer = writer_in(Path(sys.argv[1]))
for trial in itertools.count():
    id_ = attempt_id(trial)
    writer.begun(id_, f"@{trial}")
    with writer.write_sink(id_) as sink:
        for seq in range(5):
            sink(entry(seq, reply="x" * 10_000))
    writer.scores(id_, [Score("writes", True, reason="x" * 10_000)])
    writer.attempt(record(id_, grading_error=None, key="x" * 50_000))
    writer.ended(id_, f"@{trial}", record(id_).ending)
    print(trial, flush=True)
"""
JOURNAL_WRITER = """
import sys
from pathlib import Path
from tests.store.records import attempt_id, writer_in

writer = writer_in(Path(sys.argv[1]))
sys.stdin.readline()
for trial in range(300):
    writer.begun(attempt_id(trial, variant=sys.argv[2]), f"@{trial}" + "x" * 500)
"""


def start(script: str, *args: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *args],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_everything_a_killed_process_left_can_be_read(tmp_path: Path) -> None:
    with start(ENDLESS_WRITER, str(tmp_path)) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(40)]
        process.kill()
        process.wait(timeout=10)
    assert seen[-1] == "39\n"
    layout = layout_in(tmp_path)
    found = list(read_attempts(layout, plan_of(case_of(trials=10_000))))
    assert len(found) >= 40
    assert all(isinstance(one, StoredAttempt) and len(one.outcomes) == 1 for one in found)
    assert all(len(one.writes.entries) == 5 for one in found if isinstance(one, StoredAttempt))
    assert all(isinstance(line, JournalLine) for line in read_journal(layout))
    in_flight = begun(layout)
    assert len(in_flight) <= 1
    assert all(read_writes(layout, id_).torn == () for id_ in in_flight)


def test_two_processes_append_to_one_journal_at_once(tmp_path: Path) -> None:
    with (
        start(JOURNAL_WRITER, str(tmp_path), "one") as one,
        start(JOURNAL_WRITER, str(tmp_path), "two") as two,
    ):
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert one.wait(timeout=60) == two.wait(timeout=60) == 0
    lines = list(read_journal(layout_in(tmp_path)))
    assert all(isinstance(line, JournalLine) for line in lines)
    assert len(begun(layout_in(tmp_path))) == len(lines) == 600


def test_writers_that_begin_together_on_an_empty_folder_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for repeat in range(25):
            folder = tmp_path / str(repeat) / "results"
            together = threading.Barrier(8)
            begin = partial(begin_and_end_one, folder, together)
            assert list(pool.map(begin, range(8), timeout=20)) == list(range(8))
            layout = layout_in(folder)
            assert len(list(read_journal(layout))) == 8
            assert len(list(read_attempts(layout, plan_of(case_of(trials=8))))) == 8


def begin_and_end_one(folder: Path, together: threading.Barrier, worker: int) -> int:
    writer = writer_in(folder)
    together.wait(timeout=10)
    writer.begun(attempt_id(worker), f"@{worker}", worker=f"gw{worker}")
    writer.attempt(record(attempt_id(worker)))
    writer.close()
    return worker


def test_two_runs_of_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    now = datetime(2026, 11, 30, 9, 45, tzinfo=UTC)
    layouts = [RunLayout(tmp_path, "team-chat", new_run_id(now)) for _ in range(2)]
    for number, layout in enumerate(layouts):
        RunWriter(layout).attempt(record(attempt_id(number)))
    plan = plan_of(case_of(trials=2))
    assert [[one.id.trial for one in read_attempts(each, plan)] for each in layouts] == [[0], [1]]
