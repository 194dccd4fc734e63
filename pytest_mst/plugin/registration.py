"""The clients and judges that conftests and plugins register, for one pytest session."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_mst.attempt.function_judge import JudgeFunction
from pytest_mst.clients.client import Client
from pytest_mst.clients.function import AgentFunction, FunctionClient
from pytest_mst.clients.registry import CLIENTS, as_client
from pytest_mst.domain.errors import RegistrationError
from pytest_mst.domain.judge import FUNCTION, RUBRIC, RUBRIC_NAMES
from pytest_mst.plugin.keys import CLIENTS_REGISTERED, JUDGES

_HOOK = "pytest_mst_register"
_CLIENT = "client"
_JUDGE = "judge"
_BUILT_IN_JUDGES = frozenset({RUBRIC, FUNCTION, *RUBRIC_NAMES})


class Registrar:
    """Takes what a conftest or a plugin adds to this session; nothing of it outlives the session.

    Each process of a run, xdist's workers too, asks for itself.
    """

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._judges: dict[str, JudgeFunction] = {}

    @property
    def clients(self) -> Mapping[str, Client]:
        """The clients so far, by name; grows."""
        return self._clients

    @property
    def judges(self) -> Mapping[str, JudgeFunction]:
        """The judges so far, by name; grows."""
        return self._judges

    def client(self, name: str, client: Client | AgentFunction) -> None:
        """Add a client, under the name that eval configs and `--mst-client` know it by.

        Args:
            name: its name.
            client: an async function from a `ClientRequest` to the answer, or an object with
                `name` and `async run(request)` whose name is this one.

        Raises:
            RegistrationError: the name is taken or is none, or this is no client.

        """
        _check_name(_CLIENT, name, client, CLIENTS, self._clients)
        if isinstance(client, str):
            raise RegistrationError(_CLIENT, name, "is a text", "register a client itself")
        try:
            found = as_client(client, asked_by=_HOOK)
        except TypeError as error:
            raise RegistrationError(_CLIENT, name, str(error), _WAY_OUT) from error
        if isinstance(found, FunctionClient) and found is not client:
            found = found.named(name)
        if found.name != name:
            problem = f"is an object whose own name is {found.name!r}"
            raise RegistrationError(_CLIENT, name, problem, "give both the same name")
        self._clients[name] = found

    def judge(self, name: str, judge: JudgeFunction) -> None:
        """Add a judge, under the name that eval configs know it by as a `type`.

        Args:
            name: its name.
            judge: a function, async or not, from a finished trial to what it says of it; or an
                object with such a `judge(trial)`.

        Raises:
            RegistrationError: the name is taken or is none, or this is no judge.

        """
        _check_name(_JUDGE, name, judge, _BUILT_IN_JUDGES, self._judges)
        if isinstance(judge, type) or not callable(getattr(judge, "judge", judge)):
            kind = f"the class {judge.__name__}" if isinstance(judge, type) else _kind(judge)
            problem = f"is {kind}; valid: a function, or an object with `judge(trial)`"
            raise RegistrationError(_JUDGE, name, problem, _WAY_OUT)
        self._judges[name] = judge


_WAY_OUT = "register one of these"


def register(config: pytest.Config) -> None:
    """Let conftests and plugins register what they have, those that are met later, too.

    Raises:
        RegistrationError: one of them registers what cannot be.

    """
    registrar = Registrar()
    config.stash[CLIENTS_REGISTERED] = registrar.clients
    config.stash[JUDGES] = registrar.judges
    config.hook.pytest_mst_register.call_historic(kwargs={"registrar": registrar})


def registered_clients(config: pytest.Config) -> Mapping[str, Client]:
    """Return the clients that were registered, by the names that evals know them by."""
    return config.stash.get(CLIENTS_REGISTERED, {})


def _check_name(
    what: str,
    name: object,
    value: object,
    built_in: Mapping[str, Any] | frozenset[str],
    taken: Mapping[str, object],
) -> None:
    if not isinstance(name, str) or not name or name != name.strip():
        problem = "has no name; valid: a text that is not empty, without space around it"
        raise RegistrationError(what, name, problem, f"name it in {_HOOK}")
    if name in built_in:
        raise RegistrationError(
            what,
            name,
            f"is built in: {_origin(value)} cannot have that name",
            "give it another name",
        )
    if name in taken:
        other = _origin(taken[name])
        problem = f"is registered twice: as {other}, and as {_origin(value)}"
        raise RegistrationError(what, name, problem, "give one of them another name")


def _kind(value: object) -> str:
    return type(value).__name__


def _origin(value: object) -> str:
    """Return where something comes from, for people."""
    inner = value.function if isinstance(value, FunctionClient) else value
    named = inner if inspect.isroutine(inner) or inspect.isclass(inner) else type(inner)
    return f"{named.__module__}.{named.__qualname__}"
