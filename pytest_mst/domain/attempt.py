"""One attempt as it is stored: its ending, its trace, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.ending import (
    Ending,
    InfrastructureFailure,
    ending_from_json,
    ending_to_json,
)
from pytest_mst.domain.outcome import OutcomeReading, outcome_reading_from_json
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.score import GraderFailure
from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    integer_field,
    object_field,
    object_list_field,
    optional_object_field,
    optional_text_field,
    text_field,
    text_list_field,
)
from pytest_mst.domain.trace import EventKind, Trace, TraceEvent, TraceEvidence


@dataclass(frozen=True, slots=True)
class Try:
    """One more try inside an attempt, and the wait before it."""

    at: str
    """ISO 8601, UTC."""
    reason: str
    wait_ms: int
    next_try: int | None = None
    """Which try it was before, 1-based; before the first one waits for what others were told."""

    def to_json(self) -> dict[str, object]:
        """Write the try as stored trials hold it."""
        stored: dict[str, object] = {
            "at": self.at,
            "reason": self.reason,
            "waitMs": max(0, self.wait_ms),
        }
        return stored if self.next_try is None else stored | {"nextTry": self.next_try}


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt, ended."""

    id: AttemptId
    dataset: str
    locator: str
    started_at: str
    """ISO 8601, UTC."""
    duration_ms: int
    """Measured by a clock that does not jump; waits between tries left out. Never below 0."""
    ending: Ending
    key: str
    """The collection key: what could change what the client did, hashed; see `Identity`."""
    key_parts: Mapping[str, str] = field(default_factory=dict)
    """The hashes that the key is made of, by part."""
    grading_key: str = ""
    """Of what its scores were given by; empty where it was not graded."""
    tools_key: str = ""
    """Of the tools that its servers listed."""
    trace: Trace | None = None
    agreement: Agreement | None = None
    grading_error: str | None = None
    """Why a trial's grader could not run."""
    grader_failures: tuple[GraderFailure, ...] = ()
    """The same, grader by grader; empty where a record does not tell them apart."""
    tries: tuple[Try, ...] = ()
    graders: tuple[str, ...] = ()
    """The graders that are to score the trial; one whose score is missing has not run yet."""
    trial_id: str = ""
    """What `{{trial.id}}` stood for; empty where a record does not say."""
    outcome: tuple[OutcomeReading, ...] = ()
    """Of a live trial: what the reads for its outcome checks brought."""
    cleanup_error: str | None = None
    """Of a live attempt: why something that it wrote may still be there."""

    def to_json(self, run_id: str) -> dict[str, object]:
        """Write the record as a stored trial file holds it."""
        failure = self.ending if isinstance(self.ending, InfrastructureFailure) else None
        error = failure.reason if failure else getattr(self.ending, "client_error", None)
        stored: dict[str, object] = {
            "format": "mst.run/v1",
            "kind": "trial",
            "runId": run_id,
            "variant": self.id.variant,
            "caseId": self.id.case,
            "datasetName": self.dataset,
            "trial": self.id.trial,
            "durationMs": max(0, self.duration_ms),
            "infrastructureError": failure is not None,
            "locator": self.locator,
            "startedAt": self.started_at,
            "ending": ending_to_json(self.ending),
            "key": self.key,
        }
        optional: dict[str, object] = {
            "error": error,
            "gradingError": self.grading_error,
            "graderFailures": {one.grader: _failure_to_json(one) for one in self.grader_failures}
            or None,
            "trace": None if self.trace is None else self.trace.to_json(),
            "agreement": None if self.agreement is None else self.agreement.to_json(),
            "tries": [one.to_json() for one in self.tries] or None,
            "keyParts": dict(self.key_parts) or None,
            "gradingKey": self.grading_key or None,
            "toolsKey": self.tools_key or None,
            "graders": list(self.graders) or None,
            "trialId": self.trial_id or None,
            "outcome": [one.to_json() for one in self.outcome] or None,
            "cleanupError": self.cleanup_error,
        }
        stored.update({name: value for name, value in optional.items() if value is not None})
        return stored


