"""The figures of runs that older tools stored."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.domain.score import CaseVerdict, Ledger
from pytest_mst.report.finish import read_run
from pytest_mst.report.summary import RunSummary
from pytest_mst.report.terminal import closing_lines
from pytest_mst.store.find import run_in
from pytest_mst.store.stored_run import open_run
from tests.store.old_runs import CLIENT_METADATA, OldRun

PASS: dict[str, dict[str, object]] = {"answer": {"pass": True}}
FAIL: dict[str, dict[str, object]] = {"answer": {"pass": False, "details": "not what was asked"}}


def summary_of(old: OldRun) -> RunSummary:
    run = open_run(run_in(old.folder))
    return read_run(run.plan, run.layout)


@pytest.mark.parametrize("failed", [True, False])
def test_an_old_ungraded_trial_is_ungraded_and_no_infrastructure_failure(
    tmp_path: Path, failed: bool
) -> None:
    old = OldRun(tmp_path)
    old.trial(0, scores=PASS)
    old.trial(1, failed=failed, gradingError="judge: no model")
    summary = summary_of(old)
    assert summary.figures.ledger == Ledger(graded=1, ungraded=1)
    [row] = summary.cases
    assert row.verdict is CaseVerdict.INCOMPLETE
    assert [reason.remedy.value for reason in row.reasons] == ["grade"]


def test_every_class_has_its_place_in_the_ledger(tmp_path: Path) -> None:
    old = OldRun(tmp_path, variants=[{"name": "default"}])
    old.trial(0, case="passed", scores=PASS)
    old.trial(0, case="failed", scores=FAIL)
    old.trial(0, case="errored", error="the client gave up", scores=FAIL)
    old.trial(0, case="broken", failed=True, error="429")
    refused = {**CLIENT_METADATA, "failureKind": "automation_permission_denied"}
    old.trial(0, case="refused", failed=True, error="no", clientMetadata=refused)
    old.trial(0, case="ungraded", failed=True, gradingError="judge: gone")
    old.trial(0, case="torn").write_text("{")
    old.results({"id": "lost", "variant": "default", "datasetName": "cases", "pass": False})
    summary = summary_of(old)
    assert summary.figures.ledger == Ledger(graded=3, ungraded=1, infrastructure=3, unstarted=1)
    assert summary.figures.pass_rate == pytest.approx(1 / 3)
    remedies = {
        row.planned.case: row.reasons[0].remedy.value for row in summary.cases if row.reasons
    }
    assert remedies == {
        "failed": "nothing",
        "errored": "nothing",
        "broken": "collect",
        "refused": "fix",
        "ungraded": "grade",
        "torn": "collect",
        "lost": "collect",
    }


def test_the_closing_block_of_an_old_run_adds_up_and_offers_no_resume(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    old.trial(0, scores=PASS)
    old.trial(1, failed=True, error="gone")
    lines = closing_lines(summary_of(old), "here", can_resume=False)
    assert "planned 2 = graded 1 + ungraded 0 + infrastructure 1 + unstarted 0" in lines
    assert not any("--mst-resume" in line for line in lines)


def test_a_run_with_nothing_in_it_has_no_rate(tmp_path: Path) -> None:
    summary = summary_of(OldRun(tmp_path))
    assert summary.figures.ledger == Ledger()
    assert summary.figures.pass_rate is None


def test_a_threshold_that_was_stored_decides_as_it_did(tmp_path: Path) -> None:
    old = OldRun(tmp_path)
    for trial, scores in enumerate((PASS, FAIL)):
        old.trial(trial, scores=scores)
    old.results(
        {
            "id": "find-page",
            "variant": "default",
            "pass": True,
            "request": {"passThreshold": 0.5},
            "trialResults": [{}, {}],
        }
    )
    assert [row.verdict for row in summary_of(old).cases] == [CaseVerdict.PASSED]
