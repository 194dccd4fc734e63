"""How an attempt by Gemini CLI ended: its final record, its status, what its model's API did.

Its record says `success` also where the model refused, was cut off, or was not asked again; and
it says nothing of an error but its words. So the recording of its requests counts first, and the
exit status (an HTTP status, as far as eight bits hold it) where there is no recording.
"""

from __future__ import annotations

from collections.abc import Mapping

from pytest_mst.clients.gemini_transcript import Transcript
from pytest_mst.clients.model_loop import CUT_AT_LIMIT, REFUSED
from pytest_mst.clients.program.account import DOES_NOT_FIT
from pytest_mst.clients.program.decide import Said
from pytest_mst.clients.program.model_api import ModelApi
from pytest_mst.clients.program.run import Ran
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Scope, Trial
from pytest_mst.providers.exchange import Exchange
from pytest_mst.providers.failure import FailureKind, ProviderFailure, kind_of_status

LOOPS = "Gemini CLI ended the attempt by itself: it took the model to be going round in circles"
TEXT_TWICE = (
    "an answer broke off and was asked for again: the part that had come may stand before the "
    "answer, because Gemini CLI does not take it back"
)

_TURNS_EXIT = 53
_TURNS = "FatalTurnLimitedError"
_OWN_EXITS: Mapping[int, str] = {
    41: "its authentication",
    42: "its input",
    44: "its sandbox",
    52: "its settings",
    55: "its working folder, which it does not trust",
}
"""The exit statuses of Gemini CLI for what it does not begin with."""
_STATUSES: Mapping[int, int] = {
    status & 0xFF: status
    for status in (401, 403, 404, 408, 429, 500, 502, 503, 504, 529)
}  # fmt: skip
"""The HTTP status that an exit status stands for; a 400 may be anything, so it is not here."""
_CUT = frozenset({"MAX_TOKENS"})
_REFUSED = frozenset(
    {
        "BLOCKLIST", "IMAGE_SAFETY", "LANGUAGE", "OTHER", "PROHIBITED_CONTENT", "RECITATION",
        "SAFETY", "SPII",
    }
)  # fmt: skip
"""Why Gemini stops a model, or does not let it begin: finishReason and blockReason."""


def said_by(
    transcript: Transcript, ran: Ran, api: ModelApi | None, *, label: str, model: str
) -> Said | None:
    """Return what is known of the ending; `None` where there is no final record.

    Args:
        transcript: the lines, all of them.
        ran: how the program ended.
        api: what its requests to the model went through.
        label: what stands for the model's API.
        model: the model.

    """
    result = transcript.result
    if result is None:
        own = _OWN_EXITS.get(ran.exit_code or 0)
        return None if own is None else Said(_not_begun(own))
    calls = [] if api is None else api.calls
    raw = transcript.raw
    if result.get("status") == "success":
        answered = [one for one in calls if _is_answered(one)]
        if answered and answered[-1].finish is None and not transcript.severity:
            return Said(_broken_off(label, model), raw=raw)
        return Said(_done(transcript, answered if api is not None else None), raw=raw)
    error = result.get("error")
    kind = error.get("type") if isinstance(error, Mapping) else None
    if kind == _TURNS or ran.exit_code == _TURNS_EXIT:
        return Said(Trial(stopped_by="turns"), raw=raw)
    last = calls[-1] if calls else None
    if last is not None and last.kind is FailureKind.CONTEXT:
        return Said(_too_long(calls), raw=raw)
    if last is not None and last.kind is not None:
        return Said(None, raw=raw)  # the recording knows it exactly
    if last is not None and error is None:  # it ended well, but for what the model said
        if last.finish is None:
            return Said(_broken_off(label, model), raw=raw)
        return Said(_unusable(transcript, last), raw=raw)
    return _by_exit(ran, calls, raw, label=label, model=model)


def _done(transcript: Transcript, answered: list[Exchange] | None) -> Ending | None:
    """Return how an attempt ended that Gemini CLI calls a success.

    Args:
        transcript: the lines, all of them.
        answered: the requests that the model has answered; `None` where nobody saw them.

    """
    match transcript.severity:
        case "error":  # the one error that it calls a success: its turns are used up
            return Trial(stopped_by="turns")
        case "warning":
            transcript.log.notes.append(LOOPS)
            return Trial()
        case _:
            pass
    if answered is None:
        return Trial() if transcript.spoke else None
    if not answered:
        return None
    if len(answered) <= transcript.rounds and not transcript.spoke:
        return Trial(stopped_by="context")  # it has results to show, and knows they do not fit
    note = _note(answered[-1])
    if note is not None:
        transcript.log.notes.append(note)
    return Trial()


def _unusable(transcript: Transcript, last: Exchange) -> Ending | None:
    """Return how an attempt ended that broke off at an answer which is empty or malformed."""
    note = _note(last)
    if note is not None:
        transcript.log.notes.append(note)
        return Trial()
    return Trial(client_error=f"the model's answer was empty or malformed ({last.finish})")


def _broken_off(label: str, model: str) -> InfrastructureFailure:
    """Return what it means that an answer ended, and the model had not said that it had."""
    return ProviderFailure(FailureKind.CUT, label, model).infrastructure()


def _is_answered(one: Exchange) -> bool:
    return one.kind is None and one.status is not None


def _note(last: Exchange) -> str | None:
    if last.finish in _CUT:
        return CUT_AT_LIMIT
    return REFUSED if last.finish in _REFUSED else None


def _too_long(calls: list[Exchange]) -> Ending:
    if any(map(_is_answered, calls)):
        return Trial(stopped_by="context")
    return DOES_NOT_FIT


def _by_exit(
    ran: Ran, calls: list[Exchange], raw: Mapping[str, object], *, label: str, model: str
) -> Said:
    status = _STATUSES.get(ran.exit_code or 0)
    if status is None:
        return Said(None, raw=raw)  # type: ignore[arg-type]  # it is JSON
    failed = ProviderFailure(kind_of_status(status), label, model, status=status)
    accepted = None if any(map(_is_answered, calls)) else False
    return Said(failed.infrastructure(accepted=accepted), failed.hint, raw)  # type: ignore[arg-type]


def _not_begun(what: str) -> InfrastructureFailure:
    return InfrastructureFailure(
        Broke.SETUP,
        f"Gemini CLI did not begin: it found something wrong with {what}; see its words in detail",
        retryable=False,
        scope=Scope.VARIANT,
        accepted=False,
    )
