"""Finding the runs that a session takes up again, and restoring what they were started with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pytest_mst.domain.errors import MstError, ResumeError, SelectionError, StoreError
from pytest_mst.domain.identity import KEY_SCHEME
from pytest_mst.domain.plan import RunPlan
from pytest_mst.domain.resumption import ResumptionKind
from pytest_mst.domain.run import AttemptId, utc_text
from pytest_mst.eval_files.load import load_eval
from pytest_mst.plugin.discover import selected_evals, starts_of
from pytest_mst.plugin.options import NEWEST, Settings
from pytest_mst.store.debts import owed_cleanups
from pytest_mst.store.find import damaged_runs, find_runs, run_in, run_named
from pytest_mst.store.journal_tail import JournalTail
from pytest_mst.store.read import read_document
from pytest_mst.store.resume import Rules
from pytest_mst.store.run_id import short_form
from pytest_mst.store.stored_run import StoredRun, open_run

_NAMED_AT_MOST = 5
"""How many finished runs a message lists."""


@dataclass(frozen=True, slots=True)
class TakenUp:
    """The runs that a session takes up again, by the names of their evals."""

    runs: dict[str, StoredRun]
    rules: Rules
    at: str
    """ISO 8601, UTC, to the millisecond; the same in every process of the session."""
    journals: dict[str, int] = field(default_factory=dict)
    """How long each run's journal was, in bytes, when the session took it; by the eval's name."""
    half_written: dict[str, int] = field(default_factory=dict)
    """How many half-written files an earlier session had left in each run."""

    @property
    def kind(self) -> ResumptionKind:
        """Whether the runs are finished, or only graded again."""
        return "grade" if self.rules.grade_only else "resume"

    def begun_here(self, name: str) -> set[AttemptId]:
        """Return the attempts that a process of this session has begun, of one eval's run."""
        if name not in self.journals:
            return set()
        tail = JournalTail(self.runs[name].layout, read_bytes=self.journals[name])
        return {line.id for line in tail.new_lines() if line.kind == "begun"}

    @property
    def stamp(self) -> str:
        """The name of the folders for what is replaced."""
        return "".join(char for char in self.at if char.isalnum())

    def to_json(self) -> dict[str, object]:
        """Write what workers need to take the same runs up."""
        folders = [str(run.layout.run_dir) for run in self.runs.values()]
        return {
            "at": self.at,
            "folders": folders,
            "journals": self.journals,
            "halfWritten": self.half_written,
        }


def rules_of(settings: Settings) -> Rules:
    """Return how runs are taken up, by the options."""
    return Rules(
        fixed=settings.fixed,
        strict_tools=settings.strict_tools,
        grade_only=settings.grade is not None,
    )


def taken_up_from_json(stored: dict[str, object], settings: Settings) -> TakenUp:
    """Take up, in a worker, the runs that the controller found.

    Raises:
        StoreError: a run cannot be read.

    """
    folders, journals, half_written = (
        stored[name] for name in ("folders", "journals", "halfWritten")
    )
    assert isinstance(folders, list)
    assert isinstance(journals, dict)
    assert isinstance(half_written, dict)
    runs = [open_run(run_in(Path(folder))) for folder in folders]
    named = {run.plan.eval_name: run for run in runs}
    return TakenUp(named, rules_of(settings), str(stored["at"]), journals, half_written)


def take_up(config: pytest.Config, settings: Settings) -> TakenUp | None:
    """Find the runs to take up, and narrow the session to them; `None` without such an option.

    What the runs were started with is put in the place of the options that choose and override.

    Raises:
        MstError: there is no such run, or an option contradicts what it was started with.

    """
    if not settings.takes_up:
        return None
    named = settings.grade if settings.grade is not None else settings.resume
    if settings.resume and _is_path_to_run(config, settings.resume):
        named = NEWEST
    option = "--mst-resume" if settings.grade is None else "--mst-grade"
    if named:
        runs = [_named(config, settings, named, option)]
    else:
        runs = _newest_unfinished(config, settings)
    for run in runs:
        _check_ours(run, option)
        _check_options(config, run)
    _check_alike(runs)
    _restore(config, runs)
    named_runs = {run.plan.eval_name: run for run in runs}
    return TakenUp(named_runs, rules_of(settings), utc_text(datetime.now(UTC)))


