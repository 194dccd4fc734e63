"""What a command's exit status means for its attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from pytest_mst.clients.program.options import flag_option, known_keys, text_option
from pytest_mst.domain.ending import (
    RETRYABLE_BY_DEFAULT,
    Broke,
    Ending,
    InfrastructureFailure,
    Scope,
    StoppedBy,
    Trial,
)
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, JsonValue, json_type

_TRIAL = "trial"
_ANY = "*"
_FORMS = (
    "`trial`, {stoppedBy: turns}, {clientError: a text}, or {broke: provider, reason: a text, "
    "retryable: true}"
)
_BROKE = tuple(broke.value for broke in Broke)
_SCOPES = tuple(scope.value for scope in Scope)
_HIGHEST = 255


def exit_codes_of(value: JsonValue) -> Mapping[str, Ending]:
    """Read the option `exitCodes`: endings by exit status, `*` for every other.

    Raises:
        OptionsError: it is not what it may be.

    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OptionsError(key="exitCodes", expected=f"an object, not {json_type(value)}")
    endings: dict[str, Ending] = {}
    for code, meaning in value.items():
        key = f"exitCodes.{code}"
        is_code = code.isascii() and code.isdigit() and int(code) <= _HIGHEST
        if code != _ANY and (not is_code or str(int(code)) != code):
            raise OptionsError(key, f"no such status; valid: 0 to {_HIGHEST}, and {_ANY}")
        endings[code] = _ending(key, code, meaning)
    return endings


def ending_by(endings: Mapping[str, Ending], code: int) -> Ending | None:
    """Return what is said of an exit status; `*` is not said of 0."""
    return endings.get(str(code)) or (endings.get(_ANY) if code else None)


def _ending(key: str, code: str, meaning: JsonValue) -> Ending:
    if meaning == _TRIAL:
        return Trial()
    if not isinstance(meaning, Mapping):
        raise OptionsError(key, f"{_FORMS}, not {json_type(meaning)} {meaning!r}")
    options = {f"{key}.{name}": held for name, held in meaning.items()}
    if "stoppedBy" in meaning:
        known_keys(options, [f"{key}.stoppedBy"])
        return Trial(stopped_by=_stopped_by(options, f"{key}.stoppedBy"))
    if "clientError" in meaning:
        known_keys(options, [f"{key}.clientError"])
        return Trial(client_error=text_option(options, f"{key}.clientError"))
    if "broke" not in meaning:
        raise OptionsError(key, _FORMS)
    known = ("broke", "reason", "retryable", "scope", "accepted")
    known_keys(options, [f"{key}.{name}" for name in known])
    broke = Broke(_one_of(options, f"{key}.broke", _BROKE) or Broke.CLIENT_APP)
    said = text_option(options, f"{key}.reason")
    accepted = options.get(f"{key}.accepted")
    return InfrastructureFailure(
        broke,
        said or f"the program exited with {_shown(code)}, which stands for this (exitCodes)",
        retryable=flag_option(options, f"{key}.retryable", default=RETRYABLE_BY_DEFAULT[broke]),
        scope=Scope(_one_of(options, f"{key}.scope", _SCOPES) or Scope.TRIAL),
        accepted=None
        if accepted is None
        else flag_option(options, f"{key}.accepted", default=False),
    )


def _shown(code: str) -> str:
    return "another status than those that are named" if code == _ANY else f"status {code}"


def _stopped_by(options: JsonObject, key: str) -> StoppedBy | None:
    match _one_of(options, key, get_args(StoppedBy)):
        case "turns" | "time" | "calls" | "context" as limit:
            return limit
        case _:
            return None


def _one_of(options: JsonObject, key: str, valid: tuple[str, ...]) -> str | None:
    value = text_option(options, key)
    if value is not None and value not in valid:
        raise OptionsError(key, f"one of {', '.join(valid)}, not {value!r}")
    return value
