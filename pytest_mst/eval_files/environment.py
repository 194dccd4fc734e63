"""References to the environment in server definitions: `${NAME}`, and tokens by their variable.

`${NAME}` stands for a variable in `env`, `headers`, `args`, `serverUrl` and, of a program that the
run starts, in its `env`, `args` and `readyUrl`; `$${` is a `${` that is meant as text. Loaded
evals keep references as they are written; what they stand for is looked up where a server is
started, and every value that came from one is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import assert_never

from pytest_mst.domain.errors import MstError
from pytest_mst.domain.eval_config import (
    EvalConfig,
    HttpServer,
    PythonServer,
    ServerConfig,
    StartedProcess,
    StdioServer,
)
from pytest_mst.eval_files.document import KeyPath, path_text

MIN_SECRET_CHARS = 8
"""Shorter values are not replaced everywhere: they would be found in unrelated text."""

_REFERENCE = re.compile(
    r"\$(?P<escaped>\$\{)|\$\{(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\}|(?P<broken>\$\{)"
)
_CREDENTIAL_HEADER = re.compile(
    r"auth|cookie|token|secret|password|credential|session|(^|[-_])key($|[-_])|apikey",
    re.IGNORECASE,
)


class ReferenceProblemError(MstError):
    """A reference to the environment stands for nothing."""

    def __init__(self, path: KeyPath, variable: str | None) -> None:
        """Build the message; no value is ever shown.

        Args:
            path: where in the server definition the reference is.
            variable: the variable that is not set; `None` where `${` begins no reference.

        """
        self.path = path
        self.variable = variable
        super().__init__(f"{path_text(path)}: {self.problem}; {self.remedy}")

    @property
    def problem(self) -> str:
        """What is wrong."""
        if self.variable is None:
            return "`${` begins no reference to an environment variable"
        return f"the environment variable {self.variable} is not set"

    @property
    def remedy(self) -> str:
        """The way out."""
        if self.variable is None:
            return "write ${NAME} for a variable, or $${ for a ${ that is meant as text"
        return f"set {self.variable}, or take the reference to it out"


def resolve_server(config: ServerConfig, environ: Mapping[str, str]) -> ServerConfig:
    """Put the environment's values in the place of references to them.

    A bearer token named by `auth.accessTokenEnv` becomes an `Authorization` header.

    Raises:
        ReferenceProblemError: a variable is not set, or a reference is not written as one.

    """
    for problem in reference_problems(config, environ):
        raise problem
    match config:
        case StdioServer():
            args = tuple(_substituted(text, environ) for text in config.args)
            env = _substituted_values(config.env, environ)
            return config.model_copy(update={"env": env, "args": args})
        case HttpServer():
            headers = _substituted_values(config.headers, environ)
            if config.auth is not None:
                headers["Authorization"] = f"Bearer {environ[config.auth.access_token_env]}"
            url = _substituted(config.server_url, environ)
            resolved: dict[str, object] = {"headers": headers, "server_url": url, "auth": None}
            if config.start is not None:
                resolved["start"] = _resolved_start(config.start, environ)
            return config.model_copy(update=resolved)
        case PythonServer():
            return config
        case _:
            assert_never(config)


def reference_problems(
    config: ServerConfig, environ: Mapping[str, str]
) -> Iterator[ReferenceProblemError]:
    """Find every reference of a server definition that stands for nothing."""
    for path, text in _texts(config):
        for match in _REFERENCE.finditer(text):
            variable = match["variable"]
            if match["broken"] or (variable and variable not in environ):
                yield ReferenceProblemError(path, variable)
    if isinstance(config, HttpServer) and config.auth is not None:
        variable = config.auth.access_token_env
        if not environ.get(variable):
            yield ReferenceProblemError(("auth", "accessTokenEnv"), variable)


def secrets_of(config: EvalConfig, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the values that must not be seen in any file, log or report.

    They are what came from the environment, and what headers that carry credentials hold. Values
    under `MIN_SECRET_CHARS` characters are left out; `short_secrets_of` says where those are.
    """
    return frozenset(
        value for _, value in _secrets(config, environ) if len(value) >= MIN_SECRET_CHARS
    )


def short_secrets_of(config: EvalConfig, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the places, such as `servers.chat.env.PIN`, of secrets too short to be replaced."""
    places = [
        path_text(path) or ""
        for path, value in _secrets(config, environ)
        if 0 < len(value) < MIN_SECRET_CHARS
    ]
    return tuple(dict.fromkeys(places))


def _secrets(config: EvalConfig, environ: Mapping[str, str]) -> Iterator[tuple[KeyPath, str]]:
    for label, server in config.servers.items():
        for path, text in _texts(server):
            here = ("servers", label, *path)
            for match in _REFERENCE.finditer(text):
                if match["variable"] in environ:
                    yield here, environ[match["variable"]]
            if path[0] == "headers" and _CREDENTIAL_HEADER.search(str(path[1])):
                # What follows a scheme, as in `Bearer ...`, is the secret.
                yield here, _substituted(text, environ).split(" ", 1)[-1].strip()
        if isinstance(server, HttpServer) and server.auth is not None:
            here = ("servers", label, "auth", "accessTokenEnv")
            yield here, environ.get(server.auth.access_token_env, "")


def _texts(config: ServerConfig) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts of a server definition that may hold references."""
    match config:
        case StdioServer():
            yield from ((("env", name), text) for name, text in config.env.items())
            yield from ((("args", position), text) for position, text in enumerate(config.args))
        case HttpServer():
            yield from ((("headers", name), text) for name, text in config.headers.items())
            yield ("serverUrl",), config.server_url
            if config.start is not None:
                yield from _texts_of_start(config.start)
        case PythonServer():
            return
        case _:
            assert_never(config)


def _texts_of_start(start: StartedProcess) -> Iterator[tuple[KeyPath, str]]:
    yield from ((("start", "env", name), text) for name, text in start.env.items())
    yield from ((("start", "args", position), text) for position, text in enumerate(start.args))
    yield ("start", "readyUrl"), start.ready_url


def _resolved_start(start: StartedProcess, environ: Mapping[str, str]) -> StartedProcess:
    return start.model_copy(
        update={
            "env": _substituted_values(start.env, environ),
            "args": tuple(_substituted(text, environ) for text in start.args),
            "ready_url": _substituted(start.ready_url, environ),
        }
    )


def _substituted_values(values: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    return {name: _substituted(text, environ) for name, text in values.items()}


def _substituted(text: str, environ: Mapping[str, str]) -> str:
    """Put values in the place of references; one that stands for nothing becomes nothing."""
    return _REFERENCE.sub(
        lambda match: "${" if match["escaped"] else environ.get(match["variable"] or "", ""), text
    )