def _is_path_to_run(config: pytest.Config, text: str) -> bool:
    """Take what stands after `--mst-resume` for a path to tests, where it is one and no run."""
    path = config.invocation_params.dir / text.partition("::")[0]
    if not path.exists() or (path / "run.json").exists() or path.name == "run.json":
        return False
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        config.args.append(text)
    else:
        config.args[:] = [text]
        config.args_source = pytest.Config.ArgsSource.ARGS
    return True


def _named(config: pytest.Config, settings: Settings, text: str, option: str) -> StoredRun:
    usual = [settings.results_dir(config.rootpath, None)]
    try:
        return open_run(run_named(usual, text, option=option))
    except SelectionError:
        folders = _results_dirs(config, settings)
        if folders == usual:
            raise
        return open_run(run_named(folders, text, option=option))


def _newest_unfinished(config: pytest.Config, settings: Settings) -> list[StoredRun]:
    """Return the newest unfinished run of each eval that the session's arguments select.

    Raises:
        ResumeError: there is none.

    """
    folders, starts = _results_dirs(config, settings), starts_of(config)
    found: dict[str, StoredRun] = {}
    seen: list[str] = []
    for layout in (one for folder in folders for one in find_runs(folder)):
        if layout.eval_name in found or layout.folder is not None:
            continue
        try:
            run = open_run(layout)
        except StoreError:
            continue
        source = config.rootpath / run.plan.source
        if run.legacy or not any(source.is_relative_to(start) for start in starts):
            continue
        seen.append(f"{layout.run_id} ({layout.eval_name})")
        if not _is_finished(run):
            found[layout.eval_name] = run
    if not found:
        where = ", ".join(map(str, folders))
        problem = f"no selected eval has an unfinished run in {where}"
        if seen:
            problem += f"; finished ones: {', '.join(seen[:_NAMED_AT_MOST])}"
        damaged = [str(error) for folder in folders for error in damaged_runs(folder)]
        if damaged:
            problem += f"; runs that cannot be read: {', '.join(damaged[:_NAMED_AT_MOST])}"
        asked = "--mst-resume"
        raise ResumeError(asked, problem, "start a run with `pytest --mst`, or name one by its id")
    return list(found.values())


def _is_finished(run: StoredRun) -> bool:
    """Tell whether nothing of a run is left to be done, as far as its own documents say."""
    if run.document.get("finishedAt") is None:
        return False
    try:
        if owed_cleanups(run.layout):
            return False
        summary = read_document(run.layout.summary_json)
    except StoreError:
        return False
    cases = summary.get("cases") if summary is not None else None
    return isinstance(cases, dict) and cases.get("incomplete") == 0


def _results_dirs(config: pytest.Config, settings: Settings) -> list[Path]:
    """Return the folders that the selected evals keep their runs in; the usual one first."""
    stated: list[str | None] = [None]
    for path in selected_evals(config).evals:
        try:
            loaded = load_eval(path, environ=os.environ, needs_cases=False)
        except MstError:
            continue  # it is read again, and refused, where it has a run to finish
        if loaded.config.stated_results is not None:
            stated.append(loaded.config.stated_results)
    return list(dict.fromkeys(settings.results_dir(config.rootpath, one) for one in stated))


def _check_ours(run: StoredRun, option: str) -> None:
    """Refuse a run that cannot be finished, because nothing says what its attempts were of.

    Raises:
        StoreError: it is one.

    """
    if run.legacy or not run.plan.source or run.plan.key_scheme != KEY_SCHEME:
        raise StoreError(
            str(run.layout.run_json),
            f"the run was stored by another version or tool, and {option} cannot tell what has "
            "changed since: nothing was collected",
            "start a new run; `python -m pytest_mst show` shows this one",
        )


