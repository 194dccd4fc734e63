"""An eval config: what to evaluate and how."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from pytest_mst.domain.case import Case, Count, JsonDict, NonBlank, Share, _as_tuple
from pytest_mst.domain.model import UserModel

Milliseconds = Annotated[int, Field(gt=0)]
Strings = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]

StatedMode: TypeAlias = Literal["planned", "simulated", "server-planned", "live", "unguarded"]
"""A write mode that a config can state; `read-only` follows from a server's tools."""
ModeForAll: TypeAlias = Literal["planned", "simulated"]


class Dispatcher(UserModel):
    """A tool that runs other tools: where its target's name and arguments are."""

    tool: NonBlank
    arguments: NonBlank | None = None
    batch: NonBlank | None = None
    read_targets: Strings = ()


class ServerBase(UserModel):
    """What every server definition has, whatever its transport."""

    protocol: str = "auto"
    """`legacy`, `auto`, or a protocol revision such as `2025-06-18`."""
    connect_timeout_ms: Milliseconds = 30_000
    """For starting or reaching the server, the handshake, and each page of its tools."""
    request_timeout_ms: Milliseconds = 30_000
    """For each request other than a tool call."""
    call_timeout_ms: Milliseconds = 120_000
    """For each tool call."""
    direct: bool = False
    isolation: Literal["attempt", "variant"] | None = None
    read_only_tools: Strings = ()
    always_write_tools: Strings = ()
    planned_write_key: NonBlank | None = None
    dispatchers: dict[str, Dispatcher] = {}
    replies: dict[str, Any] = {}
    """By tool: a template of the reply to a simulated write."""


class StdioServer(ServerBase):
    """A server that is started as a process and spoken to over its standard streams."""

    transport: Literal["stdio"]
    command: NonBlank
    """`python` is the running interpreter."""
    args: Strings = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    """Default: the folder of the eval config."""
    inherit_env: bool = False
    """Whether the whole environment is handed on, not only a safe part of it."""


class HttpAuth(UserModel):
    """Credentials for an HTTP server."""

    access_token_env: NonBlank
    """The name of the environment variable that holds a bearer token."""


class StartedProcess(UserModel):
    """A program that the run starts and stops, for a server spoken to over HTTP."""

    command: NonBlank
    args: Strings = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    ready_url: NonBlank
    timeout_ms: Milliseconds = 20_000


class HttpServer(ServerBase):
    """A server that is spoken to over streamable HTTP."""

    transport: Literal["http"]
    server_url: NonBlank
    headers: dict[str, str] = {}
    auth: HttpAuth | None = None
    start: StartedProcess | None = None


class PythonServer(ServerBase):
    """A server object in this process."""

    transport: Literal["python"]
    object: NonBlank
    """`module:attribute`; modules are looked up beside the eval config first."""


ServerConfig = Annotated[StdioServer | HttpServer | PythonServer, Field(discriminator="transport")]


class DatasetRef(UserModel):
    """Where cases are: a file, or a folder of them."""

    type: Literal["file", "dir"] = "file"
    path: NonBlank
    recursive: bool = False


def _path_shorthand(value: object) -> object:
    """Let a path stand for `{type: file, path}`."""
    return {"path": value} if isinstance(value, str) else value


class ServerStep(UserModel):
    """A call through our own connection, before or after a live attempt."""

    server: NonBlank
    tool: NonBlank
    arguments: JsonDict = {}


class Variant(UserModel):
    """One set-up being compared: a patch over the eval config."""

    name: NonBlank
    servers: Strings | None = None
    """Labels of the servers this variant gives the client; all of them without it."""
    client: str | None = None
    model: str | None = None
    client_options: JsonDict = {}
    tools: Any = None
    input_template: str | None = None
    judges: Annotated[tuple[Any, ...], BeforeValidator(_as_tuple)] | None = None
    metrics: Annotated[tuple[Any, ...], BeforeValidator(_as_tuple)] | None = None
    writes: ModeForAll | dict[str, StatedMode] | None = None


class ModelPrice(UserModel):
    """Prices of one model, in USD per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cache_read: Annotated[float, Field(ge=0)] | None = None
    cache_write: Annotated[float, Field(ge=0)] | None = None


class FileStore(UserModel):
    """Keep runs in a folder."""

    type: Literal["file"] = "file"
    dir: NonBlank = ".mst-results"
    """Relative to pytest's root folder."""


class Results(UserModel):
    """Where runs are kept."""

    store: FileStore = FileStore()


class EvalConfig(UserModel):
    """What to evaluate and how; the content of an `*.eval.yaml` or `*.eval.json` file."""

    schema_: Annotated[Any, Field(alias="$schema")] = None
    name: NonBlank
    description: str | None = None
    datasets: Annotated[
        tuple[Annotated[DatasetRef, BeforeValidator(_path_shorthand)], ...],
        BeforeValidator(_as_tuple),
    ] = ()
    cases: Annotated[tuple[Case, ...], BeforeValidator(_as_tuple)] = ()
    servers: dict[str, ServerConfig] = {}
    writes: ModeForAll | dict[str, StatedMode] = "planned"
    client: str = "scripted"
    model: str | None = None
    client_options: JsonDict = {}
    trials: Count = 1
    pass_threshold: Share = 1.0
    timeout: Milliseconds = 300_000
    """Our deadline for one attempt, in milliseconds."""
    concurrency: Count | None = None
    filter_tags: Strings = ()
    judges: Annotated[tuple[Any, ...], BeforeValidator(_as_tuple)] = ()
    metrics: Annotated[tuple[Any, ...], BeforeValidator(_as_tuple)] = ()
    input_template: str | None = None
    setup: Annotated[tuple[ServerStep, ...], BeforeValidator(_as_tuple)] = ()
    cleanup: Annotated[tuple[ServerStep, ...], BeforeValidator(_as_tuple)] = ()
    variants: Annotated[tuple[Variant, ...], BeforeValidator(_as_tuple)] = ()
    baseline: str | None = None
    pricing: dict[str, ModelPrice] = {}
    results: Results = Results()
    redact_stored_responses: bool = False

    @property
    def variants_or_default(self) -> tuple[Variant, ...]:
        """The variants; where the file names none, the one called `default`."""
        return self.variants or (Variant(name="default"),)
