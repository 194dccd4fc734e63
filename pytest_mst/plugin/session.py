"""This process's evals: what was loaded, the runs they make up, and the engine."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from pytest_mst.attempt.again import make, make_broken
from pytest_mst.attempt.budget import Budget
from pytest_mst.attempt.direct import DirectListings
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.function_judge import JudgeFunction
from pytest_mst.attempt.gates import Gates
from pytest_mst.attempt.job import Target
from pytest_mst.attempt.judge_asking import ModelAsking
from pytest_mst.attempt.load_check import upstream_specs
from pytest_mst.attempt.preflight import Preflight, preflight_from_json, preflight_to_json
from pytest_mst.attempt.prepared import PreparedEval, servers_from_json, servers_to_json
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.attempt.started_servers import check_is_started, started_labels
from pytest_mst.attempt.target import target_of
from pytest_mst.clients.client import Client
from pytest_mst.clients.registry import client_named
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.eval_config import EvalConfig, Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.domain.plan import RunPlan
from pytest_mst.domain.run import utc_text
from pytest_mst.eval_files.load import load_eval
from pytest_mst.eval_files.serialise import loaded_from_json, loaded_to_json
from pytest_mst.plugin.budget import new_budget, shared_budget
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.discover import Selected
from pytest_mst.plugin.engine import Engine
from pytest_mst.plugin.eval_run import EvalRun, run_id_for
from pytest_mst.plugin.judges import registered_judges
from pytest_mst.plugin.options import DEFAULT_CONCURRENCY, Settings
from pytest_mst.plugin.progress import Progress
from pytest_mst.plugin.registration import registered_clients
from pytest_mst.plugin.taken_up import TakenUp, taken_up_from_json
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from pytest_mst.store.append import RunWriter
from pytest_mst.store.backoff import Backoffs
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.run_id import new_run_id
from pytest_mst.store.stops import Stops


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The run that a case belongs to."""

    id: str
    eval_name: str
    folder: Path
    """Where it is kept, once something is written."""


MAIN_WORKER = "main"
"""The name, in journals, of the process that is no xdist worker."""


