"""One attempt as it is stored: its ending, its trace, and what it took."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.ending import (
    Broke,
    Ending,
    InfrastructureFailure,
    Trial,
    ending_from_json,
    ending_to_json,
)
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    integer_field,
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
    """The collection key: what could change what the client did, hashed."""
    trace: Trace | None = None
    agreement: Agreement | None = None
    grading_error: str | None = None
    """Why a trial's grader could not run."""
    tries: tuple[Try, ...] = ()
    graders: tuple[str, ...] = ()
    """The graders that are to score the trial; one whose score is missing has not run yet."""

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
        if error is not None:
            stored["error"] = error
        if self.grading_error is not None:
            stored["gradingError"] = self.grading_error
        if self.trace is not None:
            stored["trace"] = self.trace.to_json()
        if self.agreement is not None:
            stored["agreement"] = self.agreement.to_json()
        if self.tries:
            stored["tries"] = [
                {"at": one.at, "reason": one.reason, "waitMs": max(0, one.wait_ms)}
                for one in self.tries
            ]
        if self.graders:
            stored["graders"] = list(self.graders)
        return stored


def attempt_from_json(stored: Stored) -> AttemptRecord:
    """Read a stored trial file; fields that are not known are ignored.

    The agreement is not rebuilt: what was stored of it is the `agreement` object as it is.
    A record with no ending, of an older tool, gets the one that its `infrastructureError` says.

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
        ending=_ending(stored),
        key=text_field(stored, "key", ""),
        trace=None if trace is None else trace_from_json(trace),
        grading_error=optional_text_field(stored, "gradingError"),
        tries=tuple(
            Try(text_field(one, "at"), text_field(one, "reason"), integer_field(one, "waitMs"))
            for one in object_list_field(stored, "tries")
        ),
        graders=text_list_field(stored, "graders"),
    )


def _ending(stored: Stored) -> Ending:
    ending = optional_object_field(stored, "ending")
    if ending is not None:
        return ending_from_json(dict(ending))
    error = optional_text_field(stored, "error")
    if stored.get("infrastructureError") is True:
        reason = error or "an infrastructure failure, stored without its cause"
        return InfrastructureFailure(Broke.CLIENT_APP, reason, retryable=True)
    return Trial(client_error=error)


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
