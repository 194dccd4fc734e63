"""Loading, done once and by the controller, before anything is collected.

It reads the selected eval files, lists every server and settles each write mode. Whatever is
wrong is one message and exit code 4, with nothing started.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from pytest_mst.attempt.lost import store_lost
from pytest_mst.clients.client import Client
from pytest_mst.clients.registry import check_options, client_named
from pytest_mst.domain.errors import (
    EvalFileError,
    EvalFileErrors,
    OptionsError,
    Place,
    SelectionError,
)
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.loaded import LoadedCase, LoadedEval
from pytest_mst.eval_files.load import load_eval
from pytest_mst.plugin.debts import pay_before_all
from pytest_mst.plugin.discover import Selected, selected_evals
from pytest_mst.plugin.engine import Engine
from pytest_mst.plugin.judges import check_judges, registered_judges
from pytest_mst.plugin.options import Settings
from pytest_mst.plugin.preflight import check_before_spending
from pytest_mst.plugin.progress import Progress
from pytest_mst.plugin.registration import registered_clients
from pytest_mst.plugin.session import (
    EvalSession,
    check_names,
    chosen_variants,
    client_of,
    concurrency,
    start_session,
)
from pytest_mst.plugin.taken_up import take_up
from pytest_mst.store.failure import store_error
from pytest_mst.store.journal_tail import JournalTail
from pytest_mst.store.stored_run import open_run
from pytest_mst.store.whole_file import remove_half_written

LOCK_WAIT_S = 10.0
"""How long to wait for a session that is just ending: workers outlive a killed one by seconds."""


def load_session(config: pytest.Config, progress: Progress) -> EvalSession:
    """Read and check the selected evals, and return the session they make up.

    Raises:
        MstError: something is wrong in a file, an option or the load check.
        pytest.UsageError: a setting is wrong, or pytest is asked for what evals cannot do.

    """
    taken_up = take_up(config, Settings.of(config))
    settings = Settings.of(config)  # once more: what a run was started with is restored
    if config.option.setuponly and not config.option.setupplan:
        msg = "--setup-only would make attempts, since fixtures do; with --mst take --setup-plan"
        raise pytest.UsageError(msg)
    selected = selected_evals(config)
    loaded = _read_all(config, selected)
    _check_results(config.rootpath, settings, list(loaded.values()))
    check_names(loaded.values())
    chosen = {path: (one, chosen_variants(one.config, settings)) for path, one in loaded.items()}
    if taken_up is None:
        _check_selection(settings, list(loaded.values()), registered_clients(config))
    for path in selected.evals:
        one, variants = chosen[path]
        _check_clients(one, variants, settings, registered_clients(config))
    for path in (*selected.evals, *selected.named):
        check_judges(loaded[path], chosen[path][1], registered_judges(config))
    engine = Engine(
        concurrency(settings, [one.config for one in loaded.values()], workers=1), progress.tick
    )
    config.add_cleanup(engine.close)
    engine.allow_live = settings.may_be_live
    to_check = {path: pair for path, pair in chosen.items() if pair[1]}
    prepared = engine.load_check(to_check, start=True)
    session = start_session(config, prepared, selected, engine, taken_up)
    session.preflight_lines = tuple(check_before_spending(config, session))
    if taken_up is not None and not (config.option.collectonly or config.option.setupplan):
        for name in taken_up.runs:
            reopen(config, session, name)
    return session


def reopen(config: pytest.Config, session: EvalSession, name: str) -> None:
    """Take a stored run for this session, and write down what an earlier one left unsaid.

    Raises:
        StoreError: another session uses it, or it cannot be written to.

    """
    prepared = next(
        (one for one in session.prepared.values() if one.loaded.config.name == name), None
    )
    run = session.run(name, prepared)
    run.lock.take(LOCK_WAIT_S)
    config.add_cleanup(run.lock.release)
    taken_up = session.taken_up
    assert taken_up is not None
    taken_up.runs[name] = open_run(run.layout)  # once more: another session had it until now
    taken_up.journals[name] = JournalTail(run.layout, from_now=True).position
    taken_up.half_written[name] = remove_half_written(run.layout.run_dir)
    store_lost(run.writer, taken_up.runs[name].plan)
    if taken_up.kind == "resume":
        pay_before_all(config, session, run)


def shown_path(config: pytest.Config, path: Path) -> str:
    """Write a path as the user would: relative to the working folder where it lies below it."""
    base = config.invocation_params.dir
    return str(path.relative_to(base)) if path.is_relative_to(base) else str(path)


def _read_all(config: pytest.Config, selected: Selected) -> dict[Path, LoadedEval]:
    loaded: dict[Path, LoadedEval] = {}
    errors: list[EvalFileError] = []
    for path in (*selected.evals, *selected.named):
        try:
            loaded[path] = load_eval(
                path,
                environ=os.environ,
                shown=lambda one: shown_path(config, one),
                needs_cases=path in selected.evals,
            )
        except EvalFileErrors as found:
            errors.extend(found.errors)
    if errors:
        raise EvalFileErrors(errors)
    return loaded


def _check_results(root: Path, settings: Settings, evals: Sequence[LoadedEval]) -> None:
    """Refuse a folder for runs that cannot be made; it is not made here.

    Raises:
        StoreError: something else is in its place, or nothing may be written there.

    """
    stated: list[str | None] = [one.config.stated_results for one in evals]
    for folder in dict.fromkeys(settings.results_dir(root, one) for one in stated or [None]):
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if not nearest.is_dir():
            raise store_error(folder, "made", OSError(errno.ENOTDIR, ""))
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise store_error(folder, "made", OSError(errno.EACCES, ""))


def _check_selection(
    settings: Settings, evals: Sequence[LoadedEval], registered: Mapping[str, Client]
) -> None:
    """Refuse options that name what no selected eval has."""
    if settings.client is not None:
        client_named(settings.client, asked_by="--mst-client", registered=registered)
    if not evals:
        return
    variants = dict.fromkeys(v.name for one in evals for v in one.config.variants_or_default)
    for name in settings.variants:
        if name not in variants:
            raise SelectionError(option="--mst-variant", given=name, valid=list(variants))


def _check_clients(
    loaded: LoadedEval,
    variants: Sequence[Variant],
    settings: Settings,
    registered: Mapping[str, Client],
) -> None:
    """Let every client look at what it will be given, before anything is started."""
    config = loaded.config
    for one in loaded.tagged(settings.tags or config.filter_tags):
        for variant in variants:
            name = client_of(settings, config, variant, one.case)
            place, asked_by = _said_at(loaded, one, variant)
            try:
                client = client_named(name, asked_by=asked_by, registered=registered)
            except SelectionError as error:
                raise EvalFileError(place, str(error)) from error
            options = config.client_options_of(variant, one.case)
            try:
                check_options(client, options)
            except OptionsError as error:
                raise EvalFileError(one.place, f"case {one.case.id!r}: {error}") from error


def _said_at(loaded: LoadedEval, one: LoadedCase, variant: Variant) -> tuple[Place, str]:
    """Return where the client of a case is named."""
    if one.case.client is not None:
        return one.place, f"client of case {one.case.id!r}"
    if variant.client is not None:
        return loaded.place("variants", variant.name), f"client of variant {variant.name!r}"
    return loaded.place("client"), "client"
