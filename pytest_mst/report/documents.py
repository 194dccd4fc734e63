"""The documents of a run: `run.json`, `results.json`, `summary.json` and `latest.json`."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, TypeAlias

from pytest_mst.domain.ending import ending_to_json
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.plan import RunPlan
from pytest_mst.domain.score import CaseVerdict, GraderFailure
from pytest_mst.domain.stop import Stop
from pytest_mst.report.attempts import AttemptRow, Call
from pytest_mst.report.score_details import details_of
from pytest_mst.report.summary import CaseRow, Figures, RunSummary, VariantRow
from pytest_mst.store.layout import RUN_FORMAT, RunLayout
from pytest_mst.store.scores import by_grader, score_to_json

Phase: TypeAlias = Literal["complete", "partial", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Phases:
    """How far a run has come."""

    collect: Phase = "partial"
    """Whether every planned attempt has an ending."""
    grade: Phase = "partial"
    """Whether every trial is graded."""

    @classmethod
    def of(cls, summary: RunSummary) -> Phases:
        """Tell from a run's ledger."""
        ledger = summary.figures.ledger
        trials = ledger.graded + ledger.ungraded
        return cls(
            collect="partial" if ledger.unstarted else "complete",
            grade="partial" if ledger.ungraded else "complete" if trials else "skipped",
        )

    def to_json(self) -> dict[str, str]:
        """Write the phases as stored runs hold them."""
        return {"collect": self.collect, "grade": self.grade}


def environment() -> dict[str, object]:
    """Name the interpreter and the system, and nothing that tells one machine from another."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
    }


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a run was made with, beyond its plan."""

    version: str
    """Of this package."""
    environment: Mapping[str, object] = field(default_factory=environment)
    redact_stored_responses: bool = False


def run_document(
    plan: RunPlan,
    circumstances: Circumstances,
    *,
    phases: Phases = Phases(),
    finished_at: str | None = None,
    stops: Sequence[Stop] = (),
) -> dict[str, object]:
    """Return the content of `run.json`.

    Args:
        plan: what was planned; it can be read back with `plan_from_json`.
        circumstances: what the run is made with.
        phases: how far it has come.
        finished_at: ISO 8601, UTC; `None` while the run is under way, and for ever where it was
            killed.
        stops: why attempts were not begun.

    """
    document: dict[str, object] = {
        "format": RUN_FORMAT,
        "kind": "run",
        **plan.to_json(),
        "finishedAt": finished_at,
        "mst": {"version": circumstances.version},
        "redactStoredResponses": circumstances.redact_stored_responses,
        "environment": dict(circumstances.environment),
        "phases": phases.to_json(),
    }
    if stops:
        document["stops"] = [stop.to_json() for stop in stops]
    return document


def results_head(
    plan: RunPlan, unattributed: Mapping[str, Sequence[Call]] = MappingProxyType({})
) -> dict[str, object]:
    """Return the fields of `results.json` other than its cases.

    Skipped cases are named here: they are outside the ledger, and no reader may take one for a
    case that did not pass. So are the writes that are no attempt's.

    Args:
        plan: the run's plan.
        unattributed: writes over connections that attempts shared, by variant.

    """
    return {
        "format": RUN_FORMAT,
        "kind": "results",
        "runId": plan.run_id,
        "skipped": [
            {"id": case.case, "variant": case.variant, "reason": case.skip}
            for case in plan.cases
            if case.skip is not None
        ],
        "unattributedWrites": {
            variant: [call.to_json() for call in calls]
            for variant, calls in unattributed.items()
            if calls
        },
    }