@dataclass(slots=True)
class EvalSession:
    """The evals of this process, under `--mst`."""

    settings: Settings
    root: Path
    run_id: str
    """Of the session; each eval's run has one derived from it."""
    created_at: str
    worker: str
    prepared: dict[Path, PreparedEval]
    selected: Selected
    engine: Engine
    progress: Progress | None = None
    """Of the controller only."""
    refused: bool = False
    """Collection met a mistake of the user's: nothing is to run."""
    taken_up: TakenUp | None = None
    """The stored runs that it finishes or grades again; only their cases run then."""
    clients: Mapping[str, Client] = field(default_factory=dict)
    """Those that were registered, by name."""
    judges: Mapping[str, JudgeFunction] = field(default_factory=dict)
    """Those that were registered, by name."""
    met: dict[str, dict[tuple[str, str], CaseItem]] = field(default_factory=dict)
    """Of runs that are taken up: every case that was collected, by variant and id."""
    preflight: Preflight = field(default_factory=dict)
    """What was found not to work before the first attempt, by `setup_key`."""
    budget: Budget | None = None
    """What its models may cost, over all its processes; `None`: whatever they do."""
    preflight_lines: tuple[str, ...] = ()
    """How that is shown at the start."""
    runs: dict[str, EvalRun] = field(default_factory=dict)
    shared_targets: dict[Hashable, Target] = field(default_factory=dict)
    """What cases of overriding fixtures are put to, by `CaseItem.shared_key`."""
    _targets: dict[tuple[str, Path, str, str], Target] = field(default_factory=dict)

    def run(self, name: str, prepared: PreparedEval | None) -> EvalRun:
        """Return the run of one eval, made when it is first asked for; nothing is written yet."""
        run = self.runs.get(name)
        if run is None:
            layout = self._layout(name, prepared)
            writer = RunWriter(layout, worker=self.worker)
            rules = RunRules(
                backoffs=Backoffs(layout.backoff_dir),
                run_id=layout.run_id,
                ask_judge=self.asking(prepared),
                budget=self.budget,
                gates=Gates(Stops(writer)),
                listings=DirectListings(),
            )
            run = EvalRun(name, layout.run_id, self.created_at, layout, writer, rules)
            self.runs[name] = run
        if prepared is not None:
            run.take_in(prepared, os.environ)
        return run

    def asking(self, prepared: PreparedEval | None) -> ModelAsking:
        """Return how the judges of an eval ask models."""
        pricing = prepared.loaded.config.pricing if prepared is not None else {}
        spent = None if self.budget is None else self.budget.spend_usage
        model = self.settings.ini.judge_model
        budget = self.budget
        why = None if budget is None else lambda: budget.why_stopped
        return ModelAsking(model, os.environ, pricing, spent=spent, why_stopped=why)

    def _layout(self, name: str, prepared: PreparedEval | None) -> RunLayout:
        """Return where the run of an eval is: a new one, or the one that is taken up."""
        earlier = self.taken_up.runs.get(name) if self.taken_up is not None else None
        if earlier is not None:
            return earlier.layout
        stated = prepared.loaded.config.stated_results if prepared else None
        folder = self.settings.results_dir(self.root, stated)
        return RunLayout(folder, name, run_id_for(self.run_id, name))

    def variants(self, config: EvalConfig) -> tuple[Variant, ...]:
        """Return the variants of an eval that this session runs."""
        return chosen_variants(config, self.settings)

    def tags(self, config: EvalConfig) -> tuple[str, ...]:
        """Return the tags that choose cases: the option's over the eval's own.

        None do where a run is taken up: which cases it has was decided when it was started.
        """
        if self.taken_up is not None:
            return ()
        return self.settings.tags or config.filter_tags

    def trials(self, config: EvalConfig | None, stated: int | None) -> int:
        """Return how many attempts a case gets: option over case over eval over ini."""
        of_file = config.trials if config and "trials" in config.model_fields_set else None
        return self.settings.trials or stated or of_file or self.settings.ini.trials or 1

    def client(self, config: EvalConfig, variant: Variant, case: Case | None = None) -> Client:
        """Return the client: option over case over variant over eval.

        Raises:
            SelectionError: there is no client of that name.

        """
        if self.settings.client is not None:
            name, asked_by = self.settings.client, "--mst-client"
        else:
            name = client_of(self.settings, config, variant, case)
            asked_by = f"client of eval {config.name!r}"
        return client_named(name, asked_by=asked_by, registered=self.clients)

    def with_model(self, config: EvalConfig, variant: Variant, case: Case) -> Case:
        """Return a case with the model that its attempts ask, where it has another or none."""
        model = model_of(self.settings, config, variant, case)
        if model == (case.model or variant.model or config.model):
            return case
        return case.model_copy(update={"model": model})

    def target(
        self, run: EvalRun, prepared: PreparedEval, variant: Variant, client: Client
    ) -> Target:
        """Return what the cases of a variant are put to in a run; made once."""
        key = (run.name, prepared.loaded.path, variant.name, client.name)
        target = self._targets.get(key)
        if target is None:
            log_path = partial(run.layout.server_log, variant.name)
            target = target_of(
                prepared, variant, client, os.environ, log_path=log_path, run=run.name
            )
            self._targets[key] = target
        return target

    def prepared_at(self, path: Path) -> PreparedEval:
        """Return the eval of a config; one that was not foreseen is loaded now.

        Raises:
            MstError: the file is wrong, or its servers' writes are not accounted for.

        """
        found = self.prepared.get(path)
        if found is None:
            loaded = load_eval(path, environ=os.environ, needs_cases=False)
            check_names([*(one.loaded for one in self.prepared.values()), loaded])
            check_is_started(loaded, [one.loaded for one in self.prepared.values()])
            variants = self.variants(loaded.config)
            found = self.engine.load_check({path: (loaded, variants)})[path]
            self.prepared[path] = found
        return found

    def keep_program_logs(self, run: EvalRun, plan: RunPlan) -> None:
        """Have what the programs of a run's servers write kept in its folder, if we started any.

        Args:
            run: the run; its plan is written down.
            plan: its plan.

        """
        evals = run.prepared or list(self.prepared.values())

        def specs() -> Iterator[UpstreamSpec]:
            for variant, one in product(plan.variants, evals):
                labels = started_labels(one.loaded.config) & {
                    server.label for server in variant.servers
                }
                log_path = partial(run.layout.server_log, variant.name)
                yield from upstream_specs(
                    one.loaded, sorted(labels), os.environ, log_path=log_path
                ).values()

        self.engine.keep_program_logs(specs)

    def store_failure(
        self,
        case: CaseItem,
        failure: InfrastructureFailure,
        raised: BaseException | None = None,
    ) -> FinishedAttempt | None:
        """Store an attempt that ended before its client could begin, once it is judged.

        Args:
            case: the case, at the trial that the attempt is.
            failure: why.
            raised: the exception that it was told from.

        """
        target = case.target or Target.missing(case.variant.name)
        if case.stands(case.trial):  # what is stored of it stands, whatever broke now
            stored = case.attempt(case.trial, target)
            return self.engine.call(make, stored, self.engine.hub, case.run.writer)
        job = replace(case.attempt(case.trial, target), target=replace(target, failure=failure))
        return self.engine.call(make_broken, job, case.run.writer, case.run.rules, failure, raised)

    def frozen(self) -> str:
        """Write what workers need: what was loaded, and what the load check found."""
        return json.dumps(
            {
                "runId": self.run_id,
                "createdAt": self.created_at,
                "takenUp": self.taken_up.to_json() if self.taken_up is not None else None,
                "spent": None if self.budget is None else str(self.budget.spent.path),
                "preflight": preflight_to_json(self.preflight),
                "evals": [
                    [loaded_to_json(one.loaded), servers_to_json(one.servers)]
                    for one in self.prepared.values()
                ],
            }
        )


