"""Stopping from fixtures and bodies: fatal errors close gates, and closed gates leave out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from pytest_mst.attempt.classify import Classify
from pytest_mst.attempt.unexpected import message_of
from pytest_mst.domain.failure_class import FailurePhase
from pytest_mst.plugin.body import fatal_behind
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.engine import Engine
from pytest_mst.plugin.keys import CASE


def close_gate(case: CaseItem, error: BaseException) -> None:
    """Close the gate of a fatal error that a fixture or body raised, whatever its attempt is."""
    fatal = fatal_behind(error)
    if fatal is not None:
        case.run.rules.stop(case.attempt_id(case.trial), fatal.scope, message_of(fatal))


def is_stopped(engine: Engine, case: CaseItem, trial: int) -> bool:
    """Tell whether an attempt is to stay unstarted because a gate before it is closed.

    One that was begun ahead is waited for: it is taken in like any other. So is one that is
    stored already. A mark that may skip the case is left to pytest.
    """
    if case.may_skip or not case.run.rules.is_stopped(case.attempt_id(trial)):
        return False
    if case.stands(trial):
        return False
    return not engine.has_made((case.run.run_id, case.attempt_id(trial)))


def listen(items: Iterable[pytest.Item]) -> None:
    """Have the hook of each run's items asked about its failures.

    A conftest's is asked about what lies below it. Each item's hook is looked up here, on
    pytest's own thread.
    """
    for item in items:
        case = item.stash.get(CASE, None)
        if case is not None and case.run.rules.classify is None:
            case.run.rules = replace(case.run.rules, classify=_asking(item))


def _asking(item: pytest.Item) -> Classify:
    hook = item.ihook.pytest_mst_classify_failure

    def ask(phase: FailurePhase, text: str, exception: BaseException | None) -> object:
        return hook(phase=phase, text=text, exception=exception)

    return ask
