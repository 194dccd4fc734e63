"""The end of a run: every stored file kind, held against what readers of `mst.run/v1` require."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.attempt import Try
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.plan import PlannedCase, RunPlan, plan_from_json
from pytest_mst.domain.resumption import Resumption, Step
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Ledger, Unknown
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteTarget
from pytest_mst.report.attempts import AttemptRow, disk_rows
from pytest_mst.report.documents import Circumstances, Phases, run_document
from pytest_mst.report.finish import finish_run
from pytest_mst.report.summary import RunSummary
from pytest_mst.store.append import RunWriter
from pytest_mst.store.redact import FORMAT_WORDS, SHORTEST_SECRET_CHARS
from tests.report.rows import FAIL, PASS, REQUESTED, failed, summarise
from tests.store.records import (
    AT,
    LOST,
    RUN_ID,
    attempt_id,
    case_of,
    entry,
    plan_of,
    record,
    writer_in,
)

LATER = "2026-11-30T09:50:00.000Z"
CIRCUMSTANCES = Circumstances("0.1.0")
TEXT, NUMBER, FLAG, LIST, OBJECT = str, int | float, bool, list, dict
REQUIRED: dict[str, dict[str, Any]] = {
    "latest": {"runId": TEXT, "createdAt": TEXT, "path": TEXT},
    "run": {
        "runId": TEXT,
        "evalName": TEXT,
        "configId": TEXT,
        "contentHash": TEXT,
        "createdAt": TEXT,
        "finishedAt": TEXT,
        "mst": {"version": TEXT},
        "variants": [{"name": TEXT, "servers": LIST, "client": TEXT}],
        "datasets": [{"name": TEXT, "caseCount": NUMBER, "contentHash": TEXT}],
        "judges": LIST,
        "partial": FLAG,
        "selection": OBJECT,
        "redactStoredResponses": FLAG,
        "environment": OBJECT,
        "phases": {"collect": TEXT, "grade": TEXT},
    },
    "trial": {
        "runId": TEXT,
        "variant": TEXT,
        "caseId": TEXT,
        "datasetName": TEXT,
        "trial": NUMBER,
        "durationMs": NUMBER,
        "infrastructureError": FLAG,
        "locator": TEXT,
        "startedAt": TEXT,
        "ending": OBJECT,
        "key": TEXT,
    },
    "score": {
        "runId": TEXT,
        "grader": TEXT,
        "variant": TEXT,
        "caseId": TEXT,
        "trial": NUMBER,
        "score": {"pass": FLAG},
    },
    "results": {
        "runId": TEXT,
        "cases": [
            {
                "id": TEXT,
                "pass": FLAG,
                "incomplete": FLAG,
                "variant": TEXT,
                "verdict": TEXT,
                "reasons": LIST,
                "writeCase": FLAG,
                "unguarded": FLAG,
                "trials": [
                    {
                        "trial": NUMBER,
                        "locator": TEXT,
                        "scores": OBJECT,
                        "unreportedWrites": LIST,
                        "unrecordedWrites": LIST,
                        "unclassifiedCalls": NUMBER,
                    }
                ],
            }
        ],
    },
    "summary": {
        "runId": TEXT,
        "configId": TEXT,
        "contentHash": TEXT,
        "timestamp": TEXT,
        "configName": TEXT,
        "ledger": dict.fromkeys(
            ["planned", "graded", "ungraded", "infrastructure", "unstarted"], NUMBER
        ),
        "cases": dict.fromkeys(["passed", "failed", "incomplete", "skipped"], NUMBER),
        "variants": [
            {
                "name": TEXT,
                "ledger": OBJECT,
                "cases": OBJECT,
                "unclassifiedCalls": NUMBER,
                "unguarded": FLAG,
                "metrics": LIST,
            }
        ],
        "metrics": LIST,
    },
}
JOURNAL_LINE = {"variant": TEXT, "caseId": TEXT, "trial": NUMBER, "locator": TEXT, "at": TEXT}
WRITE_LINE = {
    "format": TEXT,
    "seq": NUMBER,
    "callSeq": NUMBER,
    "time": TEXT,
    "server": TEXT,
    "tool": TEXT,
    "arguments": OBJECT,
    "reply": OBJECT,
    "mode": TEXT,
}


def check(stored: Any, required: Any, where: str) -> None:
    match required:
        case dict():
            assert isinstance(stored, dict), where
            for name, inside in required.items():
                assert name in stored, f"{where}.{name}"
                check(stored[name], inside, f"{where}.{name}")
        case list():
            assert isinstance(stored, list), where
            assert stored, where
            for number, item in enumerate(stored):
                check(item, required[0], f"{where}[{number}]")
        case _:
            assert isinstance(stored, required), where
            assert required is bool or not isinstance(stored, bool), where


def finish(
    writer: RunWriter, plan: RunPlan, reported: Mapping[Any, AttemptRow] | None = None
) -> RunSummary:
    return finish_run(
        plan, writer, circumstances=CIRCUMSTANCES, finished_at=LATER, reported=reported
    )


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def store_one_of_everything(writer: RunWriter, plan: RunPlan) -> RunSummary:
    """Store a passed, a failed and an ungraded trial, one lost, and one that never began."""
    call = TraceEvent("post_message", server="chat", arguments={"channel": "#team"}, id="c1")
    trace = Trace("posted", [call], ["chat"], usage={"inputTokens": 3})
    by_target = entry(
        target=WriteTarget("send", {"to": "all"}, "chat"),
        refused="unknown-tool",
        unclassified=True,
        join_id="c1",
    )
    writer.run_json(run_document(plan, CIRCUMSTANCES))
    graded: list[list[GradeOutcome]] = [[REQUESTED], [FAIL], [PASS, GraderFailure("judge", "no")]]
    for trial, outcomes in enumerate(graded):
        id_ = attempt_id(trial)
        writer.begun(id_, "@abc", at=AT)
        with writer.write_sink(id_) as sink:
            sink(by_target)
        stored = record(
            id_,
            Trial(client_error="crashed" if trial == 1 else None, stopped_by="turns"),
            trace=trace,
            agreement=Agreement(True, (by_target,), (call,), 1),
            grading_error="judge: no" if trial == 2 else None,
            tries=(Try(AT, "429", 2000),),
            graders=("writes",),
        )
        writer.attempt(stored)
        writer.scores(id_, outcomes)
        writer.ended(id_, "@abc", stored.ending, at=AT)
    writer.scores(attempt_id(2), [Unknown("tone", "say which")])
    writer.attempt(record(attempt_id(3), LOST))
    return finish(writer, plan)


@pytest.fixture
def stored_run(tmp_path: Path) -> tuple[RunWriter, RunPlan]:
    writer = writer_in(tmp_path)
    cases: tuple[PlannedCase, ...] = (
        case_of(trials=5, write_case=True),
        case_of("skipped", skip="later"),
    )
    plan = plan_of(*cases, baseline="default", selection={"trials": 5})
    store_one_of_everything(writer, plan)
    writer.latest(
        {"format": "mst.run/v1", "kind": "latest", "runId": "r", "createdAt": AT, "path": "p"}
    )
    writer.close()
    return writer, plan


def test_every_stored_file_has_what_its_readers_require(
    stored_run: tuple[RunWriter, RunPlan],
) -> None:
    writer, _ = stored_run
    kinds = set()
    for path in writer.layout.eval_dir.rglob("*.json"):
        stored = read(path)
        assert list(stored)[:2] == ["format", "kind"], path
        assert stored["format"] == "mst.run/v1"
        check(stored, REQUIRED[stored["kind"]], path.name)
        kinds.add(stored["kind"])
    assert kinds == set(REQUIRED)


def test_every_stored_line_has_what_its_readers_require(
    stored_run: tuple[RunWriter, RunPlan],
) -> None:
    writer, _ = stored_run
    lines = [json.loads(line) for line in writer.layout.journal.read_bytes().splitlines()]
    assert {line["kind"] for line in lines} == {"begun", "ended"}
    for line in lines:
        assert list(line)[:2] == ["format", "kind"]
        check(line, JOURNAL_LINE, "journal")
    (line,) = writer.layout.writes(attempt_id()).read_bytes().splitlines()
    check(json.loads(line), WRITE_LINE, "write")
    assert json.loads(line)["format"] == "mst.write/v1"


def test_times_are_utc_and_durations_are_not_negative(
    stored_run: tuple[RunWriter, RunPlan],
) -> None:
    writer, _ = stored_run
    run = read(writer.layout.run_json)
    trial = read(writer.layout.trace(attempt_id()))
    times = [run["createdAt"], run["finishedAt"], trial["startedAt"], trial["tries"][0]["at"]]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", time) for time in times)
    assert trial["trial"] == 0
    assert trial["durationMs"] >= 0


def test_the_words_of_the_format_are_known_so_that_no_secret_can_break_it(
    stored_run: tuple[RunWriter, RunPlan],
) -> None:
    writer, _ = stored_run
    long_names: set[str] = set()

    def look(stored: Any) -> None:
        if isinstance(stored, dict):
            long_names.update(name for name in stored if len(name) >= SHORTEST_SECRET_CHARS)
            for name, inside in stored.items():
                if name not in ("environment", "usage", "arguments", "scores"):
                    look(inside)
        elif isinstance(stored, list):
            for inside in stored:
                look(inside)

    for path in writer.layout.eval_dir.rglob("*.json"):
        look(read(path))
    assert {"infrastructureError", "unreportedWrites", "graderFailures"} <= long_names
    assert long_names <= set(FORMAT_WORDS.split())


def test_the_plan_can_be_read_back_from_a_run(stored_run: tuple[RunWriter, RunPlan]) -> None:
    writer, plan = stored_run
    assert plan_from_json(read(writer.layout.run_json)) == plan


def test_results_tell_every_trial_and_its_verdict(stored_run: tuple[RunWriter, RunPlan]) -> None:
    writer, _ = stored_run
    results = read(writer.layout.results_json)
    assert results["skipped"] == [{"id": "skipped", "variant": "default", "reason": "later"}]
    (case,) = results["cases"]
    assert (case["pass"], case["incomplete"], case["verdict"]) == (False, True, "incomplete")
    assert case["passRate"] is None
    assert case["writeCase"] is True
    trials = case["trials"]
    assert [one["trial"] for one in trials] == [0, 1, 2, 3, 4]
    assert [one["verdict"] for one in trials] == ["passed", "failed", "ungraded", None, None]
    assert [one["ending"] and one["ending"]["kind"] for one in trials] == [
        "trial",
        "trial",
        "trial",
        "infrastructure",
        None,
    ]
    assert trials[0]["scores"] == {"writes": {"pass": True, "evidence": "requested"}}
    assert trials[2]["scores"]["tone"] == {"pass": False, "unknown": True, "reason": "say which"}
    assert trials[2]["graderFailures"] == {"writes": "judge: no"}
    assert trials[0]["unreportedWrites"] == [
        {
            "server": "chat",
            "tool": "send",
            "arguments": {"to": "all"},
            "via": {"server": "chat", "tool": "post_message"},
        }
    ]
    assert trials[0]["unclassifiedCalls"] == 1
    assert [one["evidence"] for one in trials] == ["requested", None, None, None, None]
    assert read(writer.layout.summary_json)["ledger"] == {
        "planned": 5,
        "graded": 2,
        "ungraded": 1,
        "infrastructure": 1,
        "unstarted": 1,
    }


def test_pass_is_true_of_a_passed_case_only(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    plan = plan_of(case_of("a"), case_of("b"), case_of("c"), case_of("d"))
    for case, outcomes in (("a", [PASS]), ("b", [FAIL]), ("c", [])):
        writer.attempt(record(attempt_id(0, case)))
        writer.scores(attempt_id(0, case), outcomes)
    summary = finish(writer, plan)
    cases = read(writer.layout.results_json)["cases"]
    assert [case["pass"] for case in cases] == [True, False, False, False]
    assert [case["passRate"] for case in cases] == [1, 0, None, None]
    assert summary.figures.pass_rate == 0.5
    assert read(writer.layout.summary_json)["passRate"] == 0.5


def test_what_is_on_disk_gives_the_same_figures_as_the_rows(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of(trials=5, write_case=True))
    summary = store_one_of_everything(writer, plan)
    rows = [row for _, found in disk_rows(plan, writer.layout) for row in found]
    assert summarise(plan, reversed(rows)) == summary


def test_latest_names_a_full_run_by_its_path_from_there(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of())
    writer.attempt(record(attempt_id(), LOST))
    finish(writer, plan)
    latest = read(writer.layout.latest_json)
    assert latest["runId"] == RUN_ID
    assert (writer.layout.latest_json.parent / latest["path"]) == writer.layout.run_dir


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "deleted since"])
def test_an_older_run_that_is_finished_later_is_not_the_latest_while_a_newer_one_is_there(
    tmp_path: Path, *, is_there: bool
) -> None:
    newer = RunWriter(replace(writer_in(tmp_path).layout, run_id="20271130T094500Z-0badc0"))
    newest = plan_of(case_of(), run_id=newer.layout.run_id, created_at="2027-11-30T09:45:00.000Z")
    older = writer_in(tmp_path)
    taken_up = Resumption("2027-12-01T00:00:00.000Z", "resume", {})
    again = replace(plan_of(case_of()), resumptions=(taken_up,))
    for writer, plan in ((newer, newest), (older, again)):
        writer.attempt(record(attempt_id()))
        finish(writer, plan)
        if not is_there:
            shutil.rmtree(newer.layout.run_dir, ignore_errors=True)
    latest = newer if is_there else older
    assert read(older.layout.latest_json)["runId"] == latest.layout.run_id


@pytest.mark.parametrize("plan", [plan_of(case_of(), partial=True), plan_of(case_of(trials=2))])
def test_a_partial_or_unfinished_run_never_becomes_the_latest(
    tmp_path: Path, plan: RunPlan
) -> None:
    writer = writer_in(tmp_path)
    writer.latest({"runId": "the full one"})
    writer.attempt(record(attempt_id()))
    finish(writer, plan)
    assert read(writer.layout.latest_json) == {"runId": "the full one"}
    assert read(writer.layout.run_json)["finishedAt"] == LATER


def test_a_run_that_cannot_be_saved_is_not_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of())
    writer.attempt(record(attempt_id()))
    writer.layout.summary_json.mkdir()
    with pytest.raises(StoreError) as raised:
        finish(writer, plan)
    assert raised.value.path == str(writer.layout.summary_json)
    assert not writer.layout.latest_json.exists()


def test_nothing_graded_still_has_its_documents(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of(trials=2))
    for trial in range(2):
        writer.attempt(record(attempt_id(trial), LOST))
    finish(writer, plan)
    summary = read(writer.layout.summary_json)
    assert summary["passRate"] is None
    assert summary["variants"][0]["trialPassRate"] is None
    assert read(writer.layout.run_json)["phases"] == {"collect": "complete", "grade": "skipped"}
    assert len(read(writer.layout.results_json)["cases"]) == 1


def test_an_attempt_that_was_cut_short_is_infrastructure_and_its_writes_are_unreported(
    tmp_path: Path,
) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of(trials=3))
    for trial in range(2):
        writer.begun(attempt_id(trial), "@abc", worker="gw1")
    with writer.write_sink(attempt_id(0)) as sink:
        sink(entry())
    writer.layout.trace(attempt_id(1)).parent.mkdir(parents=True)
    writer.layout.trace(attempt_id(1)).write_bytes(b'{"format": "mst.run')
    writer.close()
    summary = finish(writer, plan)
    assert summary.figures.ledger == Ledger(infrastructure=2, unstarted=1)
    reasons = [reason.detail for reason in summary.cases[0].reasons]
    assert reasons[0] == "collection: began in process gw1 and did not end"
    assert str(writer.layout.trace(attempt_id(1))) in reasons[1]
    assert summary.cases[0].write_case
    assert [finding.kind for finding in summary.findings] == ["unreported"]


def test_an_attempt_cut_short_whose_writes_cannot_be_read_has_still_written(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of())
    writer.begun(attempt_id(), "@abc")
    writer.close()
    writer.layout.writes(attempt_id()).mkdir(parents=True)
    summary = finish(writer, plan)
    assert summary.figures.ledger == Ledger(infrastructure=1)
    assert summary.cases[0].write_case


def test_what_was_reported_counts_where_nothing_is_on_disk(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of(trials=2))
    writer.attempt(record(attempt_id(0)))
    writer.scores(attempt_id(0), [PASS])
    reported = {attempt_id(trial): failed(trial) for trial in range(2)}
    summary = finish(writer, plan, reported)
    assert summary.figures.ledger == Ledger(graded=2)
    assert summary.cases[0].passed_trials == 1


def test_a_torn_line_of_the_write_record_leaves_the_trial_ungraded(tmp_path: Path) -> None:
    writer, plan = writer_in(tmp_path), plan_of(case_of())
    writer.attempt(record(attempt_id()))
    writer.scores(attempt_id(), [PASS])
    with writer.write_sink(attempt_id()) as sink:
        sink(entry())
    writes = writer.layout.writes(attempt_id())
    writes.write_bytes(writes.read_bytes()[:-5])
    summary = finish(writer, plan)
    assert summary.figures.ledger == Ledger(ungraded=1)
    assert "line 1" in summary.cases[0].reasons[0].detail


def test_a_run_under_way_has_no_end_and_partial_phases() -> None:
    document = run_document(plan_of(case_of()), CIRCUMSTANCES)
    assert document["finishedAt"] is None
    assert document["phases"] == {"collect": "partial", "grade": "partial"}
    taken_up = Resumption(AT, "resume", {Step.KEEP: 1})
    resumed = run_document(
        replace(plan_of(), resumptions=(taken_up,)), Circumstances("0.1.0"), phases=Phases()
    )
    assert resumed["resumedAt"] == [AT]
    assert plan_from_json(resumed).resumptions[0].counts[Step.KEEP] == 1
