"""How Codex says that an attempt ended: by its final record, and the type of its error."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mst.clients.codex_rollout import Rollout, TypedError
from pytest_mst.clients.codex_transcript import Transcript
from pytest_mst.clients.program.account import DOES_NOT_FIT
from pytest_mst.clients.program.decide import Said
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.providers.failure import FailureKind, ProviderFailure, kind_of_status

_KINDS: Mapping[str, FailureKind] = {
    "bad_request": FailureKind.REJECTED,
    "internal_server_error": FailureKind.SERVER_ERROR,
    "server_overloaded": FailureKind.OVERLOADED,
    "unauthorized": FailureKind.AUTH,
    "usage_limit_exceeded": FailureKind.QUOTA,
}
"""The names of its errors that say what they are."""
_BY_STATUS = frozenset(
    {
        "http_connection_failed",
        "response_stream_connection_failed",
        "response_stream_disconnected",
        "response_too_many_failed_attempts",
    }
)
"""Those that leave it to the HTTP status; without one, an answer never came or broke off."""
_CONTEXT = "context_window_exceeded"
_SUCCESS = range(200, 300)
_NOTES: Mapping[str | None, str] = {
    "content_filter": "the model refused to go on",
    "max_output_tokens": "the answer was cut off at the model's output limit",
}
"""Why the Responses API says that an answer is not complete: what that means for people."""


def said_by(
    transcript: Transcript,
    rollout: Rollout,
    *,
    label: str,
    model: str,
    finish: str | None = None,
) -> Said | None:
    """Return what its final record says of the ending; `None` where there is none.

    Args:
        transcript: its lines, all of them.
        rollout: its session's file.
        label: what stands for the model's API.
        model: the model.
        finish: why the model stopped, as the API's last answer names it: Codex itself has no type
            for that.

    """
    if transcript.end is None:
        return None
    if transcript.end == "completed":
        # Without a word of the model's: whatever this is, it is no answer.
        ending = _stopped(transcript, finish) if transcript.replied else None
        return Said(ending, raw={"turn": "completed"})
    error = rollout.error
    raw = _raw(transcript, error)
    if error is not None and error.name == _CONTEXT:
        return Said(Trial(stopped_by="context") if transcript.replied else DOES_NOT_FIT, raw=raw)
    failed = _api_failure(error, label=label, model=model)
    if failed is not None:
        accepted = None if transcript.replied else False
        return Said(failed.infrastructure(accepted=accepted), failed.hint, raw)
    return Said(_stopped(transcript, finish) if finish in _NOTES else None, raw=raw)


def _api_failure(error: TypedError | None, *, label: str, model: str) -> ProviderFailure | None:
    """Return what a typed error says of the model's API; `None` where it is not of the API."""
    if error is None:
        return None
    status = error.status
    if error.name in _KINDS:
        kind = _KINDS[error.name]
    elif error.name not in _BY_STATUS:
        return None
    elif status is not None and status not in _SUCCESS:
        kind = kind_of_status(status)
    else:
        kind = FailureKind.CUT
    return ProviderFailure(kind, label, model, status=status)


def _stopped(transcript: Transcript, finish: str | None) -> Trial:
    if finish in _NOTES:
        transcript.log.notes.append(_NOTES[finish])
    return Trial()


def _raw(transcript: Transcript, error: TypedError | None) -> JsonObject:
    info = {} if error is None else {"codex_error_info": error.name}
    status = {} if error is None or error.status is None else {"http_status_code": error.status}
    words = {} if transcript.words is None else {"message": transcript.words}
    return {"turn": "failed", **info, **status, **words}