def case_document(row: CaseRow, attempts: Sequence[AttemptRow]) -> dict[str, object]:
    """Return one item of the `cases` of `results.json`: a case that was not skipped.

    Args:
        row: the case's figures.
        attempts: one for each planned trial, with everything that is known of it.

    """
    return {
        "id": row.planned.case,
        "pass": row.verdict is CaseVerdict.PASSED,
        "incomplete": row.verdict is CaseVerdict.INCOMPLETE,
        "variant": row.planned.variant,
        "verdict": None if row.verdict is None else row.verdict.value,
        "reasons": [reason.text for reason in row.reasons],
        "passRate": row.pass_rate,
        "evidence": _label(row.evidence),
        "writeCase": row.write_case,
        "unguarded": row.unguarded,
        "trials": [_trial(attempt) for attempt in attempts],
    }


def summary_document(
    summary: RunSummary,
    *,
    timestamp: str,
    metrics: Sequence[Mapping[str, object]] = (),
) -> dict[str, object]:
    """Return the content of `summary.json`.

    Args:
        summary: the run's figures.
        timestamp: when they were worked out: ISO 8601, UTC.
        metrics: what the eval's own metrics came to.

    """
    plan = summary.plan
    document: dict[str, object] = {
        "format": RUN_FORMAT,
        "kind": "summary",
        "runId": plan.run_id,
        "configId": plan.config_id,
        "contentHash": plan.content_hash,
        "timestamp": timestamp,
        "configName": plan.eval_name,
        **_figures(summary.figures),
        "partial": plan.partial,
        "replaced": dict(summary.replaced),
        "variants": [_variant(variant) for variant in summary.variants],
        "metrics": list(metrics),
    }
    if summary.owed:
        document["owedCleanups"] = [one.to_json() for one in summary.owed]
    return document


def latest_document(plan: RunPlan, layout: RunLayout) -> dict[str, object]:
    """Return the content of `latest.json`, with the run's path from the folder it is in."""
    return {
        "format": RUN_FORMAT,
        "kind": "latest",
        "runId": plan.run_id,
        "createdAt": plan.created_at,
        "path": layout.run_dir.relative_to(layout.eval_dir).as_posix(),
    }


def _variant(variant: VariantRow) -> dict[str, object]:
    return {
        "name": variant.name,
        **_figures(variant.figures),
        "unguarded": variant.unguarded,
        "live": list(variant.live),
        "unattributedWrites": [call.to_json() for call in variant.unattributed],
        "metrics": [],
    }


def _figures(figures: Figures) -> dict[str, object]:
    return {
        "ledger": figures.ledger.to_json(),
        "cases": figures.cases.to_json(),
        "passRate": figures.pass_rate,
        "trialPassRate": figures.trial_pass_rate,
        "evidence": _label(figures.evidence),
        "unclassifiedCalls": figures.unclassified_calls,
        "unparsedCalls": figures.unparsed_calls,
        **figures.spending.to_json(),
    }


def _trial(attempt: AttemptRow) -> dict[str, object]:
    verdict = attempt.verdict
    trial: dict[str, object] = {
        "trial": attempt.id.trial,
        "locator": attempt.locator,
        "ending": None if attempt.ending is None else ending_to_json(attempt.ending),
        "verdict": None if verdict is None else verdict.value,
        "evidence": _label(attempt.graded.evidence),
        "scores": {
            grader: score_to_json(replace(score, details=details_of(score)))
            for grader, score in by_grader(attempt.outcomes).items()
        },
        "unreportedWrites": [call.to_json() for call in attempt.unreported],
        "unrecordedWrites": [call.to_json() for call in attempt.unrecorded],
        "unclassifiedCalls": attempt.unclassified_calls,
        "unparsedCalls": len(attempt.unparsed),
        "agreementChecked": attempt.compared,
    }
    failures = {
        outcome.grader: outcome.reason
        for outcome in attempt.outcomes
        if isinstance(outcome, GraderFailure)
    }
    if failures:
        trial["graderFailures"] = failures
    if attempt.replaced:
        trial["replaced"] = [ending_to_json(ending) for ending in attempt.replaced]
    return trial


def _label(evidence: Evidence | None) -> str | None:
    return None if evidence is None else evidence.label
