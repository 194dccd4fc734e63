"""An eval that is ready to run: its files read, its servers listed, every write accounted for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_mst.domain.ending import InfrastructureFailure, ending_from_json, ending_to_json
from pytest_mst.domain.eval_config import ServerBase
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.write import ServerTools


@dataclass(frozen=True, slots=True)
class ServerState:
    """One server as the load check found it."""

    label: str
    tools: Mapping[str, Mapping[str, Any]]
    """By name, in the server's order; all pages."""
    protocol: str | None = None
    name: str | None = None
    version: str | None = None
    failure: InfrastructureFailure | None = None
    """Why the server could not be used; every attempt that needs it ends with this."""

    def tools_for(self, config: ServerBase) -> ServerTools:
        """Return the tools with what the eval config says of them."""
        return ServerTools.as_configured(self.label, self.tools, config)


@dataclass(frozen=True, slots=True)
class PreparedEval:
    """An eval's files and what the load check found; plain data, handed to other processes."""

    loaded: LoadedEval
    servers: Mapping[str, ServerState]


def servers_to_json(servers: Mapping[str, ServerState]) -> str:
    """Write what the load check found, for another process."""
    return json.dumps(
        [
            {
                "label": state.label,
                "tools": dict(state.tools),
                "protocol": state.protocol,
                "name": state.name,
                "version": state.version,
                "failure": None if state.failure is None else ending_to_json(state.failure),
            }
            for state in servers.values()
        ]
    )


def servers_from_json(text: str) -> dict[str, ServerState]:
    """Read back what `servers_to_json` wrote."""
    states = {}
    for one in json.loads(text):
        failure = None if one["failure"] is None else ending_from_json(one["failure"])
        states[one["label"]] = ServerState(
            label=one["label"],
            tools=one["tools"],
            protocol=one["protocol"],
            name=one["name"],
            version=one["version"],
            failure=failure if isinstance(failure, InfrastructureFailure) else None,
        )
    return states
