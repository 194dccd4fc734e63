"""Evals as if read from a file, and servers as if listed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.domain.ending import Broke, InfrastructureFailure
from pytest_mst.domain.errors import Place
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.loaded import LoadedEval
from tests.attempt.servers.small import READS, WRITES

BROKEN = InfrastructureFailure(Broke.SETUP, "cannot be started", retryable=True)


def eval_of(folder: Path, **keys: Any) -> LoadedEval:
    """Make an eval as a file `team.eval.json` in a folder would hold it."""
    folder.mkdir(exist_ok=True)
    path = folder / "team.eval.json"
    config = EvalConfig.model_validate({"name": "team", **keys})
    return LoadedEval(path, config, (), (), {"": Place(str(path), 1)})


def state(label: str, kind: str = "writes") -> ServerState:
    """Make a server as the load check found it: it `reads`, it `writes`, or it is `gone`."""
    tools: Mapping[str, Mapping[str, Any]]
    match kind:
        case "gone":
            return ServerState(label, {}, failure=BROKEN)
        case "reads":
            tools = {one["name"]: one for one in READS}
        case _:
            tools = {one["name"]: one for one in [*READS, *WRITES]}
    return ServerState(label, tools, protocol="2025-11-25", name="small", version="7")


def prepared_of(loaded: LoadedEval, **kinds: str) -> PreparedEval:
    """Make an eval ready to run; servers write where it is not said what they do."""
    labels = loaded.config.servers
    return PreparedEval(loaded, {one: state(one, kinds.get(one, "writes")) for one in labels})