def _check_options(config: pytest.Config, run: StoredRun) -> None:
    """Refuse options that contradict what a run was started with.

    Raises:
        ResumeError: there is one.
        StoreError: the file that the run is of is not there.

    """
    plan, chosen = run.plan, dict(run.plan.selection)
    given = config.getoption
    asked = {
        "--mst-variant": (given("mst_variant"), _texts(chosen.get("variants")), _variants(plan)),
        "--mst-tag": (given("mst_tag"), _texts(chosen.get("tags")), None),
        "--mst-trials": (_one(given("mst_trials")), _texts(chosen.get("trials")), _trials(plan)),
        "--mst-client": (_one(given("mst_client")), _texts(chosen.get("client")), _clients(plan)),
        "--mst-model": (_one(given("mst_model")), _texts(chosen.get("model")), None),
        "-k": (_one(config.option.keyword), _texts(chosen.get("keyword")), None),
        "-m": (_one(config.option.markexpr), _texts(chosen.get("markexpr")), None),
    }
    asked_for = f"run {short_form(plan.run_id)}"
    for option, (now, then, implied) in asked.items():
        if now and set(map(str, now)) not in (then, implied):
            given_now, given_then = ", ".join(map(str, now)), ", ".join(sorted(then))
            raise ResumeError(
                asked_for,
                f"{option} {given_now} is not what it was started with"
                + (f" ({given_then})" if given_then else ""),
                f"leave {option} out, or start a new run",
            )
    source = config.rootpath / plan.source
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    paths = " ".join(map(str, config.args))
    if named and any("::" in str(arg) for arg in config.args):
        problem = f"its cases are those it was started with, and not {paths}"
        raise ResumeError(asked_for, problem, "leave the ids out, or start a new run")
    if named and not any(source.is_relative_to(start) for start in starts_of(config)):
        problem = f"it is of {plan.source}, and not of {paths}"
        raise ResumeError(asked_for, problem, "leave the paths out")
    if not source.is_file():
        raise StoreError(
            str(source),
            f"is not there, and the run {plan.run_id} is of it",
            "put it back, or run pytest in the folder that the run was started in",
        )


def _one(value: object) -> list[object]:
    return [] if value in (None, "") else [value]


def _texts(value: object) -> set[str]:
    return {str(one) for one in (value if isinstance(value, list) else _one(value))}


def _variants(plan: RunPlan) -> set[str]:
    return {case.variant for case in plan.cases}


def _trials(plan: RunPlan) -> set[str]:
    return {str(case.trials) for case in plan.cases}


def _clients(plan: RunPlan) -> set[str]:
    return {variant.client for variant in plan.variants}


def _check_alike(runs: Sequence[StoredRun]) -> None:
    """Refuse runs that were started with different options: one session has one set of them.

    Raises:
        ResumeError: there are such runs.

    """
    first = dict(runs[0].plan.selection)
    if any(dict(run.plan.selection) != first for run in runs):
        asked, problem = "--mst-resume", "these runs were started with different options"
        ids = ", ".join(f"--mst-resume {short_form(run.plan.run_id)}" for run in runs)
        raise ResumeError(asked, problem, f"finish them one by one: {ids}")


def _restore(config: pytest.Config, runs: Sequence[StoredRun]) -> None:
    """Let the session collect the files of the runs, under the options they were started with.

    Which cases of the files are the runs' own is decided when they are there.
    """
    sources = [str(config.rootpath / run.plan.source) for run in runs]
    config.args[:] = list(dict.fromkeys(sources))
    chosen = runs[0].plan.selection
    config.option.mst_variant = sorted({one.variant for run in runs for one in run.plan.cases})
    config.option.mst_tag = list(_listed(chosen.get("tags"))) or None
    config.option.mst_trials = chosen.get("trials")
    config.option.mst_client = chosen.get("client")
    config.option.mst_model = chosen.get("model")
    config.option.keyword = config.option.markexpr = ""


def _listed(value: object) -> Iterable[str]:
    return map(str, value) if isinstance(value, list | tuple) else ()
