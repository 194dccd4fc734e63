"""An eval config: what to evaluate and how."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from pytest_mst.domain.case import Case
from pytest_mst.domain.json_value import json_type
from pytest_mst.domain.model import (
    Count,
    JsonDict,
    ListOf,
    Milliseconds,
    Name,
    NonBlank,
    Share,
    UserModel,
)

StatedMode: TypeAlias = Literal["planned", "simulated", "server-planned", "live", "unguarded"]
"""A write mode that a config can state; `read-only` follows from a server's tools."""
ModeForAll: TypeAlias = Literal["planned", "simulated"]
"""A write mode that can be stated for every server at once."""

PROTOCOL_PATTERN = r"^(legacy|auto|[0-9]{4}-[0-9]{2}-[0-9]{2})$"
OBJECT_PATTERN = r"^[^\s:]+:[^\s:]+$"


def _protocol(text: str) -> str:
    if not re.fullmatch(PROTOCOL_PATTERN, text):
        msg = "expected legacy, auto, or a protocol revision such as 2025-06-18"
        raise ValueError(msg)
    return text


def check_object(text: str, example: str = "servers.local:server") -> str:
    """Refuse what is no `module:attribute`.

    Raises:
        ValueError: the text is none.

    """
    if not re.fullmatch(OBJECT_PATTERN, text):
        msg = f"expected module:attribute, such as {example}"
        raise ValueError(msg)
    return text


def _stated(value: object) -> object:
    """Refuse at once what is neither a mode for every server nor a mode for each label."""
    if isinstance(value, Mapping) or (isinstance(value, str) and value in get_args(ModeForAll)):
        return value
    found = repr(value) if isinstance(value, str) else json_type(value)
    msg = (
        f"expected planned or simulated for every server, or a mode for each label "
        f"such as {{chat: unguarded}}, got {found}"
    )
    raise ValueError(msg)


def _kind_of_writes(value: object) -> str:
    return BY_LABEL if isinstance(value, Mapping) else FOR_ALL


FOR_ALL = "one mode"
BY_LABEL = "by label"
"""The tags of the two ways to state write modes; pydantic names them in its error places."""

Writes: TypeAlias = Annotated[
    Annotated[ModeForAll, Tag(FOR_ALL)] | Annotated[dict[str, StatedMode], Tag(BY_LABEL)],
    Discriminator(_kind_of_writes),
    BeforeValidator(_stated, json_schema_input_type=ModeForAll | dict[str, StatedMode]),
]
"""One write mode for every server, or a mode by label."""


class Dispatcher(UserModel):
    """A tool that runs other tools: where its target's name and arguments are."""

    tool: NonBlank
    """The argument that holds the target's name: `create_issue`, or `github:create_issue`."""
    arguments: NonBlank | None = None
    """The argument that holds the target's arguments, as an object or as JSON text. Without it
    the target is an action, which has the whole call for its arguments."""
    batch: NonBlank | None = None
    """The argument that holds a list of calls, each an object with the two above."""
    read_targets: ListOf[NonBlank] = ()
    """Targets that only read, as calls name them."""

    @model_validator(mode="after")
    def _one_place_each(self) -> Dispatcher:
        places = [name for name in (self.tool, self.arguments, self.batch) if name is not None]
        if len(set(places)) < len(places):
            msg = "has one argument in two of tool, arguments and batch; they are different ones"
            raise ValueError(msg)
        return self


