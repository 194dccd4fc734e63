"""The `clientOptions` that clients which are programs have in common."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_mst.clients.limits import LIMITS, Limits
from pytest_mst.clients.program.servers import CONNECTS, Connect
from pytest_mst.clients.script import near
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, json_type

PROGRAM_KEYS = (
    "command", "args", "env", "connect", "builtinTools", "baseUrl", "apiKeyEnv",
    "recordProvider", "system", "maxRetries", *LIMITS,
)  # fmt: skip
"""What `ProgramOptions` reads."""


@dataclass(frozen=True, slots=True)
class ProgramOptions:
    """What a client's program is started with."""

    command: str | None
    """The program, by name or path; `None` is the client's own name for it."""
    args: tuple[str, ...]
    """Added to the client's own arguments."""
    env: Mapping[str, str]
    """Added to its environment."""
    connect: Connect
    """Whether it gets addresses of the servers, or commands that are them."""
    builtin_tools: tuple[str, ...]
    """Its own tools that stay on, by name."""
    base_url: str | None
    """Of the model's API."""
    api_key_env: str | None
    """The variable that holds the API's key."""
    record_provider: bool
    """Whether its requests to the model go through us."""
    system: str | None
    """Added to its system prompt."""
    max_retries: int | None
    """How often it may ask the model again by itself; `None` is the client's default."""
    limits: Limits

    @classmethod
    def of(
        cls,
        options: JsonObject,
        *,
        more: Iterable[str] = (),
        without: Iterable[str] = (),
        connect: Connect = "url",
    ) -> ProgramOptions:
        """Read the options.

        Args:
            options: `clientOptions`.
            more: keys that the client reads itself.
            without: keys of the common ones that the client does not have.
            connect: how it reaches servers where nothing is said.

        Raises:
            OptionsError: a key or a value is not one.

        """
        left_out = set(without)
        known_keys(options, [*(key for key in PROGRAM_KEYS if key not in left_out), *more])
        way = text_option(options, "connect") or connect
        return cls(
            command=text_option(options, "command"),
            args=texts_option(options, "args"),
            env=text_map_option(options, "env"),
            connect=_connect(way),
            builtin_tools=texts_option(options, "builtinTools"),
            base_url=text_option(options, "baseUrl"),
            api_key_env=text_option(options, "apiKeyEnv"),
            record_provider=flag_option(options, "recordProvider", default=True),
            system=text_option(options, "system"),
            max_retries=count_option(options, "maxRetries"),
            limits=Limits.of(options),
        )


def program_path(program: str) -> str:
    """Return a program's path from where we are; a mere name stays one, to be found on PATH."""
    return str(Path(program).absolute()) if os.sep in program else program


def known_keys(options: JsonObject, valid: Iterable[str]) -> None:
    """Refuse keys that are not known.

    Raises:
        OptionsError: there is one; the error names the nearest that is known.

    """
    names = sorted(set(valid))
    for key in options:
        if key not in names:
            raise OptionsError(key, f"nothing{near(key, names)}; valid: {', '.join(names)}")


def text_option(options: JsonObject, key: str) -> str | None:
    """Return a text that is not empty; `None` where the key is absent or null.

    Raises:
        OptionsError: it is something else.

    """
    value = options.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise OptionsError(key, f"a text that is not empty, not {json_type(value)} {value!r}")
    return value


def texts_option(options: JsonObject, key: str) -> tuple[str, ...]:
    """Return a list of texts; an empty one where the key is absent or null.

    Raises:
        OptionsError: it is something else.

    """
    value = options.get(key)
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise OptionsError(key, f"a list of texts, not {json_type(value)} {value!r}")
    texts: list[str] = []
    for at, one in enumerate(value):
        if not isinstance(one, str):
            raise OptionsError(key=f"{key}[{at}]", expected=f"a text, not {json_type(one)} {one!r}")
        texts.append(one)
    return tuple(texts)


_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_NO_REFERENCE = (
    "a text that is handed on as it is: ${NAME} is filled in for servers only; name the variable "
    "in apiKeyEnv, or for client command in passEnv"
)


def text_map_option(options: JsonObject, key: str) -> dict[str, str]:
    """Return an object of texts; an empty one where the key is absent or null.

    Raises:
        OptionsError: it is something else; values are not shown, they may be secret.

    """
    value = options.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise OptionsError(key, f"an object of texts, not {json_type(value)}")
    texts: dict[str, str] = {}
    for name, one in value.items():
        if not isinstance(one, str):
            raise OptionsError(key=f"{key}.{name}", expected=f"a text, not {json_type(one)}")
        if _REFERENCE.search(one):
            raise OptionsError(key=f"{key}.{name}", expected=_NO_REFERENCE)
        texts[name] = one
    return texts


def flag_option(options: JsonObject, key: str, *, default: bool) -> bool:
    """Return true or false.

    Raises:
        OptionsError: it is something else.

    """
    value = options.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise OptionsError(key, f"true or false, not {json_type(value)} {value!r}")
    return value


def count_option(options: JsonObject, key: str) -> int | None:
    """Return a whole number, 0 or more; `None` where the key is absent or null.

    Raises:
        OptionsError: it is something else.

    """
    value = options.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionsError(key, f"a whole number, 0 or more, not {json_type(value)} {value!r}")
    return value


def _connect(value: str) -> Connect:
    match value:
        case "url" | "relay":
            return value
        case _:
            expected = f"one of {', '.join(CONNECTS)}, not {value!r}"
            raise OptionsError(key="connect", expected=expected)
