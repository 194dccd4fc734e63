"""What a run is to do: its cases, how often each is tried, and by what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytest_mst.domain.identity import KEY_SCHEME, part_hash
from pytest_mst.domain.json_value import JsonValue, content_hash
from pytest_mst.domain.loaded import DatasetInfo
from pytest_mst.domain.resumption import Resumption, resumptions_from_json
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stored_field import (
    Stored,
    flag_field,
    integer_field,
    number_field,
    object_field,
    object_list_field,
    optional_object_field,
    optional_text_field,
    text_field,
    text_list_field,
)
from pytest_mst.domain.write import ServerTools, WriteMode


@dataclass(frozen=True, slots=True)
class ToolCounts:
    """How many tools a server lists, by what they say of themselves."""

    total: int = 0
    reads: int = 0
    declared_writes: int = 0
    """Writes by their annotations or by the eval config's word."""
    unhinted: int = 0
    """Held as writes because nothing says what they are."""

    @classmethod
    def of(cls, tools: ServerTools) -> ToolCounts:
        """Count the tools of a server."""
        writes, unhinted = len(tools.writes), len(tools.unhinted)
        return cls(
            total=len(tools.tools),
            reads=len(tools.tools) - writes,
            declared_writes=writes - unhinted,
            unhinted=unhinted,
        )


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server as a run names it."""

    label: str
    write_mode: WriteMode
    tools: ToolCounts = ToolCounts()
    tools_hash: str = ""
    """Of the whole tool list, as the server sent it; see `tools_hash`."""
    protocol: str | None = None
    """The revision that was agreed on; `None` for a server that was not reached."""
    name: str | None = None
    """What the server calls itself."""
    version: str | None = None
    direct: bool = False
    """Whether the client is connected to it itself, with no proxy between."""
    suspicious: tuple[str, ...] = ()
    """Its tools that are let through as reads by their hints, and look like writes."""
    tool_hashes: Mapping[str, str] = field(default_factory=dict)
    """Of each tool as the server sent it, by name: what tells which one changed."""


def tool_hashes(tools: ServerTools) -> dict[str, str]:
    """Hash each of a server's tools."""
    return {name: part_hash(dict(tool)) for name, tool in tools.tools.items()}


def tools_hash(tools: ServerTools) -> str:
    """Hash a server's tool list, so that a later run can tell whether it changed."""
    return content_hash([dict(tool) for tool in tools.tools.values()])


@dataclass(frozen=True, slots=True)
class VariantInfo:
    """A variant as a run names it."""

    name: str
    client: str
    model: str | None = None
    servers: tuple[ServerInfo, ...] = ()

    @property
    def unguarded(self) -> bool:
        """Whether nobody knows what becomes of the writes to one of its servers."""
        return any(server.write_mode is WriteMode.UNGUARDED for server in self.servers)

    @property
    def live(self) -> tuple[str, ...]:
        """The labels of its servers whose writes are really made."""
        return tuple(one.label for one in self.servers if one.write_mode is WriteMode.LIVE)

    @property
    def out_of_sight(self) -> tuple[str, ...]:
        """The labels of its unguarded servers that no proxy stands before."""
        unguarded = (one for one in self.servers if one.write_mode is WriteMode.UNGUARDED)
        return tuple(one.label for one in unguarded if one.direct)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case for one variant."""

    variant: str
    case: str
    """The case's id."""
    dataset: str
    trials: int
    pass_threshold: float = 1.0
    """The share of trials, 0 to 1, that must pass."""
    skip: str | None = None
    """Why it is not run; then it is outside the ledger."""
    write_case: bool = False
    """Whether the case says which writes it expects."""
    unguarded: bool = False
    writes_stopped: bool = False
    """Whether its writes are stopped though a server is live, since nothing checks its outcome."""
    gone: bool = False
    """Whether the case was there no more when the run was taken up again."""

    @property
    def attempts(self) -> Iterator[AttemptId]:
        """The attempts that are to be made; none of a skipped case."""
        for trial in range(0 if self.skip is not None else self.trials):
            yield AttemptId(self.variant, self.case, trial)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One execution of an eval, as it was decided before anything ran."""

    run_id: str
    eval_name: str
    config_id: str
    content_hash: str
    created_at: str
    """ISO 8601, UTC."""
    cases: tuple[PlannedCase, ...]
    """Each variant with each of its cases, once."""
    partial: bool = False
    """Whether cases, variants or trials of the eval were left out by choice."""
    selection: Mapping[str, JsonValue] = field(default_factory=dict)
    """The options that chose and overrode, so that the run can be finished with them."""
    variants: tuple[VariantInfo, ...] = ()
    datasets: tuple[DatasetInfo, ...] = ()
    judges: tuple[JsonValue, ...] = ()
    baseline: str | None = None
    source: str = ""
    """The eval config or the test file, from pytest's root folder; empty where it is not known."""
    resumptions: tuple[Resumption, ...] = ()
    """The times that the run was taken up again."""
    key_scheme: int = KEY_SCHEME
    """How the keys of its attempts were made; keys of another scheme compare as nothing."""

    @property
    def attempts(self) -> Iterator[AttemptId]:
        """Every attempt that is to be made, in the plan's order."""
        for case in self.cases:
            yield from case.attempts

    def to_json(self) -> dict[str, object]:
        """Write the plan as a part of a stored run's `run.json`."""
        stored: dict[str, object] = {
            "runId": self.run_id,
            "evalName": self.eval_name,
            "configId": self.config_id,
            "contentHash": self.content_hash,
            "createdAt": self.created_at,
            "variants": [_variant_to_json(variant) for variant in self.variants],
            "datasets": [
                {"name": one.name, "caseCount": one.case_count, "contentHash": one.content_hash}
                for one in self.datasets
            ],
            "judges": list(self.judges),
            "partial": self.partial,
            "selection": dict(self.selection),
            "keyScheme": self.key_scheme,
            "plannedCases": [_case_to_json(case) for case in self.cases],
        }
        if self.baseline is not None:
            stored["baseline"] = self.baseline
        if self.source:
            stored["source"] = self.source
        if self.resumptions:
            stored["resumedAt"] = [one.at for one in self.resumptions if one.kind == "resume"]
            stored["resumptions"] = [one.to_json() for one in self.resumptions]
        return stored