class ServerBase(UserModel):
    """What every server definition has, whatever its transport."""

    protocol: Annotated[
        str,
        AfterValidator(_protocol),
        WithJsonSchema({"type": "string", "pattern": PROTOCOL_PATTERN}),
    ] = "auto"
    """`legacy`, `auto`, or a protocol revision such as `2025-06-18`."""
    connect_timeout_ms: Milliseconds = 30_000
    """For starting or reaching the server, the handshake, and each page of its tools."""
    request_timeout_ms: Milliseconds = 30_000
    """For each request other than a tool call."""
    call_timeout_ms: Milliseconds = 120_000
    """For each tool call."""
    direct: bool = False
    """Whether the client connects to the server itself, with no proxy between."""
    isolation: Literal["attempt", "variant"] | None = None
    """Whether each attempt gets a server of its own, or those of a variant share one."""
    read_only_tools: ListOf[NonBlank] = ()
    """Tools that only read, though they are not annotated so."""
    always_write_tools: ListOf[NonBlank] = ()
    """Tools that write, though they are annotated as reads."""
    planned_write_key: NonBlank | None = None
    """The key by which the server, which stops writes itself, marks each one it stopped."""
    dispatchers: dict[str, Dispatcher] = {}
    """By tool: how it names the tool it runs."""
    replies: dict[str, Any] = {}
    """By tool: a template of the reply to a simulated write."""

    @model_validator(mode="after")
    def _read_or_write(self) -> ServerBase:
        both = sorted(set(self.read_only_tools) & set(self.always_write_tools))
        if both:
            msg = f"has {', '.join(map(repr, both))} both in readOnlyTools and in alwaysWriteTools"
            raise ValueError(msg)
        reads = sorted(set(self.read_only_tools) & set(self.dispatchers))
        if reads:
            msg = (
                f"has {', '.join(map(repr, reads))} both in readOnlyTools and in dispatchers: "
                "which of its calls are reads is said by readTargets"
            )
            raise ValueError(msg)
        return self


class StdioServer(ServerBase):
    """A server that is started as a process and spoken to over its standard streams."""

    transport: Literal["stdio"]
    command: NonBlank
    """`python` is the running interpreter."""
    args: ListOf[str] = ()
    env: dict[str, str] = {}
    """`${NAME}` takes a value from the environment, and keeps it secret."""
    cwd: NonBlank | None = None
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
    args: ListOf[str] = ()
    env: dict[str, str] = {}
    cwd: NonBlank | None = None
    ready_url: NonBlank
    """Answers once the program is ready."""
    timeout_ms: Milliseconds = 20_000


class HttpServer(ServerBase):
    """A server that is spoken to over streamable HTTP."""

    transport: Literal["http"]
    server_url: NonBlank
    headers: dict[str, str] = {}
    """`${NAME}` takes a value from the environment, and keeps it secret."""
    auth: HttpAuth | None = None
    start: StartedProcess | None = None

    @model_validator(mode="after")
    def _one_authorization(self) -> HttpServer:
        if self.auth is not None and any(name.lower() == "authorization" for name in self.headers):
            msg = "has both auth and an Authorization header; keep one of the two"
            raise ValueError(msg)
        return self


class PythonServer(ServerBase):
    """A server object in this process."""

    transport: Literal["python"]
    object: Annotated[
        str,
        AfterValidator(check_object),
        WithJsonSchema({"type": "string", "pattern": OBJECT_PATTERN}),
    ]
    """`module:attribute`; modules are looked up beside the eval config first."""


ServerConfig = Annotated[StdioServer | HttpServer | PythonServer, Field(discriminator="transport")]


class DatasetRef(UserModel):
    """Where cases are: a file, or a folder of them."""

    type: Literal["file", "dir"] = "file"
    path: NonBlank
    """Relative to the folder of the eval config."""
    recursive: bool = False
    """Whether folders in the folder are searched too."""

    @model_validator(mode="after")
    def _recursive_folder(self) -> DatasetRef:
        if self.recursive and self.type == "file":
            msg = "has recursive, which is for type: dir"
            raise ValueError(msg)
        return self


def _path_shorthand(value: object) -> object:
    """Let a path stand for `{type: file, path}`."""
    if isinstance(value, str):
        return {"path": value}
    if not isinstance(value, dict | DatasetRef):
        msg = f"expected a path, or an object with type and path, got {json_type(value)}"
        raise ValueError(msg)
    return value


DatasetRefOrPath: TypeAlias = Annotated[
    DatasetRef, BeforeValidator(_path_shorthand, json_schema_input_type=DatasetRef | NonBlank)
]
"""A path is short for `{type: file, path}`."""


class ServerStep(UserModel):
    """A call through our own connection, before or after a live attempt."""

    server: NonBlank
    tool: NonBlank
    arguments: JsonDict = {}


