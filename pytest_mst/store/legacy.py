"""Runs that older tools stored as `mst.run/v1`, without endings and without a plan.

What they leave out is worked out here, when they are read, and nowhere else. The format and the
kinds of failure are those of `mcp-server-tester` 2 (`src/evals/runFormat.ts`, and
`ExternalHostFailureKind` in the types of its external hosts). Nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from urllib.parse import unquote

from pytest_mst.domain.ending import (
    RETRYABLE_BY_DEFAULT,
    Broke,
    Ending,
    InfrastructureFailure,
    Trial,
    ending_to_json,
)
from pytest_mst.domain.loaded import DatasetInfo
from pytest_mst.domain.plan import PlannedCase, RunPlan, VariantInfo
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import is_share
from pytest_mst.domain.stored_field import (
    Stored,
    flag_field,
    integer_field,
    object_list_field,
    optional_object_field,
    optional_text_field,
    text_field,
)
from pytest_mst.store.json_file import Unreadable, read_object
from pytest_mst.store.layout import RunLayout

BROKE_BY_KIND: dict[str, Broke] = {
    "timeout": Broke.DEADLINE,
    "automation_permission_denied": Broke.SETUP,
    "unsupported_host": Broke.SETUP,
    "app_unavailable": Broke.CLIENT_APP,
    "submission_failed": Broke.CLIENT_APP,
    "no_matching_session": Broke.CLIENT_APP,
    "ambiguous_matching_sessions": Broke.CLIENT_APP,
    "parse_failure": Broke.CLIENT_APP,
    "host_run_failed": Broke.CLIENT_APP,
    "cleanup_failed": Broke.CLIENT_APP,
    "unknown": Broke.CLIENT_APP,
}
"""What each kind of failure says of what broke. Whether a retry can help follows from that."""

_KIND_HOLDERS = ("clientMetadata", "externalHost")
"""The objects of a stored trial that hold its `failureKind`; the second is the older name."""
_NO_REASON = "an infrastructure failure, stored without its cause"
_UNKNOWN_DATASET = ""
_LARGEST_TRIAL = 9999
"""A higher number is damage, and a plan up to it would never end."""


def legacy_ending(stored: Stored) -> Ending:
    """Return the ending of a stored trial that has none.

    A trial that no grader could score is a trial, whichever class it was recorded with; every
    other keeps its class.

    Raises:
        ValueError: a field has a wrong type.

    """
    error = optional_text_field(stored, "error")
    grading_error = optional_text_field(stored, "gradingError")
    kind = _failure_kind(stored)
    if grading_error is not None and kind is None:
        return Trial(client_error=None if error == grading_error else error)
    if not flag_field(stored, "infrastructureError", default=False):
        return Trial(client_error=error)
    broke = BROKE_BY_KIND.get(kind or "", Broke.CLIENT_APP)
    reason = error or (f"{_NO_REASON}: {kind}" if kind else _NO_REASON)
    return InfrastructureFailure(broke, reason, retryable=RETRYABLE_BY_DEFAULT[broke])


def is_legacy(trial: Stored) -> bool:
    """Tell whether a stored trial is of an older tool, which stored no endings."""
    return trial.get("ending") is None


def trial_as_current(stored: Stored, layout: RunLayout) -> Stored:
    """Return a stored trial of an older tool with the fields that it would have today.

    Args:
        stored: the content of its file.
        layout: the run; only its `results.json` tells of some trials that a grader failed.

    Raises:
        ValueError: a field has a wrong type.

    """
    if stored.get("infrastructureError") is True and stored.get("gradingError") is None:
        place = (stored.get("variant"), stored.get("caseId"), stored.get("trial"))
        stored = {**stored, "gradingError": _grading_errors(layout).get(place)}
    current = {**stored, "ending": ending_to_json(legacy_ending(stored))}
    trace = optional_object_field(stored, "trace")
    if trace is not None:
        current["trace"] = {
            **trace,
            "answer": trace.get("answer", trace.get("finalText")),
            # what a client did not declare was taken for unverified
            "evidence": trace.get("evidence", stored.get("traceEvidence", "observed")),
            "usage": trace.get("usage", stored.get("clientUsage")),
        }
    return current


def score_as_current(stored: Stored) -> Stored:
    """Return a stored score of an older tool with the fields that it would have today."""
    texts = (stored.get(name) for name in ("reason", "reasoning", "details", "error"))
    value = stored.get("value", stored.get("score"))
    details = stored.get("details")
    return {
        "pass": stored.get("pass"),
        "reason": next((text for text in texts if isinstance(text, str) and text), None),
        "value": value if is_share(value) else None,
        "details": details if isinstance(details, Mapping) else None,
    }


def legacy_plan(layout: RunLayout, run_json: Stored) -> RunPlan:
    """Return the plan of a run that was stored without one: what there is of it on disk.

    Args:
        layout: where the run is, as `legacy_layout` returns it.
        run_json: the content of its `run.json`.

    Raises:
        ValueError: a field of `run.json` is missing or has a wrong type.

    """
    variants = tuple(_variant(one) for one in object_list_field(run_json, "variants"))
    order = {variant.name: index for index, variant in enumerate(variants)}
    cases = sorted(_cases(layout), key=lambda case: order.get(case.variant, len(order)))
    known = {*order, *(case.variant for case in cases)}
    return RunPlan(
        run_id=text_field(run_json, "runId"),
        eval_name=text_field(run_json, "evalName"),
        config_id=text_field(run_json, "configId", ""),
        content_hash=text_field(run_json, "contentHash", ""),
        created_at=text_field(run_json, "createdAt", ""),
        cases=tuple(cases),
        partial=flag_field(run_json, "partial", default=False),
        selection=dict(optional_object_field(run_json, "selection") or {}),
        variants=(*variants, *(VariantInfo(one, "") for one in sorted(known - set(order)))),
        datasets=tuple(
            DatasetInfo(
                text_field(one, "name"),
                integer_field(one, "caseCount", 0),
                text_field(one, "contentHash", ""),
            )
            for one in object_list_field(run_json, "datasets")
        ),
        baseline=optional_text_field(run_json, "baseline"),
    )


def legacy_layout(layout: RunLayout) -> RunLayout:
    """Return the layout of a run with the places of its attempts, as they are found on disk.

    What a trace file says of itself counts; the names of folders, which older tools made in
    another way, are only where it is looked for. Links are not followed. A file that cannot be
    read is taken for the attempt that its place says.
    """
    places: dict[AttemptId, str] = {}
    for place in _trace_places(f"{layout.run_dir}/traces"):
        attempt = _attempt_in(layout, place)
        if attempt is not None:
            places.setdefault(attempt, place)
    return replace(layout, places=places)


def _variant(stored: Stored) -> VariantInfo:
    """Read a variant as far as it is needed; of its servers' writes nothing is known."""
    client, model = stored.get("client"), stored.get("model")
    return VariantInfo(
        name=text_field(stored, "name"),
        client=client if isinstance(client, str) else "",
        model=model if isinstance(model, str) else None,
    )


