"""The start of the runs: what was collected and chosen is written down as each run's plan."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_mst.domain.plan import VariantInfo
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.controller import circumstances
from pytest_mst.plugin.eval_run import EvalRun, variant_info
from pytest_mst.plugin.keys import CASE, SESSION
from pytest_mst.plugin.session import EvalSession
from pytest_mst.report.documents import run_document


def case_items(items: Sequence[pytest.Item]) -> list[CaseItem]:
    """Return what the eval cases among the items carry, in order."""
    found = (item.stash.get(CASE, None) for item in items)
    return [case for case in found if case is not None]


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
        StoreError: a plan cannot be written.

    """
    evals = session.config.stash[SESSION]
    by_run: dict[str, list[CaseItem]] = {}
    for case in case_items(session.items):
        by_run.setdefault(case.run.name, []).append(case)
    for name, cases in by_run.items():
        run = evals.runs[name]
        plan = run.plan(
            [case.planned() for case in cases],
            _variants(evals, cases),
            evals.settings.overrides,
            partial=_is_partial(session.config, evals, run, cases),
        )
        run.writer.run_json(run_document(plan, circumstances()))
        run.started = True


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


def _variants(evals: EvalSession, cases: Sequence[CaseItem]) -> list[VariantInfo]:
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
        model = case.variant.model or config.model
        found[case.variant.name] = variant_info(case.prepared, case.variant, client.name, model)
    return list(found.values())
