"""The steps of a script, read from `clientOptions.script` or `clientOptions.scripts`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias

from pytest_mst.domain.ending import (
    RETRY_KIND_BY_DEFAULT,
    RETRYABLE_BY_DEFAULT,
    Broke,
    InfrastructureFailure,
    Scope,
)
from pytest_mst.domain.ending import StoppedBy as Limit
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, JsonValue, json_type
from pytest_mst.domain.placeholder import TRIAL_ID, misspelt
from pytest_mst.domain.retry import RetryHint, RetryKind, retry_after_s

LAST_TEXT: Final = "{{last.text}}"
"""What stands for the last tool result's text in an answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """Call a tool; the call and its result are in the trace."""

    server: str
    tool: str
    arguments: JsonObject | None


@dataclass(frozen=True, slots=True)
class Hidden:
    """Call a tool and leave it out of the trace."""

    server: str
    tool: str
    arguments: JsonObject | None


@dataclass(frozen=True, slots=True)
class Claim:
    """Put a call in the trace that is never made."""

    server: str
    tool: str
    arguments: JsonObject | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Give the final answer; `{{last.text}}` is the last tool result's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ClientErrors:
    """End the attempt with an error of the client's own: a trial."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """End the attempt because the client ran out of a limit of its own: a trial."""

    limit: Limit


@dataclass(frozen=True, slots=True)
class Fail:
    """End the attempt as an infrastructure failure."""

    failure: InfrastructureFailure
    retry: RetryHint | None = None
    """Why and when to try again."""
    tries: int | None = None
    """In how many tries of one attempt it breaks, the first ones; `None` is every one."""


@dataclass(frozen=True, slots=True)
class Raise:
    """Throw something that nobody expected."""

    text: str


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for a while."""

    duration_s: float


Step: TypeAlias = Call | Hidden | Claim | Answer | ClientErrors | Stop | Fail | Raise | Sleep


def parse_script(options: JsonObject, trial: int) -> tuple[Step, ...]:
    """Return the steps for one trial.

    Args:
        options: `clientOptions`, with `script` (the same for every trial) or `scripts` (one list
            for each trial, repeated when there are more trials).
        trial: 0-based.

    Raises:
        OptionsError: there is no script, or a step is not one.

    """
    script, scripts = options.get("script"), options.get("scripts")
    if (script is None) == (scripts is None):
        found = "both" if script is not None else "neither"
        expected = f"a list of steps, or `scripts` does; there is {found}"
        raise OptionsError(key="script", expected=expected)
    if script is not None:
        return _steps("script", script)
    of_trial = _list("scripts", scripts)
    if not of_trial:
        raise OptionsError(key="scripts", expected="at least one list of steps, not an empty list")
    index = trial % len(of_trial)
    return _steps(f"scripts[{index}]", of_trial[index])


def check_script(options: JsonObject) -> None:
    """Read every step there is, so that a mistake is found before anything is started.

    Raises:
        OptionsError: as `parse_script` raises it; also where a placeholder is misspelt.

    """
    scripts = options.get("scripts")
    count = len(scripts) if isinstance(scripts, Sequence) and not isinstance(scripts, str) else 1
    for trial in range(max(count, 1)):
        parse_script(options, trial)
    known = (LAST_TEXT, TRIAL_ID)
    for one in misspelt(options, known):
        key = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in one.path)
        expected = f"{' and '.join(known)}, not {one.written!r}; did you mean {one.meant}?"
        raise OptionsError(key.removeprefix("."), expected)