def plan_from_json(stored: Stored) -> RunPlan:
    """Read the plan back from a `run.json`; fields that are not known are ignored.

    Raises:
        ValueError: a field is missing or has a wrong type.

    """
    return RunPlan(
        run_id=text_field(stored, "runId"),
        eval_name=text_field(stored, "evalName"),
        config_id=text_field(stored, "configId"),
        content_hash=text_field(stored, "contentHash"),
        created_at=text_field(stored, "createdAt"),
        cases=tuple(_case_from_json(one) for one in object_list_field(stored, "plannedCases")),
        partial=flag_field(stored, "partial"),
        selection=dict(optional_object_field(stored, "selection") or {}),
        variants=tuple(_variant_from_json(one) for one in object_list_field(stored, "variants")),
        datasets=tuple(
            DatasetInfo(
                text_field(one, "name"),
                integer_field(one, "caseCount"),
                text_field(one, "contentHash"),
            )
            for one in object_list_field(stored, "datasets")
        ),
        judges=tuple(stored.get("judges") or ()),
        baseline=optional_text_field(stored, "baseline"),
        source=text_field(stored, "source", ""),
        key_scheme=integer_field(stored, "keyScheme", 0),
        resumptions=resumptions_from_json(stored),
    )


def _variant_to_json(variant: VariantInfo) -> dict[str, object]:
    return {
        "name": variant.name,
        "servers": [_server_to_json(server) for server in variant.servers],
        "client": variant.client,
        "model": variant.model,
    }


def _variant_from_json(stored: Stored) -> VariantInfo:
    return VariantInfo(
        name=text_field(stored, "name"),
        client=text_field(stored, "client"),
        model=optional_text_field(stored, "model"),
        servers=tuple(_server_from_json(one) for one in object_list_field(stored, "servers")),
    )


def _server_to_json(server: ServerInfo) -> dict[str, object]:
    return {
        "label": server.label,
        "writeMode": server.write_mode.value,
        "tools": {
            "total": server.tools.total,
            "reads": server.tools.reads,
            "declaredWrites": server.tools.declared_writes,
            "unhinted": server.tools.unhinted,
        },
        "toolsHash": server.tools_hash,
        "protocol": server.protocol,
        "name": server.name,
        "version": server.version,
        "toolHashes": dict(server.tool_hashes),
        **({"direct": True} if server.direct else {}),
        **({"suspicious": list(server.suspicious)} if server.suspicious else {}),
    }


def _server_from_json(stored: Stored) -> ServerInfo:
    tools = object_field(stored, "tools")
    return ServerInfo(
        label=text_field(stored, "label"),
        write_mode=WriteMode(text_field(stored, "writeMode")),
        tools=ToolCounts(
            total=integer_field(tools, "total"),
            reads=integer_field(tools, "reads"),
            declared_writes=integer_field(tools, "declaredWrites"),
            unhinted=integer_field(tools, "unhinted"),
        ),
        tools_hash=text_field(stored, "toolsHash"),
        protocol=optional_text_field(stored, "protocol"),
        name=optional_text_field(stored, "name"),
        version=optional_text_field(stored, "version"),
        direct=flag_field(stored, "direct", default=False),
        suspicious=text_list_field(stored, "suspicious"),
        tool_hashes=dict(optional_object_field(stored, "toolHashes") or {}),
    )


def _case_to_json(case: PlannedCase) -> dict[str, object]:
    stored: dict[str, object] = {
        "variant": case.variant,
        "id": case.case,
        "datasetName": case.dataset,
        "trials": case.trials,
        "passThreshold": case.pass_threshold,
        "writeCase": case.write_case,
        "unguarded": case.unguarded,
    }
    if case.skip is not None:
        stored["skip"] = case.skip
    if case.writes_stopped:
        stored["writesStopped"] = True
    if case.gone:
        stored["gone"] = True
    return stored


def _case_from_json(stored: Stored) -> PlannedCase:
    threshold = number_field(stored, "passThreshold")
    return PlannedCase(
        variant=text_field(stored, "variant"),
        case=text_field(stored, "id"),
        dataset=text_field(stored, "datasetName"),
        trials=integer_field(stored, "trials"),
        pass_threshold=1.0 if threshold is None else threshold,
        skip=optional_text_field(stored, "skip"),
        write_case=flag_field(stored, "writeCase", default=False),
        unguarded=flag_field(stored, "unguarded", default=False),
        writes_stopped=flag_field(stored, "writesStopped", default=False),
        gone=flag_field(stored, "gone", default=False),
    )
