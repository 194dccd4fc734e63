"""One eval's run in this process: its name, where it is written, and what is planned."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel

from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.attempt.suspicious_tools import suspicious_reads
from pytest_mst.attempt.write_modes import write_modes
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.json_value import content_hash
from pytest_mst.domain.loaded import DatasetInfo, LoadedEval
from pytest_mst.domain.plan import (
    PlannedCase,
    RunPlan,
    ServerInfo,
    ToolCounts,
    VariantInfo,
    tool_hashes,
    tools_hash,
)
from pytest_mst.eval_files.environment import MIN_SECRET_CHARS, secrets_of
from pytest_mst.providers.endpoint import KEY_VARIABLES
from pytest_mst.store.append import RunWriter
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.lock import RunLock
from pytest_mst.store.redact import Redactor


@dataclass(slots=True)
class EvalRun:
    """One eval's run."""

    name: str
    run_id: str
    created_at: str
    layout: RunLayout
    writer: RunWriter
    rules: RunRules = NO_RULES
    prepared: list[PreparedEval] = field(default_factory=list)
    """The evals it draws on: one for an eval file; the ones that its tests name for Python."""
    started: bool = False
    """Whether its plan was written down."""
    available: int = 0
    """How many cases by variants there are in all, chosen or not."""
    source: str = ""
    """The file it is written in, from pytest's root folder."""
    lock: RunLock = field(init=False)

    def __post_init__(self) -> None:
        self.lock = RunLock(self.layout)

    def take_in(self, prepared: PreparedEval, environ: Mapping[str, str]) -> None:
        """Draw on one more eval; what it keeps secret is kept out of everything written."""
        if any(one is prepared for one in self.prepared):
            return
        self.prepared.append(prepared)
        secrets = [secrets_of(one.loaded.config, environ) for one in self.prepared]
        secrets.extend(provider_keys(one.loaded, environ) for one in self.prepared)
        self.writer.redactor = Redactor(frozenset().union(*secrets))

    def plan(
        self,
        cases: Sequence[PlannedCase],
        variants: Sequence[VariantInfo],
        selection: Mapping[str, object],
        *,
        partial: bool,
    ) -> RunPlan:
        """Return what the run is to do, as `run.json` holds it."""
        datasets: list[DatasetInfo] = []
        for prepared in self.prepared:
            datasets.extend(prepared.loaded.datasets)
        config = self.prepared[0].loaded.config if self.prepared else None
        return RunPlan(
            run_id=self.run_id,
            eval_name=self.name,
            config_id=self.name,
            content_hash=content_hash(
                [
                    [
                        one.loaded.config.model_dump(
                            mode="json", by_alias=True, exclude_defaults=True
                        )
                    ]
                    + [dataset.content_hash for dataset in one.loaded.datasets]
                    for one in self.prepared
                ]
            ),
            created_at=self.created_at,
            cases=tuple(cases),
            partial=partial,
            selection=dict(selection),  # type: ignore[arg-type]  # options are JSON by making
            variants=tuple(variants),
            datasets=tuple(datasets),
            baseline=config.baseline if config else None,
            source=self.source,
        )


def provider_keys(loaded: LoadedEval, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the keys of model APIs that the environment holds, which nothing written may show.

    They are those in the variables that are known, and in those that the eval names.
    """
    config = loaded.config
    said: list[object] = [config.client_options, *config.judges]
    for variant in config.variants_or_default:
        said.extend([variant.client_options, *(variant.judges or ())])
    for one in loaded.cases:
        said.extend([one.case.client_options, *one.case.judges])
        older = one.case.assertions.passes_judge
        said.extend(older if isinstance(older, list | tuple) else [older])
    named = {variable for one in said for variable in _key_variables(one)}
    values = (environ.get(name, "") for name in named.union(KEY_VARIABLES))
    return frozenset(value for value in values if len(value) >= MIN_SECRET_CHARS)


def _key_variables(said: object) -> Iterator[str]:
    """Yield the variables that options of a client, or an entry of judges, name for a key.

    What a program is handed on by name may be one, too.
    """
    if isinstance(said, BaseModel):
        said = said.model_dump(by_alias=True)
    if not isinstance(said, Mapping):
        return
    if isinstance(said.get("apiKeyEnv"), str):
        yield said["apiKeyEnv"]
    handed_on = said.get("passEnv")
    if isinstance(handed_on, list | tuple):
        yield from (name for name in handed_on if isinstance(name, str))


def variant_info(
    prepared: PreparedEval, variant: Variant, client: str, model: str | None
) -> VariantInfo:
    """Return a variant as a run names it."""
    config = prepared.loaded.config
    modes = write_modes(prepared.loaded, variant, prepared.servers)
    servers = []
    for label, mode in modes.items():
        state = prepared.servers[label]
        tools = state.tools_for(config.servers[label])
        servers.append(
            ServerInfo(
                label=label,
                write_mode=mode,
                tools=ToolCounts.of(tools),
                tools_hash=tools_hash(tools),
                protocol=state.protocol,
                name=state.name,
                version=state.version,
                direct=config.servers[label].direct,
                suspicious=tuple(one.tool for one in suspicious_reads(tools)),
                tool_hashes=tool_hashes(tools),
            )
        )
    return VariantInfo(variant.name, client, model, tuple(servers))


def run_id_for(session_run_id: str, eval_name: str) -> str:
    """Return the id of one eval's run: the session's moment, and six hex digits of its own.

    Every process of a session arrives at the same id, without asking the others.
    """
    moment = session_run_id.rpartition("-")[0]
    digest = hashlib.sha256(f"{session_run_id}\0{eval_name}".encode("utf-8", "backslashreplace"))
    return f"{moment}-{digest.hexdigest()[:6]}"


def python_names(case: str, variant: str) -> tuple[str, ...]:
    """Return the names an item of a Python case can have in its file: with its variant or not."""
    with_ids = case.removesuffix("]") + f"-{variant}]" if case.endswith("]") else None
    return (case, with_ids or f"{case}[{variant}]")


def source_of(path: Path, root: Path) -> str:
    """Return a file as a run names it: from pytest's root folder, where it lies below it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def module_eval_name(test_file: Path, root: Path) -> str:
    """Return the name of the eval that a Python file's marked tests make up: its dotted path."""
    try:
        relative = test_file.relative_to(root)
    except ValueError:
        relative = Path(test_file.name)
    return ".".join(relative.with_suffix("").parts)
