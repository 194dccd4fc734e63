"""One attempt as it is stored: its ending, its trace, and what it took."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.ending import Ending, InfrastructureFailure, ending_to_json
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.trace import Trace


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
    """Measured by a clock that does not jump; waits between tries left out."""
    ending: Ending
    key: str
    """The collection key: what could change what the client did, hashed."""
    trace: Trace | None = None
    agreement: Agreement | None = None
    grading_error: str | None = None
    """Why a trial's grader could not run."""
    tries: tuple[Try, ...] = ()

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
            "durationMs": self.duration_ms,
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
                {"at": one.at, "reason": one.reason, "waitMs": one.wait_ms} for one in self.tries
            ]
        return stored