def near(name: str, valid: Iterable[str]) -> str:
    """Ask whether a name that is not valid was meant to be one that is close to it."""
    close = difflib.get_close_matches(name, list(valid), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _steps(key: str, value: JsonValue) -> tuple[Step, ...]:
    return tuple(_step(f"{key}[{at}]", step) for at, step in enumerate(_list(key, value)))


def _step(key: str, value: JsonValue) -> Step:
    fields = _object(key, value)
    if len(fields) != 1:
        raise OptionsError(key, f"one step ({', '.join(_STEPS)}), not {len(fields)} keys")
    (name,) = fields
    build = _STEPS.get(name)
    if build is None:
        raise OptionsError(key, f"one of {', '.join(_STEPS)}, not {name!r}{near(name, _STEPS)}")
    return build(f"{key}.{name}", fields[name])


def _call(kind: Callable[[str, str, JsonObject | None], Step], key: str, value: JsonValue) -> Step:
    fields = _object(key, value)
    _known(key, fields, ("server", "tool", "arguments"))
    server, tool = (_text(f"{key}.{name}", fields.get(name)) for name in ("server", "tool"))
    arguments = fields.get("arguments")
    return kind(server, tool, None if arguments is None else _object(f"{key}.arguments", arguments))


def _stop(key: str, value: JsonValue) -> Stop:
    match value:
        case "turns" | "time" | "calls" | "context":
            return Stop(value)
        case _:
            raise OptionsError(key, f"one of turns, time, calls, context, not {value!r}")


_FAIL_KEYS = (
    "broke", "reason", "retryable", "scope", "accepted", "retry", "retryAfter", "tries"
)  # fmt: skip


def _fail(key: str, value: JsonValue) -> Fail:
    fields = _object(key, value)
    _known(key, fields, _FAIL_KEYS)
    broke = Broke(_one_of(f"{key}.broke", fields.get("broke"), [one.value for one in Broke]))
    scope = Scope(
        _one_of(f"{key}.scope", fields.get("scope", "trial"), [one.value for one in Scope])
    )
    retryable = _bool(f"{key}.retryable", fields.get("retryable"))
    return Fail(
        InfrastructureFailure(
            broke=broke,
            reason=_text(f"{key}.reason", fields.get("reason", "as its script says")),
            retryable=RETRYABLE_BY_DEFAULT[broke] if retryable is None else retryable,
            scope=scope,
            accepted=_bool(f"{key}.accepted", fields.get("accepted")),
        ),
        retry=_retry(key, fields, broke),
        tries=_tries(f"{key}.tries", fields.get("tries")),
    )


def _retry(key: str, fields: JsonObject, broke: Broke) -> RetryHint | None:
    kind, after = fields.get("retry"), fields.get("retryAfter")
    if kind is not None:
        kind = RetryKind(_one_of(f"{key}.retry", kind, [one.value for one in RetryKind]))
    elif after is None:
        return None
    else:
        kind = RETRY_KIND_BY_DEFAULT[broke]
    return RetryHint(kind, None if after is None else _after_s(f"{key}.retryAfter", after))


def _after_s(key: str, value: JsonValue) -> float:
    """Read what a `Retry-After` header says: a number of seconds, or its text."""
    seconds: float | None = None
    if isinstance(value, str):
        seconds = retry_after_s(value, datetime.now(UTC))
    elif isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        seconds = float(value)
    if seconds is None:
        found = f"{json_type(value)} {value!r}"
        raise OptionsError(key, f"seconds, 0 or more, or an HTTP date, not {found}")
    return seconds


def _tries(key: str, value: JsonValue) -> int | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise OptionsError(key, f"a positive whole number, not {json_type(value)} {value!r}")
    return value


def _sleep(key: str, value: JsonValue) -> Sleep:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise OptionsError(key, f"seconds, 0 or more, not {json_type(value)} {value!r}")
    return Sleep(float(value))


def _object(key: str, value: JsonValue) -> JsonObject:
    if not isinstance(value, Mapping):
        raise OptionsError(key, f"an object, not {json_type(value)}")
    return value


def _list(key: str, value: JsonValue) -> Sequence[JsonValue]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionsError(key, f"a list of steps, not {json_type(value)}")
    return value


def _text(key: str, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise OptionsError(key, f"a text, not {json_type(value)}")
    return value


def _bool(key: str, value: JsonValue) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise OptionsError(key, f"true or false, not {json_type(value)}")
    return value


def _one_of(key: str, value: JsonValue, valid: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in valid:
        raise OptionsError(key, f"one of {', '.join(valid)}, not {value!r}")
    return value


def _known(key: str, fields: JsonObject, valid: Sequence[str]) -> None:
    for name in fields:
        if name not in valid:
            raise OptionsError(key, f"the keys {', '.join(valid)}, not {name!r}{near(name, valid)}")


_STEPS: dict[str, Callable[[str, JsonValue], Step]] = {
    "call": partial(_call, Call),
    "answer": lambda key, value: Answer(_text(key, value)),
    "hidden": partial(_call, Hidden),
    "claim": partial(_call, Claim),
    "error": lambda key, value: ClientErrors(_text(key, value)),
    "stop": _stop,
    "fail": _fail,
    "raise": lambda key, value: Raise(_text(key, value)),
    "sleep": _sleep,
}
