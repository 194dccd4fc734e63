"""The start of the runs: what was collected and chosen is written down as each run's plan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_mst.domain.plan import RunPlan, VariantInfo
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.controller import Controller, circumstances, stored_plan
from pytest_mst.plugin.decisions import decide_all, merged_plan
from pytest_mst.plugin.eval_run import EvalRun, variant_info
from pytest_mst.plugin.keys import CASE, SESSION
from pytest_mst.plugin.session import EvalSession, model_of
from pytest_mst.report.documents import run_document
from pytest_mst.store.stops import put_stops_away


def case_items(items: Sequence[pytest.Item]) -> list[CaseItem]:
    """Return what the eval cases among the items carry, in order."""
    found = (item.stash.get(CASE, None) for item in items)
    return [case for case in found if case is not None]


def plan_runs(session: pytest.Session, controller: Controller | None) -> None:
    """Write the plans of this session's runs, where it goes on to run them.

    Args:
        session: pytest's.
        controller: `None` in a worker.

    Raises:
        StoreError: a plan cannot be read or written, or another session uses the run.

    """
    evals = session.config.stash[SESSION]
    if controller is not None:
        controller.collected(case_items(session.items))
    if evals.taken_up is None:
        if session.items and will_run(session):
            start_runs(session)
    elif not evals.refused:
        decided = decide_runs(session)
        _work_first(session)
        if controller is not None:
            controller.took_up([(run, plan.resumptions[-1]) for run, plan in decided])
        if will_run(session) and not session.testsfailed:  # what was not collected is not gone
            go_on_with(evals, decided)


def _work_first(session: pytest.Session) -> None:
    """Let a case with nothing left to do come last, where its old failure would end the session.

    Workers of xdist keep their order, which has to be the same in all of them.
    """
    if session.config.getoption("maxfail") and not hasattr(session.config, "workerinput"):
        session.items.sort(key=lambda item: CASE in item.stash and item.stash[CASE].is_all_stored)


def will_run(session: pytest.Session) -> bool:
    """Tell whether pytest goes on to run what this process collected."""
    options = session.config.option
    if options.collectonly or options.setupplan:
        return False
    broken = session.testsfailed and not options.continue_on_collection_errors
    return not broken or hasattr(session.config, "workerinput")  # xdist runs what there is


def start_runs(session: pytest.Session) -> None:
    """Write the plan of every run that has a case in this session.

    Every process that collected writes the same plan: whichever is there last is right.

    Raises:
        StoreError: a plan cannot be written, or another session uses the run.

    """
    evals = session.config.stash[SESSION]
    for run, cases in _by_run(session):
        run.lock.share()
        session.config.add_cleanup(run.lock.release)
        plan = run.plan(
            [case.planned() for case in cases],
            variant_infos(evals, cases),
            _selection(session.config, evals),
            partial=_is_partial(session.config, evals, run, cases),
        )
        run.writer.run_json(run_document(plan, circumstances()))
        run.started = True


def decide_runs(session: pytest.Session) -> list[tuple[EvalRun, RunPlan]]:
    """Decide what becomes of every attempt of the runs that are taken up; write nothing.

    Returns:
        Each run with its plan as it goes on from here.

    Raises:
        StoreError: what is stored of a run cannot be read.

    """
    evals = session.config.stash[SESSION]
    assert evals.taken_up is not None
    chosen = {id(case) for case in case_items(session.items)}
    decided = []
    for name, stored in evals.taken_up.runs.items():
        planned = {(one.variant, one.case) for one in stored.plan.cases}
        met = evals.met.get(name, {})
        cases = [case for place, case in met.items() if place in planned]
        run = cases[0].run if cases else evals.run(name, None)
        variants = variant_infos(evals, cases)
        left_out = [case for case in cases if id(case) not in chosen]
        resumption = decide_all(evals, run, cases, variants, left_out)
        today = run.plan([], variants, {}, partial=False)
        decided.append((run, merged_plan(stored.plan, today, cases, resumption)))
    return decided


def go_on_with(evals: EvalSession, decided: Sequence[tuple[EvalRun, RunPlan]]) -> None:
    """Write the plans of the runs that are taken up; the first process that is there does.

    It opens their gates, too: nothing of them has begun yet.

    Raises:
        StoreError: a plan cannot be written, or another session uses the run.

    """
    for run, plan in decided:
        run.lock.share()
        run.started = True
        known = stored_plan(run)
        last = known.resumptions[-1:] if known is not None else ()
        if last and last[0].at == plan.resumptions[-1].at:
            continue  # another worker's; one that replaces a lost one finds other things on disk
        if evals.taken_up is not None and evals.taken_up.kind == "resume":
            put_stops_away(run.layout, run.layout.superseded(evals.taken_up.stamp).stops)
        run.writer.run_json(run_document(plan, circumstances()))


def _by_run(session: pytest.Session) -> list[tuple[EvalRun, list[CaseItem]]]:
    evals = session.config.stash[SESSION]
    by_run: dict[str, list[CaseItem]] = {}
    for case in case_items(session.items):
        by_run.setdefault(case.run.name, []).append(case)
    return [(evals.runs[name], cases) for name, cases in by_run.items()]


def _selection(config: pytest.Config, evals: EvalSession) -> dict[str, object]:
    """Return what chose the run's cases and overrode what is said of them."""
    chosen = dict(evals.settings.overrides)
    for name in ("keyword", "markexpr"):
        if getattr(config.option, name, ""):
            chosen[name] = getattr(config.option, name)
    if any("::" in str(arg) for arg in config.args):
        chosen["ids"] = True
    return chosen


def _is_partial(
    config: pytest.Config, evals: EvalSession, run: EvalRun, cases: Sequence[CaseItem]
) -> bool:
    """Tell whether cases, variants or trials were left out by choice."""
    chosen_by_id = any("::" in str(arg) for arg in config.args)
    of_python = any(case.has_body for case in cases)
    return (
        len(cases) < run.available
        or evals.settings.trials is not None
        or (of_python and chosen_by_id)
    )


def variant_infos(evals: EvalSession, cases: Sequence[CaseItem]) -> list[VariantInfo]:
    """Return the variants there are cases of, each once, in the cases' order."""
    found: dict[str, VariantInfo] = {}
    for case in cases:
        if case.variant.name in found:
            continue
        if case.prepared is None:
            found[case.variant.name] = VariantInfo(case.variant.name, client="(of a fixture)")
            continue
        config = case.prepared.loaded.config
        client = case.target.client if case.target else evals.client(config, case.variant)
        model = model_of(evals.settings, config, case.variant, None)
        found[case.variant.name] = variant_info(case.prepared, case.variant, client.name, model)
    return list(found.values())