def attempt_from_json(stored: Stored) -> AttemptRecord:
    """Read a stored trial file; fields that are not known are ignored.

    The agreement is not rebuilt: what was stored of it is the `agreement` object as it is.
    A record of an older tool has no ending: `store.legacy` gives it one first.

    Raises:
        ValueError: the object is not a stored trial, or one of its fields has a wrong type.

    """
    if stored.get("kind") != "trial":
        raise StoredFieldError(name="kind", found=stored.get("kind"), expected="'trial'")
    trace = optional_object_field(stored, "trace")
    return AttemptRecord(
        id=AttemptId(
            variant=text_field(stored, "variant"),
            case=text_field(stored, "caseId"),
            trial=integer_field(stored, "trial"),
        ),
        dataset=text_field(stored, "datasetName"),
        locator=text_field(stored, "locator", ""),
        started_at=text_field(stored, "startedAt", ""),
        duration_ms=max(0, integer_field(stored, "durationMs")),
        ending=ending_from_json(dict(object_field(stored, "ending"))),
        key=text_field(stored, "key", ""),
        key_parts=dict(optional_object_field(stored, "keyParts") or {}),
        grading_key=text_field(stored, "gradingKey", ""),
        tools_key=text_field(stored, "toolsKey", ""),
        trace=None if trace is None else trace_from_json(trace),
        grading_error=optional_text_field(stored, "gradingError"),
        grader_failures=_grader_failures(optional_object_field(stored, "graderFailures") or {}),
        tries=tuple(_try(one) for one in object_list_field(stored, "tries")),
        graders=text_list_field(stored, "graders"),
        trial_id=text_field(stored, "trialId", ""),
        outcome=tuple(map(outcome_reading_from_json, object_list_field(stored, "outcome"))),
        cleanup_error=optional_text_field(stored, "cleanupError"),
    )


def _failure_to_json(failure: GraderFailure) -> dict[str, object]:
    return {"reason": failure.reason, "retryable": failure.retryable}


def _grader_failures(stored: Stored) -> tuple[GraderFailure, ...]:
    failures = []
    for grader in stored:
        one = object_field(stored, grader)
        reason = text_field(one, "reason", "")
        failures.append(GraderFailure(grader, reason, one.get("retryable") is not False))
    return tuple(failures)


def _try(stored: Stored) -> Try:
    return Try(
        at=text_field(stored, "at"),
        reason=text_field(stored, "reason"),
        wait_ms=integer_field(stored, "waitMs"),
        next_try=None if "nextTry" not in stored else integer_field(stored, "nextTry"),
    )


def trace_from_json(stored: Stored) -> Trace:
    """Read a stored trace.

    Raises:
        ValueError: a field has a wrong type, or a value outside its closed set.

    """
    return Trace(
        answer=optional_text_field(stored, "answer"),
        events=tuple(_event(one) for one in object_list_field(stored, "events")),
        servers=text_list_field(stored, "servers"),
        evidence=_evidence(stored.get("evidence", "structured")),
        usage=optional_object_field(stored, "usage"),
        outside=text_list_field(stored, "builtinTools"),
        recovered=tuple(object_list_field(stored, "recoveredErrors")),
        notes=text_list_field(stored, "notes"),
    )


def _event(stored: Stored) -> TraceEvent:
    is_error = stored.get("isError")
    return TraceEvent(
        name=text_field(stored, "name"),
        kind=_event_kind(stored.get("kind")),
        source="builtin" if stored.get("source") == "builtin" else "mcp",
        server=optional_text_field(stored, "server"),
        arguments=optional_object_field(stored, "arguments"),
        output=stored.get("output"),
        is_error=is_error if isinstance(is_error, bool) else None,
        id=optional_text_field(stored, "id"),
    )


def _evidence(value: object) -> TraceEvidence:
    match value:
        case "structured" | "observed" | "none":
            return value
        case _:
            raise StoredFieldError(
                name="evidence", found=value, expected="structured, observed or none"
            )


def _event_kind(value: object) -> EventKind:
    match value:
        case "tool_call" | "skill" | "command" | "subagent" | "tool_search":
            return value
        case _:
            valid = "tool_call, skill, command, subagent or tool_search"
            raise StoredFieldError(name="kind", found=value, expected=valid)
