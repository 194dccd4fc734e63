"""Everything that is stored of one attempt, as it is shown."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.attempt import AttemptRecord, Try
from pytest_mst.domain.ending import Broke, InfrastructureFailure, Trial
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry, WriteTarget
from pytest_mst.report.attempt_view import AttemptView, attempt_view
from pytest_mst.report.documents import Circumstances, run_document
from pytest_mst.report.show import attempt_lines
from pytest_mst.report.show_document import attempt_document, document_text
from pytest_mst.report.text import shown
from pytest_mst.store.append import RunWriter
from pytest_mst.store.find import FoundAttempt
from pytest_mst.store.read import StoredAttempt, WriteRecord
from pytest_mst.store.stored_run import StoredRun, open_run
from pytest_mst.store.supersede import supersede_attempt, supersede_grades
from tests.store.records import (
    AT,
    LOST,
    attempt_id,
    case_of,
    entries,
    entry,
    layout_in,
    plan_of,
    record,
    records,
    writer_in,
)

ID = attempt_id(0, "a")
NASTY = "\x1b[2J\u202eevil\x07\ud83d"


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    """A run of two attempts, planned."""
    writer = writer_in(tmp_path)
    writer.run_json(run_document(plan_of(case_of("a", trials=2)), Circumstances("1")))
    return writer


def store(
    writer: RunWriter,
    attempt: AttemptRecord,
    *outcomes: GradeOutcome,
    writes: tuple[WriteEntry, ...] = (),
) -> None:
    with writer.write_sink(attempt.id) as sink:
        for one in writes:
            sink(one)
    writer.scores(attempt.id, outcomes)
    writer.attempt(attempt)


def view_of(writer: RunWriter, id_: AttemptId = ID) -> AttemptView:
    return attempt_view([FoundAttempt(open_run(writer.layout), id_)])


def text_of(writer: RunWriter, id_: AttemptId = ID) -> str:
    return "\n".join(attempt_lines(view_of(writer, id_), "here"))


def document_of(writer: RunWriter, id_: AttemptId = ID) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(document_text(attempt_document(view_of(writer, id_))))
    return document


REPLY = {"content": [{"type": "text", "text": "noted"}]}


def store_a_trial(writer: RunWriter) -> None:
    """Store a trial with something in each of its parts."""
    made = TraceEvent("run_tool", server="chat", arguments={"x": 1}, output="ok", is_error=False)
    read = TraceEvent("Read", source="builtin", arguments={"path": "a"}, is_error=True)
    target = WriteTarget("post_message", {"channel": "#team"})
    writes = (
        entry(0, tool="run_tool", target=target, reply=REPLY),
        entry(1, refused="unknown-tool"),
        entry(2, unclassified=True),
    )
    trial = record(
        ID,
        Trial("it gave up", "turns"),
        trace=Trace("I posted it.\nTwice.", [made, read], ["chat"], usage={"inputTokens": 12}),
        agreement=Agreement(True, unreported=writes[1:2], unrecorded=(made,), unclassified=1),
        duration_ms=1500,
        graders=("writes", "tone", "rubric"),
    )
    wrong = "no match\nnearest: #b"
    score = Score("writes", False, 0.5, Evidence.REQUESTED, wrong, {"missing": 1})
    store(writer, trial, score, Unknown("tone", "say which tone is right"), writes=writes)


def test_a_trial_is_shown_with_its_trace_its_writes_its_scores_and_what_is_left_over(
    writer: RunWriter,
) -> None:
    store_a_trial(writer)
    lines = [line.strip() for line in text_of(writer).split("\n")]
    assert lines == [
        f"{view_of(writer).locator} case a [default] trial 0",
        "eval team-chat",
        f"run {writer.layout.run_id} in here",
        f"dataset cases, started {AT}, took 1.5 s",
        "ending: trial",
        "the client errored:",
        "it gave up",
        "the client ran out of its own limit: turns",
        "verdict: failed, evidence requested",
        "trace: structured, servers: chat",
        '0. chat.run_tool {"x":1}',
        '-> "ok"',
        '1. tool_call Read (builtin) {"path":"a"}',
        "-> error: null",
        "answer:",
        "I posted it.",
        "Twice.",
        'usage: {"inputTokens":12}',
        "write record:",
        f'0. {AT} planned chat.run_tool {{"channel":"#team"}}',
        'target: post_message {"channel":"#team"}',
        f"reply: {json.dumps(REPLY, separators=(',', ':'))}",
        f'1. {AT} planned chat.post_message {{"channel":"#team"}}',
        "refused: unknown-tool",
        'reply: {"content":[]}',
        f'2. {AT} planned chat.post_message {{"channel":"#team"}}',
        "unclassified: it was forwarded and may have written",
        'reply: {"content":[]}',
        "scores:",
        "tone cannot tell: say which tone is right",
        "writes failed (requested), value 0.5:",
        "no match",
        "nearest: #b",
        'details: {"missing":1}',
        "rubric could not grade: its score is not stored",
        "agreement:",
        'unreported write: chat.run_tool -> post_message {"channel":"#team"}',
        'unrecorded write: chat.run_tool {"x":1}',
        "unclassified calls: 1",
        "server stderr: none",
    ]


def test_a_failure_is_shown_with_its_tries_and_its_own_diagnostics(writer: RunWriter) -> None:
    failure = InfrastructureFailure(
        Broke.PROVIDER, "retries exhausted", retryable=True, accepted=False, detail="line 1\nline 2"
    )
    tries = (Try(AT, "rate_limit", 2000), Try(AT, "rate_limit", 4500, next_try=3))
    store(writer, record(ID, failure, tries=tries))
    text = text_of(writer)
    assert (
        "ending: infrastructure failure: provider (a retry can help)\n  retries exhausted" in text
    )
    assert "reaches: trial; the client took the input: no" in text
    assert "turn retry 3/4 (rate_limit) — waiting 4.5s" in text
    assert "detail:\n  line 1\n  line 2" in text
    assert "verdict" not in text
    document = document_of(writer)
    assert document["state"] == "infrastructure"
    assert document["ending"]["detail"] == "line 1\nline 2"
    assert document["tries"][1] == {"at": AT, "reason": "rate_limit", "waitMs": 4500, "nextTry": 3}
    assert "nextTry" not in document["tries"][0]


def test_a_server_s_last_words_are_shown(writer: RunWriter) -> None:
    store(writer, record(ID))
    log = writer.layout.server_log("default", "chat")
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    [tail] = view_of(writer).logs
    assert (tail.label, tail.lines) == (
        "chat",
        tuple(f"line {number}" for number in range(80, 100)),
    )
    assert "  line 80\n" in text_of(writer)
    assert "line 79" not in text_of(writer)
    assert document_of(writer)["serverLogs"][0]["lines"][-1] == "line 99"


def test_earlier_attempts_that_were_replaced_are_shown_oldest_first(writer: RunWriter) -> None:
    store(writer, record(ID), Score("a", True))
    for stamp, reason in (("20261201t000000z", "second"), ("20261130t000000z", "first")):
        store(writer, record(ID, replace(LOST, reason=reason), started_at=reason))
        supersede_attempt(writer.layout, ID, stamp)
    store(writer, record(ID), Score("a", True))
    earlier = view_of(writer).earlier
    assert [one.stamp for one in earlier] == ["20261130t000000z", "20261201t000000z"]
    text = text_of(writer)
    assert text.index("first") < text.index("second")
    endings = [one["ending"]["reason"] for one in document_of(writer)["superseded"]]
    assert endings == ["first", "second"]


def test_a_trial_that_was_only_graded_again_has_no_earlier_go(writer: RunWriter) -> None:
    store(writer, record(ID), Score("a", False, reason="as it was graded first"))
    supersede_grades(writer.layout, ID, "20261130t000000z")
    store(writer, record(ID), Score("a", True))
    assert view_of(writer).earlier == ()
    assert document_of(writer)["superseded"] == []


def test_a_trial_that_was_graded_again_and_then_replaced_is_one_earlier_go(
    writer: RunWriter,
) -> None:
    store(writer, record(ID, started_at="1"), Score("a", False, reason="as it was first"))
    supersede_grades(writer.layout, ID, "20261130t000000z")
    store(writer, record(ID, started_at="1"), Score("a", False, reason="as it was last"))
    supersede_attempt(writer.layout, ID, "20261201t000000z")
    store(writer, record(ID, started_at="2"), Score("a", True))
    [go] = view_of(writer).earlier
    assert go.stamp == "20261201t000000z"
    text = text_of(writer)
    assert "a failed: as it was last" in text
    assert "as it was first" not in text


def test_a_planned_attempt_that_never_began_says_so(writer: RunWriter) -> None:
    other = attempt_id(1, "a")
    assert "never began (unstarted)" in text_of(writer, other)
    assert document_of(writer, other)["state"] == "unstarted"


def test_an_attempt_that_began_and_has_not_ended_says_where(writer: RunWriter) -> None:
    writer.begun(ID, "@x", worker="gw1", at=AT)
    assert f"it began {AT} in process gw1 and has not ended" in text_of(writer)
    assert document_of(writer)["state"] == "under way"


def test_text_from_outside_is_shown_and_never_obeyed(writer: RunWriter) -> None:
    event = TraceEvent(NASTY, server=NASTY, arguments={NASTY: NASTY}, output=NASTY, id=NASTY)
    failure = InfrastructureFailure(Broke.SETUP, NASTY, retryable=False, detail=NASTY)
    writes = (entry(0, server=NASTY, tool=NASTY, arguments={NASTY: NASTY}, reply=NASTY),)
    trace = Trace(NASTY, [event], [NASTY], usage={NASTY: NASTY})
    for ending in (Trial(NASTY), failure):
        store(
            writer,
            record(ID, ending, trace=trace, dataset=NASTY, tries=(Try(NASTY, NASTY, 1),)),
            Score(NASTY, False, reason=NASTY, details={NASTY: NASTY}),
            Unknown("u", NASTY),
            writes=writes,
        )
        for text in (text_of(writer), document_text(attempt_document(view_of(writer)))):
            assert all(line.isprintable() for line in text.split("\n"))
            assert "evil" in text


def test_long_values_are_cut_in_lines_and_whole_in_the_document(writer: RunWriter) -> None:
    long = "x" * 100_000
    event = TraceEvent("t", server="chat", arguments={"a": long}, output=long)
    trace = Trace(f"{long}\n" * 500, [event])
    store(writer, record(ID, trace=trace), Score("a", True, reason=long))
    lines = text_of(writer).split("\n")
    assert max(map(len, lines)) < 5000
    assert len(lines) < 200
    assert "  ... and 401 more lines" in lines
    assert document_of(writer)["trace"]["events"][0]["output"] == long


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "mst.run/v2"}', "\0\x1b[2J"])
def test_damaged_files_are_told(writer: RunWriter, content: str) -> None:
    store(writer, record(ID), Score("a", True), writes=(entry(),))
    layout = writer.layout
    layout.score("a", ID).write_text(content)
    with layout.writes(ID).open("a") as file:
        file.write('{"torn')
    assert "a could not grade" in text_of(writer)
    assert "line 2 cannot be read, and was a write" in text_of(writer)
    layout.trace(ID).write_text(content)
    layout.journal.write_text(content)
    text = text_of(writer)
    assert "its file cannot be read" in text
    assert all(line.isprintable() for line in text.split("\n"))
    assert document_of(writer)["unreadable"]["path"] == str(layout.trace(ID))


def test_folders_in_the_place_of_files_and_files_in_that_of_folders_are_told(
    writer: RunWriter,
) -> None:
    layout = writer.layout
    for path in (layout.trace(ID), layout.writes(ID), layout.journal, layout.stops):
        path.mkdir(parents=True)
    layout.scores_dir.write_text("")
    log = layout.server_log("default", "chat")
    log.parent.mkdir(parents=True)
    os.mkfifo(log)
    assert "cannot be read" in text_of(writer)
    assert document_of(writer)["problems"]


def test_a_file_of_another_attempt_is_not_taken_for_this_one(writer: RunWriter) -> None:
    store(writer, record(attempt_id(1, "a")))
    path = writer.layout.trace(ID)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(writer.layout.trace(attempt_id(1, "a")).read_bytes())
    assert "is of another attempt" in text_of(writer)


@given(records, entries)
def test_any_record_can_be_shown(attempt: AttemptRecord, write: WriteEntry) -> None:
    run = StoredRun(layout_in(Path("nowhere")), plan_of(), {}, legacy=False)
    outcomes: tuple[GradeOutcome, ...] = (Score("a", True), GraderFailure("b", "c"))
    stored = StoredAttempt(attempt, outcomes, {"unreportedWrites": [1, {"tool": NASTY}]})
    view = AttemptView(run, attempt.id, stored, writes=WriteRecord((write,)))
    lines = attempt_lines(view, "here")
    assert all(line == shown(line, 10_000) for line in lines)
    text = document_text(attempt_document(view))
    assert text.isascii()
    assert json.loads(text)["caseId"] == attempt.id.case
