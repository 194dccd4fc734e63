"""From an eval and one of its variants to what its cases are put to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_mst.attempt.job import Target
from pytest_mst.attempt.live_plan import LivePlan, own_labels
from pytest_mst.attempt.load_check import upstream_specs
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.write_modes import labels_of, stated_mode, write_modes
from pytest_mst.clients.client import Client
from pytest_mst.domain.errors import LoadCheckError
from pytest_mst.domain.eval_config import EvalConfig, ServerBase, Variant
from pytest_mst.domain.identity import part_hash
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.upstream_spec import AttemptServer, Isolation, UpstreamSpec


def target_of(
    prepared: PreparedEval,
    variant: Variant,
    client: Client,
    environ: Mapping[str, str],
    *,
    log_path: Callable[[str], Path] | None,
    objects: Mapping[str, object] = MappingProxyType({}),
    run: str = "",
) -> Target:
    """Return what the cases of one variant are put to.

    Args:
        prepared: the eval, its servers listed.
        variant: one of its variants.
        client: the client to use.
        environ: where `${NAME}` is looked up.
        log_path: where a server's own words on stderr are kept, by its label.
        objects: live server objects in this process, by label.
        run: the name of the run: one that writes shares no server with another.

    Raises:
        LoadCheckError: a server's writes are not accounted for.
        ReferenceProblemError: a variable of the environment is not set.

    """
    config = prepared.loaded.config
    labels = labels_of(config, variant)
    modes = write_modes(prepared.loaded, variant, prepared.servers)
    _check_marks(prepared.loaded, modes)
    # what is really written there, others are not to read
    alone = {label: f"{run}\0{variant.name}" for label, mode in modes.items() if mode in _WRITTEN}
    specs = upstream_specs(
        prepared.loaded, labels, environ, log_path=log_path, objects=objects, alone=alone
    )
    states = [prepared.servers[label] for label in labels]
    target = Target(
        variant=variant.name,
        client=client,
        model=variant.model or config.model,
        options=config.client_options_of(variant),
        input_template=variant.input_template or config.input_template or "{{input}}",
        servers={
            label: _server(specs[label], config.servers[label], modes[label]) for label in labels
        },
        tools={state.label: state.tools_for(config.servers[state.label]) for state in states},
        modes=modes,
        definitions=definitions_of(config, variant),
        pricing=config.pricing,
        failure=next((state.failure for state in states if state.failure is not None), None),
    )
    if WriteMode.LIVE not in modes.values():
        return target
    plan = live_plan_of(prepared.loaded, environ, log_path=log_path, objects=objects, run=run)
    return _live(target, config, plan)


def _server(spec: UpstreamSpec, config: ServerBase, mode: WriteMode) -> AttemptServer:
    return AttemptServer(
        spec=spec, mode=mode, isolation=_isolation(config, mode), direct=config.direct
    )


_WRITTEN = frozenset({WriteMode.UNGUARDED, WriteMode.LIVE})


def live_plan_of(
    loaded: LoadedEval,
    environ: Mapping[str, str],
    *,
    log_path: Callable[[str], Path] | None,
    objects: Mapping[str, object] = MappingProxyType({}),
    run: str = "",
) -> LivePlan:
    """Return what surrounds the live attempts of an eval; see `target_of` for the arguments.

    Raises:
        ReferenceProblemError: a variable of the environment is not set.

    """
    config, labels = loaded.config, own_labels(loaded)
    ours = dict.fromkeys(labels, f"{run}\0ours")
    specs = upstream_specs(loaded, labels, environ, log_path=log_path, objects=objects, alone=ours)
    written = {
        "setup": [one.model_dump(by_alias=True) for one in config.setup],
        "servers": {label: _definition(config.servers[label]) for label in labels},
    }
    return LivePlan(config.setup, config.cleanup, specs, key=part_hash(written))


def _live(target: Target, config: EvalConfig, plan: LivePlan) -> Target:
    """Return a target with what surrounds its live attempts, and what stands for those that stop.

    Args:
        target: one of its servers is live.
        config: the eval config.
        plan: what surrounds them.

    """
    planned = {
        label: WriteMode.PLANNED if mode is WriteMode.LIVE else mode
        for label, mode in target.modes.items()
    }
    servers = {
        label: replace(
            server,
            mode=planned[label],
            isolation=_isolation(config.servers[label], planned[label]),
        )
        for label, server in target.servers.items()
    }
    stopped = replace(target, modes=planned, servers=servers, live=plan)
    return replace(target, live=plan, stopped=stopped)


def _check_marks(loaded: LoadedEval, modes: Mapping[str, WriteMode]) -> None:
    """Refuse servers that are to plan writes themselves and whose mark nobody knows.

    Where the eval is in a file, the check of that file has found it already.

    Raises:
        LoadCheckError: one has no `plannedWriteKey`.

    """
    for label, mode in modes.items():
        key = loaded.config.servers[label].planned_write_key
        if mode is WriteMode.SERVER_PLANNED and key is None:
            raise LoadCheckError(
                loaded.place("writes", label),
                f"server {label!r} is to plan writes itself and has no plannedWriteKey",
                server=label,
                remedy=f"write under `servers.{label}` by which key it marks what it stops",
            )


def _isolation(server: ServerBase, mode: WriteMode) -> Isolation:
    """Return who shares a connection.

    A client that connects itself has one of its own, and so has one that writes for real.
    """
    alone = server.direct or mode is WriteMode.LIVE
    return server.isolation or ("attempt" if alone else "variant")


def definitions_of(config: EvalConfig, variant: Variant) -> dict[str, dict[str, Any]]:
    """Return the servers of a variant as they are written, less what makes no difference.

    References to the environment are in it as such: no secret is.
    """
    return {
        label: {
            **_definition(config.servers[label]),
            "writes": stated_mode(config, variant, label),
        }
        for label in labels_of(config, variant)
    }


_WAITS: dict[str, Any] = {
    "connect_timeout_ms": True,
    "request_timeout_ms": True,
    "call_timeout_ms": True,
    "start": {"timeout_ms": True},
}


def _definition(config: ServerBase) -> dict[str, Any]:
    """Return a server's definition as it was written, less what makes no difference to it.

    That is how long to wait, and the order in which tools are named.
    """
    definition = config.model_dump(
        mode="json", by_alias=True, exclude_defaults=True, exclude=_WAITS
    )
    for names in ("readOnlyTools", "alwaysWriteTools"):
        if names in definition:
            definition[names] = sorted(definition[names])
    for dispatcher in definition.get("dispatchers", {}).values():
        if "readTargets" in dispatcher:
            dispatcher["readTargets"] = sorted(dispatcher["readTargets"])
    return definition