def check_names(evals: Iterable[LoadedEval]) -> None:
    """Refuse two evals of one name: their runs would lie in one folder.

    Raises:
        EvalFileError: there are two.

    """
    seen: dict[str, LoadedEval] = {}
    for one in evals:
        other = seen.setdefault(one.config.name.casefold(), one)
        if other is not one:
            raise EvalFileError(
                one.place("name"),
                f"the eval in {other.place('name').file} has the name {other.config.name!r} too",
                "give each eval a name of its own",
            )


def chosen_variants(config: EvalConfig, settings: Settings) -> tuple[Variant, ...]:
    """Return the variants of an eval that a session runs."""
    there = config.variants_or_default
    return tuple(v for v in there if not settings.variants or v.name in settings.variants)


def client_of(settings: Settings, config: EvalConfig, variant: Variant, case: Case | None) -> str:
    """Return the name of a case's client: option over case over variant over eval over ini."""
    of_file = config.client if "client" in config.model_fields_set else None
    return (
        settings.client
        or (case.client if case else None)
        or variant.client
        or of_file
        or settings.ini.client
        or config.client
    )


def model_of(
    settings: Settings, config: EvalConfig, variant: Variant, case: Case | None
) -> str | None:
    """Return the model of a case: option over case over variant over eval over ini."""
    return (
        settings.model
        or (case.model if case else None)
        or variant.model
        or config.model
        or settings.ini.model
    )


def start_session(
    config: pytest.Config,
    prepared: Mapping[Path, PreparedEval],
    selected: Selected,
    engine: Engine,
    taken_up: TakenUp | None = None,
) -> EvalSession:
    """Return the session of a process that loaded its evals itself."""
    now, settings = datetime.now(UTC), Settings.of(config)
    return EvalSession(
        settings=settings,
        root=config.rootpath,
        run_id=new_run_id(now),
        created_at=utc_text(now),
        worker=MAIN_WORKER,
        prepared=dict(prepared),
        selected=selected,
        engine=engine,
        clients=registered_clients(config),
        judges=registered_judges(config),
        taken_up=taken_up,
        budget=new_budget(config, settings),
    )


def thaw_session(config: pytest.Config, frozen: str, worker: str, engine: Engine) -> EvalSession:
    """Return the session of a worker, from what the controller froze.

    Raises:
        StoreError: a run that is taken up cannot be read.

    """
    content, settings = json.loads(frozen), Settings.of(config)
    prepared = {}
    for loaded_text, servers_text in content["evals"]:
        one = PreparedEval(loaded_from_json(loaded_text), servers_from_json(servers_text))
        prepared[one.loaded.path] = one
    return EvalSession(
        settings=settings,
        root=config.rootpath,
        run_id=content["runId"],
        created_at=content["createdAt"],
        worker=worker,
        prepared=prepared,
        selected=Selected((), (), ()),
        preflight=preflight_from_json(content["preflight"]),
        engine=engine,
        clients=registered_clients(config),
        judges=registered_judges(config),
        budget=shared_budget(settings, content["spent"]),
        taken_up=taken_up_from_json(content["takenUp"], settings) if content["takenUp"] else None,
    )


def concurrency(settings: Settings, evals: Iterable[EvalConfig], workers: int) -> int:
    """Return how many attempts a process has under way at once: its share, at least one."""
    stated = [one.concurrency for one in evals]
    of_files = max((n for n in stated if n), default=None)
    total = settings.concurrency or of_files or settings.ini.concurrency or DEFAULT_CONCURRENCY
    return max(1, total // workers)
