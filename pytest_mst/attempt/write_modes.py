"""Which write mode each server has in each variant, and the refusals that keep writes stopped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import EvalConfig, StatedMode, Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.write import WriteMode

_STOPPED = frozenset({WriteMode.PLANNED, WriteMode.SIMULATED})


def labels_of(config: EvalConfig, variant: Variant) -> tuple[str, ...]:
    """Return the labels of the servers that a variant gives its client."""
    return tuple(config.servers) if variant.servers is None else variant.servers


def stated_mode(config: EvalConfig, variant: Variant, label: str) -> StatedMode | None:
    """Return the mode that the config states for a server: the variant's word over the eval's."""
    for writes in (variant.writes, config.writes):
        if isinstance(writes, str):
            return writes
        if writes is not None and label in writes:
            return writes[label]
    return None


def write_modes(
    loaded: LoadedEval, variant: Variant, servers: Mapping[str, ServerState]
) -> dict[str, WriteMode]:
    """Return the write mode of each server of a variant.

    A server that could not be listed keeps its stated mode: nothing reaches it either way.

    Raises:
        LoadCheckError: a server has a tool that is not read-only, and nothing says what becomes
            of its writes.

    """
    config = loaded.config
    modes = {}
    for label in labels_of(config, variant):
        state = servers[label]
        writes = state.tools_for(config.servers[label]).writes
        stated = stated_mode(config, variant, label)
        if state.failure is None and not writes:
            modes[label] = WriteMode.READ_ONLY
        elif stated is not None:
            modes[label] = WriteMode(stated)
        elif state.failure is not None:
            modes[label] = WriteMode.PLANNED
        else:
            raise LoadCheckError(
                loaded.place("writes"),
                f"server {label!r} has tools that are not read-only and no write mode: "
                f"{_listed(writes)}",
                server=label,
                tools=writes,
                remedy=f"add `{label}: planned` or `{label}: simulated` under `writes`, or name "
                f"the tools that only read in `servers.{label}.readOnlyTools`",
            )
    return modes


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


def _listed(names: Iterable[str], most: int = 8) -> str:
    """Name the first few, and how many more there are."""
    all_names = list(names)
    more = f" and {len(all_names) - most} more" if len(all_names) > most else ""
    return ", ".join(all_names[:most]) + more
