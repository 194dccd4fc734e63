"""Reading a stored run: what is torn, foreign or missing is told, and costs nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.trace import Trace
from pytest_mst.store.append import RunWriter
from pytest_mst.store.journal import JournalLine, TornLine, begun, read_journal
from pytest_mst.store.read import (
    NO_SCORE,
    UNNAMED_GRADER,
    StoredAttempt,
    UnreadableAttempt,
    read_attempt,
    read_document,
    read_writes,
)
from pytest_mst.store.scores import score_from_json, score_to_json
from tests.store.records import (
    AT,
    LOST,
    attempt_id,
    case_of,
    entry,
    json_objects,
    plan_of,
    read_attempts,
    record,
    texts,
    writer_in,
)

scores = st.builds(
    Score,
    st.just("rubric"),
    st.booleans(),
    st.none() | st.floats(0, 1),
    st.none() | st.sampled_from(Evidence),
    st.none() | texts,
    json_objects,
)


def stored(writer: RunWriter, trial: int = 0) -> StoredAttempt:
    found = read_attempt(writer.layout, attempt_id(trial))
    assert isinstance(found, StoredAttempt)
    return found


@given(st.one_of(scores, st.builds(Unknown, st.just("rubric"), texts)))
def test_a_score_reads_back_as_it_was_written(score: Score | Unknown) -> None:
    text = json.dumps(score_to_json(score))
    assert score_from_json("rubric", json.loads(text)) == score


def test_an_attempt_reads_back_with_its_scores_writes_and_agreement(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    written = record(id_, trace=Trace("posted"), agreement=Agreement(True, (entry(),)))
    outcomes: Sequence[GradeOutcome] = [
        Score("containsText", True, evidence=Evidence.CLAIMED),
        Unknown("Rubric", "say which tone"),
    ]
    with writer.write_sink(id_) as sink:
        sink(entry())
    writer.scores(id_, outcomes)
    writer.attempt(written)
    found = stored(writer)
    assert (found.id, found.locator, found.duration_ms) == (id_, written.locator, 12)
    assert found.ending == Trial()
    assert found.grading_error is None
    assert found.record.trace == Trace("posted")
    assert sorted(found.outcomes, key=lambda one: one.grader) == [outcomes[1], outcomes[0]]
    assert found.writes.entries == (entry(),)
    assert found.agreement == {
        "checked": True,
        "unreportedWrites": [
            {"server": "chat", "tool": "post_message", "arguments": {"channel": "#team"}}
        ],
        "unrecordedWrites": [],
        "unclassifiedCalls": 0,
    }


def test_a_grader_whose_score_is_missing_has_not_run(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    writer.scores(id_, [Score("writes", True)])
    writer.attempt(record(id_, graders=("writes", "Rubric: tone")))
    assert stored(writer).outcomes == (
        Score("writes", True),
        GraderFailure("Rubric: tone", NO_SCORE),
    )


def test_a_grading_error_leaves_the_trial_with_a_grader_that_could_not_run(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.attempt(record(attempt_id(0), grading_error="no key"))
    writer.attempt(record(attempt_id(1), grading_error="no key", graders=("rubric",)))
    assert stored(writer, 0).outcomes == (GraderFailure(UNNAMED_GRADER, "no key"),)
    assert stored(writer, 1).outcomes == (GraderFailure("rubric", "no key"),)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"format": "mst.run/v1", "ki',
        b"[]",
        b'{"kind": "score"}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_torn_or_foreign_file_is_told_and_the_rest_is_read(
    tmp_path: Path, content: bytes
) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of(trials=4))
    for trial in range(3):
        writer.attempt(record(attempt_id(trial)))
    path = writer.layout.trace(attempt_id(1))
    path.write_bytes(content)
    found = list(read_attempts(writer.layout, plan))
    assert [one.id.trial for one in found] == [0, 1, 2]
    assert [type(one) for one in found] == [StoredAttempt, UnreadableAttempt, StoredAttempt]
    torn = found[1]
    assert isinstance(torn, UnreadableAttempt)
    assert torn.path == str(path)
    assert torn.problem


def test_a_torn_score_is_a_grader_that_could_not_run(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    writer.attempt(record(id_, graders=("Rubric",)))
    writer.scores(id_, [Score("Rubric", True), Score("writes", True)])
    for name, content in (("Rubric", b'{"format"'), ("writes", b'{"grader": "writes"}')):
        writer.layout.score(name, id_).write_bytes(content)
    failures = stored(writer).outcomes
    assert all(isinstance(one, GraderFailure) for one in failures)
    assert {one.grader for one in failures} == {"Rubric", "writes"}


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    writer.layout.trace(id_).mkdir(parents=True)
    assert isinstance(read_attempt(writer.layout, id_), UnreadableAttempt)
    with pytest.raises(StoreError):
        read_document(writer.layout.trace(id_))


def test_a_write_record_that_cannot_be_opened_makes_its_attempt_unreadable(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    writer.attempt(record(id_))
    writer.layout.writes(id_).mkdir(parents=True)
    found = read_attempt(writer.layout, id_)
    assert isinstance(found, UnreadableAttempt)
    assert found.path == str(writer.layout.writes(id_))


def test_scores_and_a_journal_that_cannot_be_listed_or_opened_are_refused(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.attempt(record(attempt_id()))
    writer.layout.scores_dir.write_bytes(b"a file")
    with pytest.raises(StoreError) as raised:
        read_attempt(writer.layout, attempt_id())
    assert raised.value.path == str(writer.layout.scores_dir)
    writer.layout.journal.mkdir()
    with pytest.raises(StoreError) as refused:
        begun(writer.layout)
    assert refused.value.path == str(writer.layout.journal)


def test_a_torn_line_of_a_write_record_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    with writer.write_sink(id_) as sink:
        sink(entry(0))
        sink(entry(1))
    path = writer.layout.writes(id_)
    path.write_bytes(path.read_bytes()[:-20])
    found = read_writes(writer.layout, id_)
    assert found.entries == (entry(0),)
    assert [torn.line for torn in found.torn] == [2]


def test_records_end_at_a_line_feed_and_nowhere_else(tmp_path: Path) -> None:
    writer, id_ = writer_in(tmp_path), attempt_id()
    odd = entry(arguments={"text": "a\u0085b\u2028c\u000bd\u000ce\rf"})
    with writer.write_sink(id_) as sink:
        sink(odd)
        sink(entry(1))
    unescaped = writer.layout.writes(id_).read_bytes().replace(b"\\u2028", "\u2028".encode())
    writer.layout.writes(id_).write_bytes(unescaped)
    found = read_writes(writer.layout, id_)
    assert found.entries == (odd, entry(1))
    assert found.torn == ()


def test_files_of_others_beside_a_run_are_neither_read_nor_touched(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of())
    writer.attempt(record(attempt_id()))
    foreign = writer.layout.trace(attempt_id()).parent / "sub" / "other.jsonl"
    foreign.parent.mkdir()
    foreign.write_bytes(b"not ours")
    (writer.layout.run_dir / "scores").mkdir()
    (writer.layout.run_dir / "scores" / "README").write_bytes(b"not ours")
    assert [one.id for one in read_attempts(writer.layout, plan)] == [attempt_id()]
    assert stored(writer).outcomes == ()
    assert foreign.read_bytes() == b"not ours"


def test_what_was_never_stored_is_not_there(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    assert list(read_attempts(writer.layout, plan_of(case_of(trials=3)))) == []
    assert read_document(writer.layout.run_json) is None
    assert list(read_journal(writer.layout)) == []
    assert begun(writer.layout) == {}


def test_attempts_that_began_and_did_not_end_are_known(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    for trial in range(5):
        writer.begun(attempt_id(trial), f"@{trial}", worker="gw1", at=AT)
    writer.ended(attempt_id(0), "@0", Trial(), at=AT)
    writer.attempt(record(attempt_id(1)))
    writer.ended(attempt_id(2), "@2", LOST, at=AT)
    writer.begun(attempt_id(2), "@2", worker="gw2", at=AT)
    writer.close()
    under_way = begun(writer.layout)
    assert sorted(id_.trial for id_ in under_way) == [2, 3, 4]
    assert under_way[attempt_id(2)].worker == "gw2"
    assert under_way[attempt_id(3)] == JournalLine("begun", attempt_id(3), "@3", AT, "gw1")


def test_lines_of_the_journal_that_mean_nothing_are_told(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    writer.begun(attempt_id(), "@0")
    writer.close()
    journal = writer.layout.journal
    odd = b'\n{"kind": "moved"}\n[1]\n{"kind": "begun"}\n{"kind": "begun", "varia'
    journal.write_bytes(journal.read_bytes() + odd)
    lines = list(read_journal(writer.layout))
    assert isinstance(lines[0], JournalLine)
    assert [line.line for line in lines[1:] if isinstance(line, TornLine)] == [3, 4, 5, 6]
