"""Writing a run: whole files, private, nothing early, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.domain.ending import Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.store.append import RunWriter
from pytest_mst.store.journal import JournalLine, TornLine, Waiting, begun, read_journal
from pytest_mst.store.read import StoredAttempt, read_attempt, read_writes
from tests.store.records import AT, LOST, attempt_id, entry, layout_in, record, writer_in

SECRET = "mst-secret-123456"


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def write_everything(writer: RunWriter) -> None:
    id_ = attempt_id()
    writer.begun(id_, "@abc", at=AT)
    with writer.write_sink(id_) as sink:
        sink(entry())
    writer.scores(id_, [Score("writes", True, evidence=Evidence.REQUESTED)])
    writer.attempt(record(id_))
    writer.ended(id_, "@abc", Trial(), at=AT)
    writer.run_json({"kind": "run"})
    writer.results({"kind": "results"}, [{"id": "a"}])
    writer.summary({"kind": "summary"})
    writer.sync()
    writer.latest({"kind": "latest"})
    writer.close()


def test_nothing_is_created_before_the_first_write(tmp_path: Path) -> None:
    writer = writer_in(tmp_path / "results")
    with writer.write_sink(attempt_id()):
        pass
    writer.scores(attempt_id(), [GraderFailure("rubric", "no key")])
    writer.sync()
    writer.close()
    assert list(tmp_path.iterdir()) == []


def test_files_and_folders_are_private_and_no_temporary_file_stays(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        write_everything(writer_in(tmp_path / "results"))
    finally:
        os.umask(old_mask)
    paths = list((tmp_path / "results").rglob("*"))
    assert len(files_below(tmp_path)) == 8
    for path in [tmp_path / "results", *paths]:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path
        assert not path.name.endswith(".tmp")


def test_results_are_written_case_by_case_and_read_as_one_document(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    for head, cases in [
        ({"kind": "results"}, []),
        ({}, [{"id": "\ud83d"}]),
        ({"kind": "results"}, [{"id": str(n), "more": "x" * 100} for n in range(2000)]),
    ]:
        writer.results(head, iter(cases))
        assert json.loads(writer.layout.results_json.read_bytes()) == {**head, "cases": cases}


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.summary({"a": "x" * 1000})
    writer.summary({"a": "y"})
    assert json.loads(writer.layout.summary_json.read_bytes()) == {"a": "y"}


def test_scores_have_a_file_each_and_graders_that_could_not_run_have_none(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    outcomes: list[GradeOutcome] = [
        Score("writes", False, 0.5, Evidence.REQUESTED, "one is missing", {"call": 1}),
        Unknown("rubric: tone", "say what tone"),
        GraderFailure("judge", "no key"),
        Score("writes", True),
    ]
    writer.scores(id_, outcomes)
    stored = {
        one["grader"]: one["score"]
        for one in (json.loads(path.read_bytes()) for path in files_below(tmp_path))
    }
    assert stored == {
        "writes": {
            "pass": False,
            "value": 0.5,
            "evidence": "requested",
            "reason": "one is missing",
            "details": {"call": 1},
        },
        "writes (2)": {"pass": True},
        "rubric: tone": {"pass": False, "unknown": True, "reason": "say what tone"},
    }


def test_odd_values_from_an_agent_are_stored_as_text(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    odd: Any = {"when": Decimal("1.5"), "bad": "bad \ud83d end", "nan": float("nan")}
    trace = Trace("bad \ud83d end", [TraceEvent("post", arguments=odd)])
    writer.attempt(record(id_, trace=trace))
    stored = read_attempt(writer.layout, id_)
    assert isinstance(stored, StoredAttempt)
    assert stored.record.trace is not None
    assert stored.record.trace.answer == "bad \ud83d end"
    assert stored.record.trace.events[0].arguments == {
        "when": "1.5",
        "bad": "bad \ud83d end",
        "nan": "NaN",
    }


def test_no_secret_is_in_any_file(tmp_path: Path) -> None:
    writer = writer_in(tmp_path, secrets=(SECRET,))
    id_ = attempt_id()
    leak = {f"key {SECRET}": [f"Bearer {SECRET}", json.dumps({"t": SECRET})]}
    writer.begun(id_, f"@{SECRET}", worker=SECRET, at=AT)
    with writer.write_sink(id_) as sink:
        sink(entry(arguments=leak, reply=leak))
    writer.attempt(record(id_, Trial(client_error=SECRET), trace=Trace(SECRET)))
    writer.scores(id_, [Score("writes", False, reason=SECRET, details=leak)])
    writer.ended(id_, SECRET, Trial(client_error=SECRET), at=AT)
    for document in (writer.run_json, writer.summary, writer.latest):
        document(leak)
    writer.results(leak, [leak])
    written = files_below(tmp_path)
    assert len(written) == 8
    for path in written:
        assert SECRET.encode() not in path.read_bytes(), path
        assert b"[redacted]" in path.read_bytes(), path


WRITES: list[tuple[str, Callable[[RunWriter], object]]] = [
    ("run.json", lambda writer: writer.run_json({"kind": "run"})),
    ("summary.json", lambda writer: writer.summary({"kind": "summary"})),
    ("results.json", lambda writer: writer.results({}, [{"id": "x" * 100_000}] * 3)),
    ("latest.json", lambda writer: writer.latest({"kind": "latest"})),
    ("0.json", lambda writer: writer.attempt(record(attempt_id()))),
    ("0.json", lambda writer: writer.scores(attempt_id(), [Score("writes", True)])),
]


@pytest.mark.parametrize(("name", "write"), WRITES)
def test_a_disk_that_fills_up_is_told_and_nothing_half_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, write: Callable[[RunWriter], object]
) -> None:
    real_write = os.write
    with monkeypatch.context() as patched:

        def write_a_little(descriptor: int, data: bytes) -> int:
            if os.fstat(descriptor).st_size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real_write(descriptor, data[:10])

        patched.setattr(os, "write", write_a_little)
        with pytest.raises(StoreError) as raised:
            write(writer_in(tmp_path))
    assert Path(raised.value.path).name == name
    assert raised.value.path.startswith(str(tmp_path))
    assert "No space left" in raised.value.problem
    assert "--mst-results" in str(raised.value.remedy)
    assert files_below(tmp_path) == []


def test_what_was_there_stays_when_its_replacement_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = writer_in(tmp_path)
    writer.summary({"n": 1})

    def full(source: str, target: str) -> None:
        raise OSError(errno.EDQUOT, "over quota")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        with pytest.raises(StoreError):
            writer.summary({"n": 2})
    assert json.loads(writer.layout.summary_json.read_bytes()) == {"n": 1}
    assert files_below(tmp_path) == [writer.layout.summary_json]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_lines_on_a_full_device_are_refused(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    for path in (writer.layout.journal, writer.layout.writes(id_)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to("/dev/full")
    with pytest.raises(StoreError) as raised:
        writer.begun(id_, "@abc")
    assert raised.value.path == str(writer.layout.journal)
    with writer.write_sink(id_) as sink, pytest.raises(StoreError) as refused:
        sink(entry())
    assert refused.value.path == str(writer.layout.writes(id_))


@pytest.mark.parametrize("write", [write for _, write in WRITES])
def test_a_file_in_the_place_of_a_folder_is_told(
    tmp_path: Path, write: Callable[[RunWriter], object]
) -> None:
    (tmp_path / "results").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError) as raised:
        write(writer_in(tmp_path / "results"))
    assert raised.value.remedy is not None
    assert (tmp_path / "results").read_text(encoding="utf-8") == "mine"


def test_a_line_cut_short_by_a_full_disk_costs_no_other_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = writer_in(tmp_path)
    real_write = os.write
    writer.begun(attempt_id(0), "@0")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda fd, data: real_write(fd, data[: len(data) // 2]))
        with pytest.raises(StoreError):
            writer.begun(attempt_id(1), "@1")
    writer.begun(attempt_id(2), "@2")
    lines = list(read_journal(writer.layout))
    assert [type(line) for line in lines] == [JournalLine, TornLine, JournalLine]
    assert set(begun(writer.layout)) == {attempt_id(0), attempt_id(2)}
    writer.close()


def test_a_line_that_a_dying_process_left_torn_costs_no_other_line(tmp_path: Path) -> None:
    first, second = writer_in(tmp_path), writer_in(tmp_path)
    first.begun(attempt_id(0), "@0")
    first.close()
    journal = first.layout.journal
    journal.write_bytes(journal.read_bytes() + b'{"format":"mst.run/v1","kind":"beg')
    second.begun(attempt_id(1), "@1")
    second.close()
    assert [type(line) for line in read_journal(first.layout)] == [
        JournalLine,
        TornLine,
        JournalLine,
    ]


def test_an_attempt_that_is_tried_again_is_still_under_way(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    writer.begun(id_, "@abc")
    writer.retrying(id_, "@abc", next_try=2, of=4, reason="rate_limit", wait_ms=8000, at=AT)
    first, second = read_journal(writer.layout)
    assert isinstance(second, JournalLine)
    assert second == JournalLine(
        "retry", id_, "@abc", AT, waiting=Waiting(2, 4, "rate_limit", 8000)
    )
    assert begun(writer.layout) == {id_: first}
    writer.ended(id_, "@abc", Trial())
    writer.retrying(id_, "@abc", next_try=2, of=4, reason="rate_limit", wait_ms=8000)
    assert begun(writer.layout) == {}
    writer.close()


def test_a_write_record_is_there_entry_by_entry(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    with writer.write_sink(id_) as sink:
        for seq in range(3):
            sink(entry(seq))
            assert read_writes(writer.layout, id_).entries == tuple(map(entry, range(seq + 1)))


def test_two_evals_in_one_results_folder_keep_apart(tmp_path: Path) -> None:
    layout = layout_in(tmp_path)
    for name in ("Team chat", "team chat", "team-chat"):
        other = RunWriter(type(layout)(tmp_path, name, layout.run_id))
        other.latest({"name": name})
    assert len(files_below(tmp_path)) == 3


def test_a_run_can_be_read_whatever_its_secrets_are(tmp_path: Path) -> None:
    id_ = attempt_id(case="change-password-flow", variant="localhost")
    for number, secret in enumerate(["password", "localhost", "infrastructure", "durationM"]):
        writer = writer_in(tmp_path / str(number), secrets=(secret,))
        written = record(id_, LOST, trace=Trace("my password"), key="password at localhost")
        writer.begun(id_, "@abc")
        writer.scores(id_, [Score("password", True, reason="password")])
        assert set(begun(writer.layout)) == {id_}
        writer.attempt(written)
        writer.close()
        found = read_attempt(writer.layout, id_)
        assert isinstance(found, StoredAttempt)
        assert (found.id, found.ending, found.duration_ms) == (id_, LOST, 12)
        assert [one.grader for one in found.outcomes] == ["password"]
        assert found.record.key == writer.redactor.text(written.key)
