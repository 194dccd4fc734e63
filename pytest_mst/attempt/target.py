"""From an eval and one of its variants to what its cases are put to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_mst.attempt.job import Target
from pytest_mst.attempt.load_check import upstream_specs
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.write_modes import labels_of, stated_mode, write_modes
from pytest_mst.clients.client import Client
from pytest_mst.domain.eval_config import EvalConfig, ServerBase, Variant
from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.upstream_spec import AttemptServer


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
    # what is really written there, others are not to read
    alone = {
        label: f"{run}\0{variant.name}"
        for label, mode in modes.items()
        if mode is WriteMode.UNGUARDED
    }
    specs = upstream_specs(
        prepared.loaded, labels, environ, log_path=log_path, objects=objects, alone=alone
    )
    states = [prepared.servers[label] for label in labels]
    return Target(
        variant=variant.name,
        client=client,
        model=variant.model or config.model,
        options={**config.client_options, **variant.client_options},
        input_template=variant.input_template or config.input_template or "{{input}}",
        servers={
            label: AttemptServer(
                spec=specs[label],
                mode=modes[label],
                isolation=config.servers[label].isolation or "variant",
            )
            for label in labels
        },
        tools={state.label: state.tools_for(config.servers[state.label]) for state in states},
        modes=modes,
        definitions=definitions_of(config, variant),
        failure=next((state.failure for state in states if state.failure is not None), None),
    )


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
    return definition
