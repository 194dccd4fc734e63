"""What `show` prints, as one JSON document with everything uncut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import assert_never

from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import ending_to_json
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.report.attempt_view import AttemptView, Stored
from pytest_mst.report.documents import summary_document
from pytest_mst.report.summary import RunSummary
from pytest_mst.store.encode import plain
from pytest_mst.store.layout import RUN_FORMAT
from pytest_mst.store.read import StoredAttempt, UnreadableAttempt, WriteRecord
from pytest_mst.store.scores import score_to_json
from pytest_mst.store.stored_run import StoredRun


def attempt_document(view: AttemptView) -> dict[str, object]:
    """Return everything there is of an attempt."""
    plan = view.run.plan
    return {
        "format": RUN_FORMAT,
        "kind": "attempt",
        "locator": view.locator,
        "runId": plan.run_id,
        "evalName": plan.eval_name,
        "path": str(view.run.layout.run_dir),
        "alsoIn": [str(folder) for folder in view.also_in],
        "variant": view.id.variant,
        "caseId": view.id.case,
        "trial": view.id.trial,
        "state": _state(view),
        **({} if view.stored is None else _stored(view.stored)),
        "writes": _writes(view.writes),
        "serverLogs": [
            {"server": log.label, "path": str(log.path), "lines": list(log.lines)}
            for log in view.logs
        ],
        "superseded": [{"stamp": go.stamp, **_stored(go.stored)} for go in view.earlier],
        "stops": [stop.to_json() for stop in view.stops],
        "problems": list(view.problems),
    }


def run_view_document(run: StoredRun, summary: RunSummary, timestamp: str) -> dict[str, object]:
    """Return the figures of a run, and of each of its cases.

    Args:
        run: the run.
        summary: its figures.
        timestamp: when they were worked out: ISO 8601, UTC.

    """
    return {
        **summary_document(summary, timestamp=timestamp),
        "path": str(run.layout.run_dir),
        "createdAt": run.plan.created_at,
        "olderTool": run.legacy,
        "stops": [stop.to_json() for stop in summary.stops],
        "caseRows": [
            {
                "id": row.planned.case,
                "variant": row.planned.variant,
                "verdict": None if row.verdict is None else row.verdict.value,
                "skip": row.planned.skip,
                "ledger": row.ledger.to_json(),
                "passRate": row.pass_rate,
                "evidence": None if row.evidence is None else row.evidence.label,
                "reasons": [
                    {"text": reason.text, "locator": reason.locator, "remedy": reason.remedy.value}
                    for reason in row.reasons
                ],
            }
            for row in summary.cases
        ],
    }


def document_text(document: Mapping[str, object]) -> str:
    """Write a document in ASCII, with nothing in it that a terminal obeys."""
    text = json.dumps(plain(document), indent=2, ensure_ascii=True, allow_nan=False)
    return text.replace("\x7f", "\\u007f")  # the one control character that JSON lets stand


def _state(view: AttemptView) -> str:
    match view.stored:
        case None:
            return "unstarted" if view.began is None else "under way"
        case UnreadableAttempt():
            return "unreadable"
        case StoredAttempt() as stored:
            return stored.ending.kind
        case _:
            assert_never(view.stored)


def _stored(stored: Stored) -> dict[str, object]:
    match stored:
        case UnreadableAttempt():
            return {"unreadable": {"path": stored.path, "problem": stored.problem}}
        case StoredAttempt():
            verdict = stored.graded.verdict
            return {
                **_record(stored.record),
                "verdict": None if verdict is None else verdict.value,
                "scores": [_score(outcome) for outcome in stored.outcomes],
                "agreement": stored.agreement,
            }
        case _:
            assert_never(stored)


def _record(record: AttemptRecord) -> dict[str, object]:
    return {
        "datasetName": record.dataset,
        "startedAt": record.started_at,
        "durationMs": record.duration_ms,
        "ending": ending_to_json(record.ending),
        "gradingError": record.grading_error,
        "tries": [one.to_json() for one in record.tries],
        "trialId": record.trial_id or None,
        "outcome": [one.to_json() for one in record.outcome],
        "cleanupError": record.cleanup_error,
        "trace": None if record.trace is None else record.trace.to_json(),
    }


def _writes(record: WriteRecord) -> list[dict[str, object]]:
    return [
        *(entry.to_json() for entry in record.entries),
        *({"line": torn.line, "problem": torn.problem} for torn in record.torn),
    ]


def _score(outcome: GradeOutcome) -> dict[str, object]:
    match outcome:
        case Score() | Unknown():
            return {"grader": outcome.grader, **score_to_json(outcome)}
        case GraderFailure():
            return {"grader": outcome.grader, "couldNotGrade": outcome.reason}
        case _:
            assert_never(outcome)
