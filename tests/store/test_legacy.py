"""Runs that older tools stored: every kind of failure, every class, and their plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Trial
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import GraderFailure, Score
from pytest_mst.store.find import run_in
from pytest_mst.store.legacy import BROKE_BY_KIND, legacy_ending
from pytest_mst.store.read import StoredAttempt, UnreadableAttempt, read_attempt
from pytest_mst.store.stored_run import StoredRun, open_run
from tests.store.old_runs import CLIENT_METADATA, OLD_RUN_ID, OldRun
from tests.store.records import read_attempts

PASSED = {"answer": {"pass": True, "details": "found the page", "score": 0.9}}


def opened(old: OldRun) -> StoredRun:
    return open_run(run_in(old.folder))


def only(old: OldRun) -> StoredAttempt:
    run = opened(old)
    [attempt] = read_attempts(run.layout, run.plan)
    assert isinstance(attempt, StoredAttempt)
    return attempt


@pytest.mark.parametrize(
    ("kind", "broke", "retryable"),
    [
        ("timeout", Broke.DEADLINE, True),
        ("automation_permission_denied", Broke.SETUP, False),
        ("unsupported_host", Broke.SETUP, False),
        ("app_unavailable", Broke.CLIENT_APP, True),
        ("submission_failed", Broke.CLIENT_APP, True),
        ("no_matching_session", Broke.CLIENT_APP, True),
        ("ambiguous_matching_sessions", Broke.CLIENT_APP, True),
        ("parse_failure", Broke.CLIENT_APP, True),
        ("host_run_failed", Broke.CLIENT_APP, True),
        ("cleanup_failed", Broke.CLIENT_APP, True),
        ("unknown", Broke.CLIENT_APP, True),
        ("of_a_later_version", Broke.CLIENT_APP, True),
        (None, Broke.CLIENT_APP, True),
    ],
)
@pytest.mark.parametrize("holder", ["clientMetadata", "externalHost"])
def test_a_stored_kind_of_failure_says_what_broke(
    tmp_path: Path, kind: str | None, broke: Broke, retryable: bool, holder: str
) -> None:
    old = OldRun(tmp_path)
    metadata = {**CLIENT_METADATA, **({} if kind is None else {"failureKind": kind})}
    more: dict[str, Any] = {holder: metadata}
    old.trial(failed=True, error="it went wrong", **more)
    assert only(old).ending == InfrastructureFailure(broke, "it went wrong", retryable)


def test_every_kind_of_the_table_is_tried_above() -> None:
    tried = test_a_stored_kind_of_failure_says_what_broke.pytestmark  # type: ignore[attr-defined]  # pytest puts it there
    kinds = {row[0] for mark in tried for row in mark.args[1] if isinstance(row, tuple)}
    assert set(BROKE_BY_KIND) <= kinds


def test_a_failure_without_metadata_and_without_words_is_a_retryable_one_of_the_client() -> None:
    ending = legacy_ending({"infrastructureError": True})
    assert isinstance(ending, InfrastructureFailure)
    assert (ending.broke, ending.retryable) == (Broke.CLIENT_APP, True)
    assert "stored without its cause" in ending.reason


@pytest.mark.parametrize(
    "words", ["429 rate limit", "maximum turns reached", "network", "context length exceeded"]
)
def test_the_words_of_a_stored_error_change_nothing(words: str) -> None:
    failed = legacy_ending({"infrastructureError": True, "error": words})
    assert failed == InfrastructureFailure(Broke.CLIENT_APP, words, retryable=True)
    assert legacy_ending({"infrastructureError": False, "error": words}) == Trial(words)


@pytest.mark.parametrize("failed", [True, False])
def test_a_trial_that_no_grader_could_score_is_an_ungraded_trial(
    tmp_path: Path, failed: bool
) -> None:
    old = OldRun(tmp_path)
    old.trial(failed=failed, gradingError="judge: the judge's model is gone")
    attempt = only(old)
    assert attempt.ending == Trial()
    [outcome] = attempt.outcomes
    assert isinstance(outcome, GraderFailure)
    assert outcome.reason == "judge: the judge's model is gone"


def test_a_grader_s_failure_is_found_also_where_only_the_results_tell_of_it(
    tmp_path: Path,
) -> None:
    old = OldRun(tmp_path)
    for trial in (0, 1):
        old.trial(trial, case="twice", failed=True)
    old.trial(case="once", failed=True)
    gone = {"gradingError": "judge: gone"}
    old.results(
        {"id": "twice", "variant": "default", "pass": False, "trialResults": [{}, gone]},
        {"id": "once", "pass": False, **gone},
    )
    run = opened(old)
    read = read_attempts(run.layout, run.plan)
    endings = {one.id: one.ending for one in read if isinstance(one, StoredAttempt)}
    assert endings[AttemptId("default", "twice", 1)] == endings[AttemptId("default", "once", 0)]
    assert endings[AttemptId("default", "once", 0)] == Trial()
    assert isinstance(endings[AttemptId("default", "twice", 0)], InfrastructureFailure)


def test_a_failed_attempt_stays_one_where_a_grader_failed_too(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    metadata = {**CLIENT_METADATA, "failureKind": "app_unavailable"}
    old.trial(failed=True, error="not there", gradingError="judge: x", clientMetadata=metadata)
    assert isinstance(only(old).ending, InfrastructureFailure)


def test_a_stored_trial_reads_with_its_answer_its_scores_and_a_locator(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    event = {"kind": "tool_call", "source": "mcp", "server": "docs", "name": "search"}
    trace = {"finalText": "Here it is.", "events": [event], "usage": {"inputTokens": 3}}
    old.trial(trace=trace, scores=PASSED)
    attempt = only(old)
    assert attempt.ending == Trial()
    assert attempt.outcomes == (Score("answer", True, value=0.9, reason="found the page"),)
    assert attempt.locator == locator(OLD_RUN_ID, AttemptId("default", "find-page", 0))
    assert attempt.record.trace is not None
    assert attempt.record.trace.answer == "Here it is."
    assert attempt.record.trace.usage == {"inputTokens": 3}
    assert attempt.record.trace.tool_calls[0].server == "docs"


def test_a_redacted_trace_has_no_answer(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(trace={"events": []}, traceEvidence="structured", scores=PASSED)
    trace = only(old).record.trace
    assert trace is not None
    assert (trace.answer, trace.evidence) == (None, "structured")


@pytest.mark.parametrize("value", [7, -1, True, "0.5", None])
def test_what_is_no_share_is_no_value_of_a_score(tmp_path: Path, value: object) -> None:
    old = OldRun(tmp_path)
    old.trial(scores={"answer": {"pass": False, "score": value}})
    assert only(old).outcomes == (Score("answer", False),)


def test_the_plan_is_what_there_is_on_disk_in_the_order_of_the_variants(tmp_path: Path) -> None:
    old = OldRun(tmp_path, variants=[{"name": "terse", "servers": ["docs"]}, {"name": "base"}])
    for variant in ("base", "terse"):
        for trial in (0, 1):
            old.trial(trial, variant=variant, scores=PASSED)
    plan = opened(old).plan
    assert [(case.variant, case.case, case.trials) for case in plan.cases] == [
        ("terse", "find-page", 2),
        ("base", "find-page", 2),
    ]
    assert [variant.name for variant in plan.variants] == ["terse", "base"]
    assert plan.cases[0].dataset == "cases"


@pytest.mark.parametrize(
    "variant",
    [
        {"name": "default"},
        {"name": "default", "servers": ["docs"], "client": None, "model": {"id": "m"}},
        {"name": "default", "servers": [{"label": "docs", "command": "node"}], "client": "mst"},
        {"name": "default", "servers": {"docs": {}}},
    ],
)
def test_variants_without_our_fields_are_read(tmp_path: Path, variant: dict[str, Any]) -> None:
    old = OldRun(tmp_path, variants=[variant])
    old.trial(scores=PASSED)
    assert [one.name for one in opened(old).plan.variants] == ["default"]


def test_names_that_were_encoded_for_folders_are_read_from_the_files(tmp_path: Path) -> None:
    old = OldRun(tmp_path, "Team Chat")
    ids = [AttemptId("Ünïted", case, 0) for case in ("a/b", "a b", "Über", "x" * 300, "..", "con")]
    for number, id_ in enumerate(ids):
        old.trial(case=id_.case, variant=id_.variant, place=f"v/c{number}/7", scores=PASSED)
    run = opened(old)
    read = list(read_attempts(run.layout, run.plan))
    assert {one.id for one in read} == set(ids)
    assert all(isinstance(one, StoredAttempt) and one.outcomes for one in read)


def test_results_say_how_many_trials_were_planned_and_how_many_must_pass(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(0, scores=PASSED)
    old.results(
        {
            "id": "find-page",
            "variant": "default",
            "datasetName": "cases",
            "pass": True,
            "request": {"trials": 3, "passThreshold": 0.5},
            "trialResults": [{}, {}, {}],
        },
        {"id": "gone", "pass": False, "datasetName": "others"},
    )
    plan = opened(old).plan
    assert [(case.case, case.trials, case.pass_threshold) for case in plan.cases] == [
        ("find-page", 3, 0.5),
        ("gone", 1, 1.0),
    ]


def test_files_of_others_and_links_are_not_taken_for_trials(tmp_path: Path) -> None:
    elsewhere = OldRun(tmp_path / "elsewhere")
    elsewhere.trial(case="linked", scores=PASSED)
    old = OldRun(tmp_path)
    old.trial(scores=PASSED)
    old.trial(case="of-another-run", runId="20261007T182504Z-000000")
    old.trial(case="negative", trial=-1)
    old.trial(case="endless", trial=10**9)
    old.write("traces/notes.txt", "mine")
    old.write("traces/default/find-page/notes.txt", "mine")
    old.write("traces/default/find-page/list.json", "[]")
    old.write("traces/default/find-page/score.json", {"format": "mst.run/v1", "kind": "score"})
    (old.folder / "traces/default/linked").symlink_to(
        elsewhere.folder / "traces/default/linked", target_is_directory=True
    )
    assert list(opened(old).plan.attempts) == [AttemptId("default", "find-page", 0)]


def test_a_damaged_trial_is_an_attempt_whose_file_cannot_be_read(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(0, scores=PASSED)
    old.trial(1).write_text('{"format": "mst.run/v1", "kind')
    run = opened(old)
    _, damaged = read_attempts(run.layout, run.plan)
    assert isinstance(damaged, UnreadableAttempt)
    assert damaged.id == AttemptId("default", "find-page", 1)


@pytest.mark.parametrize("format_", ["mst.run/v2", "mst.run/v0", "", None, 1])
def test_a_run_of_another_format_is_told_and_never_read_as_ours(
    tmp_path: Path, format_: object
) -> None:
    old = OldRun(tmp_path, format=format_)
    old.trial(scores=PASSED)
    with pytest.raises(StoreError) as raised:
        opened(old)
    assert "'mst.run/v1'" in raised.value.problem
    assert raised.value.path.endswith("run.json")


def test_a_trial_or_a_score_of_another_format_is_told_too(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(0, format="mst.run/v2")
    old.trial(1)
    old.write("scores/answer/default/find-page/1.json", {"format": "mst.run/v2"})
    run = opened(old)
    attempts = [AttemptId("default", "find-page", trial) for trial in (0, 1)]
    trial, graded = (read_attempt(run.layout, attempt) for attempt in attempts)
    assert isinstance(trial, UnreadableAttempt)
    assert "mst.run/v2" in trial.problem
    assert isinstance(graded, StoredAttempt)
    [outcome] = graded.outcomes
    assert isinstance(outcome, GraderFailure)
    assert "mst.run/v2" in outcome.reason


def test_reading_writes_nothing(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(0, scores=PASSED)
    old.trial(1, failed=True)
    before = old.everything()
    run = opened(old)
    assert len(list(read_attempts(run.layout, run.plan))) == 2
    assert old.everything() == before
