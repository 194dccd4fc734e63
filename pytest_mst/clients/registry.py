"""The clients there are, by the names that eval configs use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from pytest_mst.clients.client import Client
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.errors import SelectionError
from pytest_mst.domain.json_value import JsonObject


def _claude_code() -> Client:
    from pytest_mst.clients.claude_code import ClaudeCodeClient

    return ClaudeCodeClient()


def _codex() -> Client:
    from pytest_mst.clients.codex import CodexClient

    return CodexClient()


def _command() -> Client:
    from pytest_mst.clients.command import CommandClient

    return CommandClient()


def _gemini_cli() -> Client:
    from pytest_mst.clients.gemini_cli import GeminiCliClient

    return GeminiCliClient()


def _mst() -> Client:
    from pytest_mst.clients.mst import MstClient

    return MstClient()


def _scripted() -> Client:
    from pytest_mst.clients.scripted import ScriptedClient

    return ScriptedClient()


CLIENTS: Mapping[str, Callable[[], Client]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "command": _command,
    "gemini-cli": _gemini_cli,
    "mst": _mst,
    "scripted": _scripted,
}
"""What makes each client that is built in; only what an eval uses is imported."""


@cache
def _built_in(name: str) -> Client:
    return CLIENTS[name]()


NO_CLIENTS: Mapping[str, Client] = {}


def client_named(
    name: str, *, asked_by: str, registered: Mapping[str, Client] = NO_CLIENTS
) -> Client:
    """Return the client of a name.

    Args:
        name: as the eval config or an option says it.
        asked_by: who says it, for the error.
        registered: the clients that were registered, by their names.

    Raises:
        SelectionError: there is no such client.

    """
    client = _built_in(name) if name in CLIENTS else registered.get(name)
    if client is None:
        raise SelectionError(asked_by, name, sorted({**CLIENTS, **registered}))
    return client


def as_client(
    value: Any, *, asked_by: str, registered: Mapping[str, Client] = NO_CLIENTS
) -> Client:
    """Return a client for what a user gives: a name, a client, or an async function.

    Raises:
        SelectionError: there is no client of that name.
        TypeError: the value is none of these.

    """
    if isinstance(value, str):
        return client_named(value, asked_by=asked_by, registered=registered)
    is_class = isinstance(value, type)
    if callable(getattr(value, "run", None)) and hasattr(value, "name") and not is_class:
        client: Client = value
        return client
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(
        getattr(value, "__call__", None)  # noqa: B004 - an object with an async __call__ is one
    ):
        return FunctionClient(value)
    found = f"the class {value.__name__}" if is_class else type(value).__name__
    msg = (
        f"{asked_by} gives {found}; valid: the name of a client, an async function "
        "from a ClientRequest to the answer, or an object with `name` and `async run(request)`"
    )
    raise TypeError(msg)


def check_options(client: Client, options: JsonObject) -> None:
    """Let a client look at its options before anything is started, where it can.

    Raises:
        OptionsError: they are not what it takes.

    """
    check = getattr(client, "check", None)
    if check is not None:
        check(options)
