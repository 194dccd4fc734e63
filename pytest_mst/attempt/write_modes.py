"""Which write mode each server has in each variant, and the refusals that keep writes stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from pytest_mst.attempt.named_tools import first_few
from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import EvalConfig, ServerBase, StatedMode, Variant, Writes
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.write import WriteMode

_STOPPED = frozenset({WriteMode.PLANNED, WriteMode.SIMULATED})
_ANSWERED_BY_SERVER = frozenset({WriteMode.SERVER_PLANNED, WriteMode.LIVE})
"""The replies to writes are the server's own: only the same server gives the same ones."""


def labels_of(config: EvalConfig, variant: Variant) -> tuple[str, ...]:
    """Return the labels of the servers that a variant gives its client."""
    return tuple(config.servers) if variant.servers is None else variant.servers


def stated_mode(config: EvalConfig, variant: Variant, label: str) -> StatedMode | None:
    """Return the mode that the config states for a server: the variant's word over the eval's."""
    said = _said_of(config, variant, label)
    return said[label] if isinstance(said, Mapping) else said


def _said_of(config: EvalConfig, variant: Variant, label: str) -> Writes | None:
    """Return what speaks of a server, for all at once or by label: the variant's word first."""
    for writes in (variant.writes, config.writes):
        if isinstance(writes, str) or (writes is not None and label in writes):
            return writes
    return None


def write_modes(
    loaded: LoadedEval, variant: Variant, servers: Mapping[str, ServerState]
) -> dict[str, WriteMode]:
    """Return the write mode of each server of a variant.

    A server whose tools all read is read-only, whatever is stated for it. One that could not be
    listed keeps its stated mode: nothing reaches it either way.

    Raises:
        LoadCheckError: a server has a tool that is not read-only, and nothing says what becomes
            of its writes; or the client is connected to it directly, and a mode is asked for
            that only a proxy can keep.

    """
    config = loaded.config
    modes = {}
    for label in labels_of(config, variant):
        state = servers[label]
        writes = state.tools_for(config.servers[label]).writes
        stated = stated_mode(config, variant, label)
        if config.servers[label].direct:
            modes[label] = _direct_mode(loaded, variant, state, writes)
        elif state.failure is None and not writes:
            modes[label] = WriteMode.READ_ONLY
        elif stated is not None:
            modes[label] = WriteMode(stated)
        elif state.failure is not None:
            modes[label] = WriteMode.PLANNED
        else:
            raise LoadCheckError(
                loaded.place("writes"),
                f"server {label!r} has tools that are not read-only and no write mode: "
                f"{first_few(writes)}",
                server=label,
                tools=writes,
                remedy=f"add `{label}: planned` or `{label}: simulated` under `writes`, or name "
                f"the tools that only read in `servers.{label}.readOnlyTools`",
            )
    return modes


def _direct_mode(
    loaded: LoadedEval, variant: Variant, state: ServerState, writes: Sequence[str]
) -> WriteMode:
    """Return the mode of a server with no proxy in front: read-only or unguarded.

    What is said for every server at once is meant for those that have a proxy.

    Raises:
        LoadCheckError: it can be neither.

    """
    label = state.label
    said = _said_of(loaded.config, variant, label)
    stated = said[label] if isinstance(said, Mapping) else None
    if stated == "unguarded":
        listed_reads_only = state.failure is None and not writes
        return WriteMode.READ_ONLY if listed_reads_only else WriteMode.UNGUARDED
    if stated is not None:
        raise LoadCheckError(
            loaded.place("servers", label, "direct"),
            f"the client is connected to server {label!r} directly, so that its writes cannot "
            f"be {stated}: no proxy is there",
            server=label,
            tools=writes,
            remedy=f"leave out `servers.{label}.direct`, or write `{label}: unguarded` under "
            "`writes`",
        )
    if writes:
        raise LoadCheckError(
            loaded.place("servers", label, "direct"),
            f"the client is connected to server {label!r} directly, and it has tools that are "
            f"not read-only: {first_few(writes)}",
            server=label,
            tools=writes,
            remedy=f"leave out `servers.{label}.direct`, so that a proxy stops its writes, name "
            f"the tools that only read in `servers.{label}.readOnlyTools`, or write "
            f"`{label}: unguarded` under `writes`",
        )
    return WriteMode.READ_ONLY


def check_comparable(prepared: PreparedEval, variants: Sequence[Variant]) -> None:
    """Refuse to compare variants that give different kinds of reply to the same write.

    Raises:
        LoadCheckError: they do; the error names the servers.

    """
    loaded = prepared.loaded
    modes = {variant.name: write_modes(loaded, variant, prepared.servers) for variant in variants}
    if len(modes) < 2:  # noqa: PLR2004 - it takes two to compare
        return
    for label in loaded.config.servers:
        _same_kind(
            loaded,
            {
                name: {label: by_label[label]}
                for name, by_label in modes.items()
                if label in by_label
            },
            label,
        )
    stopped = {
        name: {label: mode for label, mode in by_label.items() if mode in _STOPPED}
        for name, by_label in modes.items()
    }
    _same_kind(loaded, stopped, None)
    _same_servers(loaded, modes)


def _same_kind(
    loaded: LoadedEval, modes: Mapping[str, Mapping[str, WriteMode]], label: str | None
) -> None:
    kinds = {mode for by_label in modes.values() for mode in by_label.values()}
    kinds.discard(WriteMode.READ_ONLY)
    if len(kinds) < 2:  # noqa: PLR2004 - one kind, or none, is alike
        return
    named = "; ".join(
        f"variant {name!r}: " + ", ".join(f"{one} {mode.value}" for one, mode in by_label.items())
        for name, by_label in modes.items()
        if by_label
    )
    raise LoadCheckError(
        loaded.place("writes"),
        f"the variants give different kinds of reply to the same write ({named})",
        server=label,
        remedy="state one kind, `planned` or `simulated`, for all of them, or run one variant "
        "with --mst-variant",
    )


def _same_servers(loaded: LoadedEval, modes: Mapping[str, Mapping[str, WriteMode]]) -> None:
    """Refuse variants whose writes are answered by servers that are not the same in all."""
    answering = {
        name: {label: mode for label, mode in by_label.items() if mode in _ANSWERED_BY_SERVER}
        for name, by_label in modes.items()
    }
    servers = [
        [(loaded.config.servers[label], mode) for label, mode in by_label.items()]
        for by_label in answering.values()
    ]
    if all(_are_alike(servers[0], others) for others in servers[1:]):
        return
    named = "; ".join(
        f"variant {name!r}: "
        + (", ".join(f"{label} {mode.value}" for label, mode in by_label.items()) or "none")
        for name, by_label in answering.items()
    )
    labels = dict.fromkeys(label for by_label in answering.values() for label in by_label)
    raise LoadCheckError(
        loaded.place("writes"),
        f"servers answer writes themselves, and the variants are not given the same ones ({named})",
        server=next(iter(labels)),
        remedy=f"give each variant {' and '.join(map(repr, labels))}, state `planned` or "
        "`simulated` for all of them, or run one variant with --mst-variant",
    )


_Answering: TypeAlias = tuple[ServerBase, WriteMode]


def _are_alike(these: Sequence[_Answering], those: Sequence[_Answering]) -> bool:
    """Tell whether two sets of servers are the same by definition and mode, however labelled."""
    return all(one in those for one in these) and all(one in these for one in those)
