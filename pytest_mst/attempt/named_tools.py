"""Tools that an eval config names: each is one that its server lists, and each reply can fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping

from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.errors import LoadCheckError, Place
from pytest_mst.domain.eval_config import Dispatcher, ServerBase
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.policy import ServerPolicy
from pytest_mst.proxy.replies import ReplyError

_MORE_ARGUMENTS = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties")
"""Where a schema can speak of arguments that are not among its `properties`."""


def check_named_tools(prepared: PreparedEval, modes: Mapping[str, WriteMode]) -> None:
    """Refuse names that a server or its tool does not have, and replies that cannot fit.

    A misspelt name in `alwaysWriteTools` would let a write through, one in `replies` would never
    be used; a server that could not be listed is left alone.

    Raises:
        LoadCheckError: a tool is not listed, a dispatcher has no such argument, or a reply cannot
            fit.

    """
    loaded = prepared.loaded
    for label, mode in modes.items():
        state, config = prepared.servers[label], loaded.config.servers[label]
        if state.failure is not None:
            continue
        place = loaded.place("servers", label)
        for key, name in _named(config):
            if name not in state.tools:
                raise LoadCheckError(
                    place,
                    f"servers.{label}.{key} names {name!r}, which the server does not list",
                    server=label,
                    tools=(name,),
                    remedy=meant(name, state.tools, "it lists"),
                )
        for name, dispatcher in config.dispatchers.items():
            _check_arguments(place, state, name, dispatcher)
        try:
            ServerPolicy(state.tools_for(config), mode, config.replies)
        except ReplyError as error:
            raise LoadCheckError(
                place, f"server {label!r}: {error}", server=label, tools=(error.tool,)
            ) from error


def _named(config: ServerBase) -> Iterator[tuple[str, str]]:
    for name in config.read_only_tools:
        yield "readOnlyTools", name
    for name in config.always_write_tools:
        yield "alwaysWriteTools", name
    for name in config.replies:
        yield "replies", name
    for name in config.dispatchers:
        yield "dispatchers", name


def _check_arguments(place: Place, state: ServerState, name: str, dispatcher: Dispatcher) -> None:
    """Refuse an argument of a dispatcher that its tool does not have: every call would be unread.

    Raises:
        LoadCheckError: the tool's `inputSchema` lists its arguments, and that one is not there.

    """
    known = _arguments(state.tools[name].get("inputSchema"))
    # the calls of a batch hold the other two arguments, and the schema need not speak of those
    single = {"tool": dispatcher.tool, "arguments": dispatcher.arguments}
    named = single if dispatcher.batch is None else {"batch": dispatcher.batch}
    for key, argument in named.items():
        if known and argument is not None and argument not in known:
            raise LoadCheckError(
                place,
                f"servers.{state.label}.dispatchers.{name}.{key} names {argument!r}, an "
                f"argument that {name!r} does not have",
                server=state.label,
                tools=(name,),
                remedy=meant(argument, known, "it has"),
            )


def _arguments(schema: object) -> tuple[str, ...]:
    """Return the arguments of a tool, where its schema names all it has."""
    if not isinstance(schema, Mapping) or any(key in schema for key in _MORE_ARGUMENTS):
        return ()
    if schema.get("additionalProperties", False) is not False:
        return ()
    listed = schema.get("properties")
    return tuple(listed) if isinstance(listed, Mapping) else ()


def meant(name: str, there: Iterable[str], what: str) -> str:
    """Say which name that is there was meant, or which there are.

    Args:
        name: the name that is not there.
        there: those that are.
        what: how they are introduced, such as `it lists`.

    """
    names = list(there)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"{what}: {first_few(names) or 'none'}"


def first_few(names: Iterable[str], most: int = 8) -> str:
    """Name the first few, and how many more there are."""
    all_names = list(names)
    more = f" and {len(all_names) - most} more" if len(all_names) > most else ""
    return ", ".join(all_names[:most]) + more
