"""How Claude Code says that an attempt ended, from the typed fields of its final record."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mst.clients.claude_transcript import Transcript
from pytest_mst.clients.ground_truth import server_not_reached
from pytest_mst.clients.program.account import DOES_NOT_FIT
from pytest_mst.clients.program.decide import Said
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Trial
from pytest_mst.providers.failure import FailureKind, ProviderFailure, kind_of_status

CLIENT = "Claude Code"

_KINDS: Mapping[str, FailureKind] = {
    "authentication_failed": FailureKind.AUTH,
    "billing_error": FailureKind.QUOTA,
    "model_not_found": FailureKind.NOT_FOUND,
    "oauth_org_not_allowed": FailureKind.AUTH,
    "overloaded": FailureKind.OVERLOADED,
    "rate_limit": FailureKind.RATE_LIMIT,
}
"""The codes of its `error` that say more than the status does."""
_BY_STATUS = ("server_error", "invalid_request", "unknown")
"""Those that leave it to the status."""


def api_failure_of(
    code: str | None, status: int | None, *, label: str, model: str
) -> ProviderFailure | None:
    """Return what a code and an HTTP status of Claude Code's say of the model's API.

    Returns:
        `None` where the code is not one of the API's.

    """
    if code is not None and code in _KINDS:
        kind = _KINDS[code]
    elif status is not None:
        kind = kind_of_status(status)
    elif code in _BY_STATUS:
        kind = FailureKind.CUT  # not connected, or the answer broke off: it does not tell
    else:
        return None
    return ProviderFailure(kind, label, model, status=status)


def said_by(transcript: Transcript, *, label: str, model: str) -> Said | None:
    """Return what its final record says of the ending; `None` where there is none.

    Args:
        transcript: the lines, all of them.
        label: what stands for the model's API.
        model: the model.

    """
    result = transcript.result
    if result is None:
        return None
    raw = transcript.raw
    if result.get("is_error") is not True:
        return Said(_done(transcript), raw=raw)
    own = _own_end(transcript, result)
    if own is not None:
        return Said(own, raw=raw)
    status = result.get("api_error_status")
    failed = api_failure_of(
        transcript.error, status if isinstance(status, int) else None, label=label, model=model
    )
    if failed is None:
        return Said(None, raw=raw)
    accepted = None if transcript.replies else False
    return Said(failed.infrastructure(accepted=accepted), failed.hint, raw)


def _done(transcript: Transcript) -> Ending | None:
    if transcript.not_connected:
        return server_not_reached(transcript.not_connected)
    if transcript.denied:
        return InfrastructureFailure(
            Broke.SETUP,
            f"{CLIENT} did not permit {', '.join(transcript.denied)}: a setting in args or env "
            "takes back what it is allowed, which is every tool of the servers",
            retryable=False,
        )
    if not transcript.replies:  # no word of the model's: whatever this is, it is no answer
        return None
    return Trial()


def _own_end(transcript: Transcript, result: Mapping[str, object]) -> Ending | None:
    """Return what it ended by itself, for a reason that is the attempt's own."""
    match result.get("terminal_reason"), result.get("subtype"), result.get("stop_reason"):
        case ("max_turns", _, _) | (_, "error_max_turns", _):
            return Trial(stopped_by="turns")
        case "prompt_too_long", _, _:
            return Trial(stopped_by="context") if transcript.replies else DOES_NOT_FIT
        case _, _, "refusal":
            transcript.log.notes.append("the model refused to go on")
            return Trial()
        case _ if transcript.error == "max_output_tokens":
            transcript.log.notes.append("the answer was cut off at the model's output limit")
            return Trial()
        case _:
            return None
