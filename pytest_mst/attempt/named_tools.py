"""Tools that an eval config names: each is one that its server lists, and each reply can fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import ServerBase
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.policy import ServerPolicy
from pytest_mst.proxy.replies import ReplyError


def check_named_tools(prepared: PreparedEval, modes: Mapping[str, WriteMode]) -> None:
    """Refuse a name that its server does not list, and a reply that cannot fit its tool.

    A misspelt name in `alwaysWriteTools` would let a write through, one in `replies` would never
    be used; a server that could not be listed is left alone.

    Raises:
        LoadCheckError: a name is not listed, or a reply cannot fit.

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
                    remedy=_there_are(name, state),
                )
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


def _there_are(name: str, state: ServerState) -> str:
    near = difflib.get_close_matches(name, state.tools, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return "it lists: " + (", ".join(state.tools) or "no tool")
