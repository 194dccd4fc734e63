"""The load check: every server is listed and every write accounted for, or nothing starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import anyio

from pytest_mst.attempt.live_check import check_live
from pytest_mst.attempt.live_plan import own_labels, states_live
from pytest_mst.attempt.named_tools import check_named_tools
from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.attempt.started_servers import check_starts
from pytest_mst.attempt.write_modes import check_comparable, labels_of, write_modes
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.eval_files.environment import resolve_server, secrets_of
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.started import StartedPrograms, start_of
from pytest_mst.proxy.unavailable import ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from pytest_mst.store.redact import Redactor


def upstream_specs(
    loaded: LoadedEval,
    labels: Sequence[str],
    environ: Mapping[str, str],
    *,
    log_path: Callable[[str], Path] | None = None,
    objects: Mapping[str, object] = MappingProxyType({}),
    alone: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, UpstreamSpec]:
    """Return what it takes to open each server, secrets resolved.

    The attempts of one eval share a server's process, and those of two evals never do.

    Args:
        loaded: the eval.
        labels: which of its servers.
        environ: where `${NAME}` is looked up.
        log_path: where a server's own words on stderr are kept, by its label.
        objects: live server objects in this process, by label.
        alone: by label, for servers that only some of the eval's attempts share: whose.

    Raises:
        ReferenceProblemError: a variable of the environment that a server needs is not set.

    """
    redactor = Redactor(secrets_of(loaded.config, environ))
    return {
        label: UpstreamSpec(
            label=label,
            config=resolve_server(loaded.config.servers[label], environ),
            base_dir=loaded.path.parent,
            log_path=None if log_path is None else log_path(label),
            redact=redactor.text,
            longest_secret_bytes=redactor.longest_bytes,
            server_object=objects.get(label),
            group=f"{loaded.path}\0{alone.get(label, '')}",
        )
        for label in labels
    }


def needed_labels(loaded: LoadedEval, variants: Sequence[Variant]) -> tuple[str, ...]:
    """Return the labels of the servers that the chosen variants use, in the config's order."""
    used = {label for variant in variants for label in labels_of(loaded.config, variant)}
    if states_live(loaded.config, variants):  # steps and checks of our own may go to others
        used.update(own_labels(loaded))
    return tuple(label for label in loaded.config.servers if label in used)


async def check_evals(
    evals: Mapping[Path, tuple[LoadedEval, Sequence[Variant]]],
    hub: Hub,
    environ: Mapping[str, str],
    objects: Mapping[str, object] = MappingProxyType({}),
    programs: StartedPrograms | None = None,
    *,
    allow_live: bool = False,
) -> dict[Path, PreparedEval]:
    """List the servers of all evals, side by side, and settle each write mode.

    A server that cannot be started, reached or listed is no refusal: it is kept as the setup
    failure that every attempt by its variants will end with.

    Args:
        evals: the evals, each with its chosen variants.
        hub: the connections.
        environ: where `${NAME}` is looked up.
        objects: live server objects in this process, by label.
        programs: starts the programs that servers have; without it they are there already.
        allow_live: whether servers may be live.

    Raises:
        LoadCheckErrors: live writes would be unchecked, or for good.
        LoadCheckError: a server's writes are not accounted for, variants that are to be
            compared answer the same write differently, or programs cannot be told apart.

    """
    specs = {
        path: upstream_specs(loaded, needed_labels(loaded, variants), environ, objects=objects)
        for path, (loaded, variants) in evals.items()
    }
    every = [spec for by_label in specs.values() for spec in by_label.values()]
    if programs is not None:
        check_starts((evals[path][0], one) for path in specs for one in specs[path].values())
        programs.begin(every)
    at_once = [spec for spec in every if programs is None or start_of(spec) is None]
    await hub.prespawn(at_once, sessions=len(at_once) < len(every))
    states: dict[Path, dict[str, ServerState]] = {path: {} for path in evals}
    async with anyio.create_task_group() as tasks:
        for path, by_label in specs.items():
            for spec in by_label.values():
                tasks.start_soon(_list_one, hub, programs, spec, states[path])
    prepared = {}
    for path, (loaded, variants) in evals.items():
        one = PreparedEval(loaded, {label: states[path][label] for label in specs[path]})
        for variant in variants:
            check_named_tools(one, write_modes(loaded, variant, one.servers))
        check_comparable(one, variants)
        check_live(one, variants, allowed=allow_live)
        prepared[path] = one
    return prepared


async def _list_one(
    hub: Hub,
    programs: StartedPrograms | None,
    spec: UpstreamSpec,
    states: dict[str, ServerState],
) -> None:
    try:
        if programs is not None:
            await programs.ready(spec)
        listing = await hub.list_tools(spec)
    except ServerUnavailableError as error:
        found = error.as_failure().failure
        said = None if found.detail is None else spec.redact(found.detail)
        failure = replace(found, reason=spec.redact(found.reason), detail=said)
        states[spec.label] = ServerState(spec.label, {}, failure=failure)
        return
    states[spec.label] = ServerState(
        spec.label,
        listing.tools,
        protocol=listing.protocol,
        name=listing.name,
        version=listing.version,
    )