class Variant(UserModel):
    """One set-up being compared: a patch over the eval config."""

    name: Name
    servers: ListOf[NonBlank] | None = None
    """Labels of the servers this variant gives the client; all of them without it."""
    client: NonBlank | None = None
    model: NonBlank | None = None
    client_options: JsonDict = {}
    """Laid over the eval config's."""
    tools: Any = None
    input_template: NonBlank | None = None
    judges: ListOf[Any] | None = None
    """In place of the eval config's."""
    metrics: ListOf[Any] | None = None
    """In place of the eval config's."""
    writes: Writes | None = None


class ModelPrice(UserModel):
    """Prices of one model, in USD per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cache_read: Annotated[float, Field(ge=0)] | None = None
    cache_write: Annotated[float, Field(ge=0)] | None = None


class FileStore(UserModel):
    """Keep runs in a folder."""

    type: Literal["file"] = "file"
    dir: Name = ".mst-results"
    """Relative to pytest's root folder."""


class Results(UserModel):
    """Where runs are kept."""

    store: FileStore = FileStore()


class EvalConfig(UserModel):
    """What to evaluate and how; the content of an `*.eval.yaml` or `*.eval.json` file."""

    schema_: Annotated[Any, Field(alias="$schema")] = None
    """Where an editor finds the JSON Schema of this file."""
    name: Name
    description: str | None = None
    datasets: ListOf[DatasetRefOrPath] = ()
    """Files and folders with cases."""
    cases: ListOf[Case] = ()
    """Cases written in this file."""
    servers: dict[Name, ServerConfig] = {}
    """By label."""
    writes: Writes = "planned"
    """What becomes of the writes of every server, or of each by its label."""
    client: NonBlank = "scripted"
    """What acts on the input: a built-in client, or the name a plugin registered."""
    model: NonBlank | None = None
    client_options: JsonDict = {}
    """The client's own; `maxTurns`, `maxToolCalls` and `maxDurationMs` are known to every client
    and end an attempt in a trial.
    """
    trials: Count = 1
    """How many attempts at each case are planned, for each variant."""
    pass_threshold: Share = 1.0
    """The share of a case's trials that must pass."""
    timeout: Milliseconds = 300_000
    """Our deadline for one attempt, in milliseconds."""
    concurrency: Count | None = None
    """How many attempts are under way at once."""
    filter_tags: ListOf[str] = ()
    """Cases with one of these tags are run; all of them without it."""
    judges: ListOf[Any] = ()
    metrics: ListOf[Any] = ()
    input_template: NonBlank | None = None
    """What the client is given; `{{input}}` is the case's input."""
    setup: ListOf[ServerStep] = ()
    """Calls before each live attempt, through our own connection."""
    cleanup: ListOf[ServerStep] = ()
    """Calls after each live attempt, through our own connection."""
    variants: ListOf[Variant] = ()
    baseline: str | None = None
    """The name of the variant the others are compared with; the first without it."""
    pricing: dict[str, ModelPrice] = {}
    """By model: in place of the prices known for it."""
    results: Results = Results()
    redact_stored_responses: bool = False
    """Whether answers, outputs and judges' reasons are left out of stored files; such a run
    cannot be graded again.
    """

    @property
    def stated_results(self) -> str | None:
        """The folder that the file says runs are kept in; `None` where it says nothing of it."""
        return self.results.store.dir if "results" in self.model_fields_set else None

    def judges_of(self, variant: Variant) -> tuple[Any, ...]:
        """Return the judges that a variant's cases have beside their own."""
        return self.judges if variant.judges is None else variant.judges

    def client_options_of(self, variant: Variant, case: Case | None = None) -> dict[str, Any]:
        """Return `clientOptions`: the case's over the variant's over the eval's."""
        of_case = {} if case is None else case.client_options
        return {**self.client_options, **variant.client_options, **of_case}

    @property
    def variants_or_default(self) -> tuple[Variant, ...]:
        """The variants; where the file names none, the one called `default`."""
        return self.variants or (Variant(name="default"),)
