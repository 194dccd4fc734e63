"""What a connection to a server needs, and what an attempt asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_mst.domain.eval_config import HttpServer, PythonServer, StdioServer
from pytest_mst.domain.json_value import content_hash
from pytest_mst.domain.write import ServerTools, WriteMode

Isolation: TypeAlias = Literal["attempt", "variant"]

_NOT_OF_THE_CONNECTION = {
    "isolation",
    "direct",
    "read_only_tools",
    "always_write_tools",
    "planned_write_key",
    "dispatchers",
    "replies",
}
"""Settings that say what becomes of calls, not how the server is reached."""
_OF_THE_POLICY = {
    "read_only_tools",
    "always_write_tools",
    "planned_write_key",
    "dispatchers",
    "replies",
}


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """Everything needed to open a connection to one server; secrets are already resolved."""

    label: str
    config: StdioServer | HttpServer | PythonServer = field(repr=False)
    """Not shown in a repr: it may hold secrets."""
    base_dir: Path
    """The folder of the eval config: default working folder, and where modules are looked up."""
    log_path: Path | None = None
    """Where the server's standard error is appended, from the server's start, whoever started it;
    made when there is something to append, for its owner only. `None` keeps it nowhere."""
    redact: Callable[[str], str] = field(default=str, repr=False, compare=False)
    """Takes the secrets out of what is appended there."""
    longest_secret_bytes: int = field(default=0, repr=False, compare=False)
    """Of what `redact` takes out."""
    server_object: object | None = None
    """A live server object in this process; it stands in for `config.object`."""
    group: str = ""
    """Only attempts of equal group share a connection, for example those of one variant."""
    identity: str = field(init=False, compare=False, default="")
    """Equal for specs that may share a connection. Holds a hash only, no secret."""
    policy_identity: str = field(init=False, compare=False, default="")
    """Equal for specs whose calls are decided alike, given the same tools."""

    def __post_init__(self) -> None:
        """Compute the identities once: they are looked up in every attempt."""
        connection = self.config.model_dump(mode="json", exclude=_NOT_OF_THE_CONNECTION)
        parts = [
            self.label,
            self.group,
            str(self.base_dir),
            connection,
            None if self.server_object is None else id(self.server_object),
        ]
        object.__setattr__(self, "identity", content_hash(parts))
        deciding = self.config.model_dump(mode="json", include=_OF_THE_POLICY)
        object.__setattr__(self, "policy_identity", content_hash([self.label, deciding]))

    @property
    def connect_timeout_s(self) -> float:
        """For starting or reaching the server with its handshake, and for each page of tools."""
        return self.config.connect_timeout_ms / 1000

    @property
    def request_timeout_s(self) -> float:
        """For each request other than a tool call."""
        return self.config.request_timeout_ms / 1000

    @property
    def call_timeout_s(self) -> float:
        """For each tool call."""
        return self.config.call_timeout_ms / 1000


@dataclass(frozen=True, slots=True)
class AttemptServer:
    """One server of an attempt: how to reach it and what happens to its writes."""

    spec: UpstreamSpec
    mode: WriteMode
    isolation: Isolation = "variant"
    """`attempt`: a connection of this attempt's own; `variant`: shared."""
    direct: bool = False
    """Whether the client connects to the server itself: calls go on as they are, unrecorded."""


@dataclass(frozen=True, slots=True)
class ServerListing:
    """What a server says it is and offers."""

    label: str
    tools: Mapping[str, Mapping[str, object]]
    """All pages, by name in the server's order, each as the server sent it."""
    name: str | None
    version: str | None
    protocol: str
    """The protocol revision agreed on."""
    instructions: str | None = None

    def server_tools(self, config: StdioServer | HttpServer | PythonServer) -> ServerTools:
        """Tell reads from writes by the config's word and the tools' annotations."""
        return ServerTools.as_configured(self.label, self.tools, config)