@dataclass(slots=True)
class _Case:
    """What is found of one case of one variant."""

    dataset: str = _UNKNOWN_DATASET
    trials: int = 0
    pass_threshold: float = 1.0


def _cases(layout: RunLayout) -> list[PlannedCase]:
    found: dict[tuple[str, str], _Case] = {}
    for result in _results(layout):
        variant, case = result.get("variant", "default"), result.get("id")
        if not isinstance(variant, str) or not isinstance(case, str):
            continue
        one = found.setdefault((variant, case), _Case())
        trials, request = result.get("trialResults"), result.get("request")
        one.trials = min(len(trials) or 1 if isinstance(trials, list) else 1, _LARGEST_TRIAL + 1)
        threshold = request.get("passThreshold") if isinstance(request, Mapping) else None
        if isinstance(threshold, int | float) and is_share(threshold):
            one.pass_threshold = float(threshold)
        if isinstance(result.get("datasetName"), str):
            one.dataset = str(result["datasetName"])
    for attempt in layout.places:
        one = found.setdefault((attempt.variant, attempt.case), _Case())
        one.trials = max(one.trials, attempt.trial + 1)
        if not one.dataset:
            stored = read_object(layout.trace_file(attempt))
            name = stored.get("datasetName") if isinstance(stored, Mapping) else None
            one.dataset = name if isinstance(name, str) else _UNKNOWN_DATASET
    return [
        PlannedCase(variant, case, one.dataset, one.trials, one.pass_threshold)
        for (variant, case), one in found.items()
    ]


def _results(layout: RunLayout) -> list[Mapping[str, object]]:
    """Return the cases of `results.json`, where it is there and is what it should be."""
    stored = read_object(layout.results_json)
    cases = stored.get("cases") if isinstance(stored, Mapping) else None
    return [one for one in cases if isinstance(one, dict)] if isinstance(cases, list) else []


@lru_cache(maxsize=4)
def _grading_errors(layout: RunLayout) -> Mapping[tuple[object, ...], str]:
    """Return what `results.json` says of graders that failed: by variant, case and trial."""
    errors: dict[tuple[object, ...], str] = {}
    for result in _results(layout):
        trials = result.get("trialResults")
        for number, trial in enumerate(trials if isinstance(trials, list) and trials else [result]):
            error = trial.get("gradingError") if isinstance(trial, Mapping) else None
            if isinstance(error, str):
                errors[str(result.get("variant", "default")), str(result.get("id")), number] = error
    return errors


def _attempt_in(layout: RunLayout, place: str) -> AttemptId | None:
    stored = read_object(f"{layout.run_dir}/traces/{place}.json")
    if stored is None:
        return None
    variant, case, number = place.split("/")
    if isinstance(stored, Unreadable):
        if not (number.isascii() and number.isdigit() and len(number) <= len(str(_LARGEST_TRIAL))):
            return None
        return AttemptId(unquote(variant), unquote(case), int(number))
    if stored.get("kind") != "trial" or stored.get("runId", layout.run_id) != layout.run_id:
        return None  # of something else, or of another run
    try:
        attempt = AttemptId(
            variant=text_field(stored, "variant"),
            case=text_field(stored, "caseId"),
            trial=integer_field(stored, "trial"),
        )
    except ValueError:
        return None
    return attempt if 0 <= attempt.trial <= _LARGEST_TRIAL else None


def _trace_places(root: str) -> Iterator[str]:
    """Yield `<variant>/<case>/<n>` for each trace file of a run, in the order of their names."""
    for variant in _names(root, folders=True):
        for case in _names(f"{root}/{variant}", folders=True):
            files = _names(f"{root}/{variant}/{case}", folders=False)
            stems = [name.removesuffix(".json") for name in files if name.endswith(".json")]
            for stem in sorted(stems, key=lambda stem: (len(stem), stem)):
                yield f"{variant}/{case}/{stem}"


def _names(folder: str, *, folders: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.name
                for entry in entries
                if (entry.is_dir if folders else entry.is_file)(follow_symlinks=False)
            )
    except OSError:
        return []  # not there, not a folder, or closed to us: nothing is found in it


def _failure_kind(stored: Stored) -> str | None:
    for name in _KIND_HOLDERS:
        holder = stored.get(name)
        kind = holder.get("failureKind") if isinstance(holder, Mapping) else None
        if isinstance(kind, str):
            return kind
    return None
