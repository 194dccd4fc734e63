"""What a case is put to when its own fixtures have a say: config, servers or client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter, ValidationError

from pytest_mst.attempt.job import Target
from pytest_mst.attempt.started_servers import check_is_started
from pytest_mst.attempt.target import target_of
from pytest_mst.clients.registry import as_client
from pytest_mst.domain.ending import Broke, InfrastructureError
from pytest_mst.domain.errors import MstError, Place
from pytest_mst.domain.eval_config import EvalConfig, PythonServer, ServerConfig
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.plugin.case_item import TARGET_FIXTURES, CaseItem
from pytest_mst.plugin.pytest_private import overriding_fixtures
from pytest_mst.plugin.session import EvalSession

_SERVER = TypeAdapter[Any](ServerConfig)


@dataclass(frozen=True, slots=True)
class Given:
    """What the fixtures `mst_config`, `mst_servers` and `mst_client` gave."""

    config: Any
    servers: Mapping[str, Any]
    client: Any


def settle(session: EvalSession, case: CaseItem, item: pytest.Item, given: Given) -> None:
    """Settle what a case is put to, from its fixtures; a no-op where none is overridden.

    Raises:
        InfrastructureError: what a fixture gives cannot be used: a setup failure that a retry
            cannot help.

    """
    overridden = overriding_fixtures(item, TARGET_FIXTURES)
    if not overridden:
        return
    if case.shared_key is not None and case.shared_key in session.shared_targets:
        case.target = session.shared_targets[case.shared_key]
        return
    try:
        case.target = _target(session, case, item, given, frozenset(overridden))
    except (MstError, TypeError) as error:
        raise InfrastructureError(Broke.SETUP, str(error), retryable=False) from error
    if case.shared_key is not None:
        session.shared_targets[case.shared_key] = case.target


def _target(
    session: EvalSession,
    case: CaseItem,
    item: pytest.Item,
    given: Given,
    overridden: frozenset[str],
) -> Target:
    loaded = _loaded(session, case, item, given.config)
    servers = given.servers
    objects: dict[str, object] = {}
    definitions = dict(loaded.config.servers)
    for label, server in servers.items():
        if isinstance(server, Mapping):
            definitions[label] = _definition(label, server)
        else:
            # made anew for each attempt: a connection of the attempt's own, closed with it
            own: Literal["attempt"] | None = "attempt" if case.shared_key is None else None
            definitions[label] = PythonServer(
                transport="python", object=f"mst_servers:{label}", isolation=own
            )
            objects[label] = server
    variant = case.variant
    if servers and variant.servers is not None:
        variant = variant.model_copy(update={"servers": (*variant.servers, *servers)})
    if servers:
        config = loaded.config.model_copy(update={"servers": definitions})
        loaded = replace(loaded, config=config)
    if case.prepared is not None and case.prepared.loaded is loaded:
        prepared = case.prepared
    else:
        check_is_started(loaded, [one.loaded for one in session.prepared.values()])
        checked = session.engine.load_check({loaded.path: (loaded, [variant])}, objects)
        prepared = checked[loaded.path]
    case.run.take_in(prepared, os.environ)
    chosen = (
        as_client(given.client, asked_by="the fixture mst_client", registered=session.clients)
        if "mst_client" in overridden and session.settings.client is None
        else session.client(loaded.config, variant)
    )
    layout = case.run.layout
    target = target_of(
        prepared,
        variant,
        chosen,
        os.environ,
        log_path=lambda label: layout.server_log(variant.name, label),
        objects=objects,
        run=case.run.name,
    )
    if target.live is not None and (case.declared_writes or case.case.expected.writes is not None):
        msg = (
            "a server is live, and a test function that makes writes has no outcome checks; state "
            "`planned` or `simulated` for it, or write the case in an eval file"
        )
        raise TypeError(msg)
    return target


def _loaded(session: EvalSession, case: CaseItem, item: pytest.Item, config: Any) -> LoadedEval:
    """Return the eval that the fixture `mst_config` gives, or the marker names."""
    match config:
        case None if case.prepared is not None:
            return case.prepared.loaded
        case EvalConfig() if case.prepared is not None and config is case.prepared.loaded.config:
            return case.prepared.loaded
        case EvalConfig():
            return _bare(item, config)
        case str() | Path():
            path = session.root / config
            return session.prepared_at(path).loaded
        case Mapping():
            try:
                named = {"name": case.run.name, **config}  # the run's own, as is shown
                return _bare(item, EvalConfig.model_validate(named))
            except ValidationError as error:
                first = error.errors()[0]
                key = ".".join(str(part) for part in first["loc"])
                msg = (
                    f"the fixture mst_config gives an eval config whose {key or 'content'} is wrong"
                )
                raise TypeError(msg) from error
        case _:
            msg = (
                f"the fixture mst_config gives {type(config).__name__}; valid: an EvalConfig, the "
                "path of one, or its content as a dict"
            )
            raise TypeError(msg)


def _bare(item: pytest.Item, config: EvalConfig) -> LoadedEval:
    """Return an eval that is in no file."""
    return LoadedEval(
        path=item.path, config=config, cases=(), datasets=(), places={"": Place(str(item.path))}
    )


def _definition(label: str, server: Mapping[str, Any]) -> Any:
    try:
        return _SERVER.validate_python(dict(server))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        msg = f"the fixture mst_servers gives a definition of {label!r} whose {key} is wrong"
        raise TypeError(msg) from error
