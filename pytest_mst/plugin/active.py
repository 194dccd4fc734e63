"""The hooks that are there with `--mst` only. Each delegates; state is in pytest's stashes."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.domain.errors import MstError, StoreError
from pytest_mst.plugin import marked, timer
from pytest_mst.plugin.async_body import call_body
from pytest_mst.plugin.collect import EvalFile, EvalItem, RefusedFile, eval_file
from pytest_mst.plugin.controller import REFUSED_ATTRIBUTE, Controller
from pytest_mst.plugin.decisions import choose_planned
from pytest_mst.plugin.discover import is_eval_file, is_met_in_loop
from pytest_mst.plugin.engine import Engine
from pytest_mst.plugin.header import header_lines
from pytest_mst.plugin.keys import CASE, SESSION, UPCOMING
from pytest_mst.plugin.loading import load_session
from pytest_mst.plugin.options import Settings
from pytest_mst.plugin.outcomes import Refused, Status, status_of
from pytest_mst.plugin.progress import Progress
from pytest_mst.plugin.protocol import run_call_phase, run_case, shape_report
from pytest_mst.plugin.registration import register
from pytest_mst.plugin.session import concurrency, thaw_session
from pytest_mst.plugin.sigterm import end_on_sigterm
from pytest_mst.plugin.start_run import plan_runs, will_run
from pytest_mst.plugin.stopping import listen
from pytest_mst.plugin.upcoming import STEALS_INPUT, Upcoming

WORKER_INPUT = "mst"
"""Under which the controller hands workers what it loaded."""
CONTROLLER = "mst-controller"
"""The name of the plugin object that only the controller has."""


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Load the evals, or take over what the controller loaded, before workers are started."""
    config = session.config
    try:
        register(config)
        if hasattr(config, "workerinput"):
            _take_over(config, config.workerinput)
        else:
            _load(config)
    except MstError as error:
        raise pytest.UsageError(str(error)) from error


def _load(config: pytest.Config) -> None:
    end_on_sigterm(config)
    progress = Progress(config)
    session = load_session(config, progress)
    config.stash[SESSION] = session
    session.progress = progress
    controller = Controller(config, session, progress)
    config.pluginmanager.register(controller, CONTROLLER)


def _take_over(config: pytest.Config, workerinput: dict[str, Any]) -> None:
    end_on_sigterm(config)
    settings = Settings.of(config)
    engine = Engine(concurrency=1, on_wait=lambda: None)
    config.add_cleanup(engine.close)
    session = thaw_session(config, workerinput[WORKER_INPUT], workerinput["workerid"], engine)
    evals = [one.loaded.config for one in session.prepared.values()]
    engine.set_concurrency(concurrency(settings, evals, workerinput["workercount"]))
    engine.allow_live = settings.may_be_live
    config.stash[SESSION] = session


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what each server's writes come to, before anything starts."""
    session = config.stash.get(SESSION, None)
    if session is None:
        return []
    return [*header_lines(session), *session.preflight_lines]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> EvalFile | RefusedFile | None:
    """Collect eval configs."""
    if not is_eval_file(file_path):
        return None
    foreseen = file_path in parent.config.stash[SESSION].prepared
    if not foreseen and is_met_in_loop(file_path):
        return None  # pytest goes round and round, the walk ahead of it did not
    return eval_file(parent, file_path)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give marked tests an item for each variant; last, so that theirs come last in an id."""
    marked.parametrize_variants(metafunc)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Make marked tests eval cases."""
    if isinstance(item, pytest.Function) and not isinstance(item, EvalItem):
        marked.equip(item)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Mark what was refused, so that the controller can tell it from a broken test file."""
    report = yield
    call = getattr(report, "call", None)
    if call is not None and call.excinfo is not None:
        error = call.excinfo.value
        if isinstance(error, Refused):
            setattr(report, REFUSED_ATTRIBUTE, str(error))
            collector.config.stash[SESSION].refused = True
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the marked tests that tags and variants do not choose; all, after a refusal."""
    if config.stash[SESSION].refused:
        items.clear()  # xdist's workers would run the rest, whatever collection came to
    evals = config.stash[SESSION]
    choose = marked.choose if evals.taken_up is None else choose_planned
    left_out = choose(evals, items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Write down what each run is to do, before xdist tells the controller."""
    try:
        plan_runs(session, session.config.pluginmanager.get_plugin(CONTROLLER))
    except StoreError as error:
        raise pytest.UsageError(str(error)) from error
    if session.items and will_run(session):
        listen(session.items)
        session.stash[UPCOMING] = Upcoming(session)
        session.config.stash[SESSION].engine.upcoming = session.stash[UPCOMING].jobs


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Let the attempts under way end with the loop; cut them short when it is interrupted."""
    engine = session.config.stash[SESSION].engine
    try:
        result = yield
    except (KeyboardInterrupt, pytest.exit.Exception):
        engine.cancel()
        raise
    finally:
        engine.drain()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run eval cases by their own protocol."""
    case = item.stash.get(CASE, None)
    if case is None:
        return None
    if case.skip is not None or item.config.option.setupplan:
        return None
    item.session.stash[UPCOMING].at(item)
    run_case(item, nextitem)
    return True


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the attempts of a case in an eval file; run the body of a Python case."""
    if CASE not in pyfuncitem.stash:
        return None
    if isinstance(pyfuncitem, EvalItem):
        run_call_phase(pyfuncitem)
    else:
        call_body(pyfuncitem)
    return True


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Shape the reports of eval cases; innermost, so that reporters see the result."""
    report = yield
    return shape_report(item, call, report) if CASE in item.stash else report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> Status | None:
    """Give attempts and cases their letters and words."""
    return status_of(report)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Take note of how pytest-timeout sets an item's timer."""
    timer.note(item, settings)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object | None:
    """Keep a lost worker from taking the rest of its scope along."""
    from pytest_mst.plugin.scheduling import scheduler

    return scheduler(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand a worker what was loaded."""
    session = node.config.stash[SESSION]
    node.workerinput[WORKER_INPUT] = session.frozen()
    node.workerinput[STEALS_INPUT] = node.config.getvalue("dist") == "worksteal"
    session.engine.leave_to_workers()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Take note of the runs that workers write to."""
    node.config.pluginmanager.get_plugin(CONTROLLER).collected_by_worker(ids)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Write down which attempts a lost worker took along."""
    if error:
        node.config.pluginmanager.get_plugin(CONTROLLER).worker_lost(node.gateway.id)


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: Any) -> None:
    """Make the case that a lost worker was at incomplete, never failed."""
    sched.config.pluginmanager.get_plugin(CONTROLLER).case_lost(crashitem, report)
