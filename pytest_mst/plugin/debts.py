"""The cleanups that a run owes: made before anything else when it is taken up, or at its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

import pytest

from pytest_mst.attempt.owed import Unpaid, pay
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.target import live_plan_of
from pytest_mst.domain.errors import ResumeError
from pytest_mst.domain.write import LIVE_OPTION
from pytest_mst.plugin.eval_run import EvalRun
from pytest_mst.plugin.pytest_private import terminal_of
from pytest_mst.plugin.session import EvalSession
from pytest_mst.report.text import counted, shown
from pytest_mst.store.debts import Debt, owed_cleanups
from pytest_mst.store.run_id import short_form

_OURS = "owed"
"""Stands for the variant in the names of the logs of servers that only clean up."""


def pay_before_all(config: pytest.Config, session: EvalSession, run: EvalRun) -> None:
    """Make the cleanups that a run that is taken up owes, before any of its attempts begins.

    What cannot be made is told, stays owed, and holds nothing up.

    Raises:
        ResumeError: there are some, and live writes are not allowed in this session.
        StoreError: the journal cannot be read.

    """
    debts = owed_cleanups(run.layout)
    if not debts:
        return
    if not session.settings.allow_live_writes:
        asked, count = f"run {short_form(run.run_id)}", len(debts)
        raise ResumeError(
            asked,
            f"{counted(count, 'attempt')} of it wrote for real and {_was(count)} not cleaned up "
            "after",
            f"add {LIVE_OPTION}: that comes first",
        )
    _pay(config, session, run, debts)


def pay_at_end(config: pytest.Config, session: EvalSession, run: EvalRun) -> None:
    """Make the cleanups of attempts that a lost worker took along; what failed once stays owed.

    So does all of it where a client that will not end holds everything up.

    Raises:
        StoreError: the journal cannot be read.

    """
    if session.settings.allow_live_writes and not session.engine.is_held_up:
        debts = [one for one in owed_cleanups(run.layout) if one.error is None]
        if debts:
            _pay(config, session, run, debts)


def _pay(config: pytest.Config, session: EvalSession, run: EvalRun, debts: Sequence[Debt]) -> None:
    _say(config, run, [f"cleaning up after {counted(len(debts), 'attempt')}, which is still owed"])
    prepared = _prepared(session, run)
    live = None
    if prepared is not None:
        log_path = partial(run.layout.server_log, _OURS)
        live = live_plan_of(prepared.loaded, os.environ, log_path=log_path, run=run.name)
    unpaid = session.engine.call(pay, session.engine.hub, run.writer, live, debts)
    _say(config, run, [_unpaid_line(one) for one in unpaid])


def _prepared(session: EvalSession, run: EvalRun) -> PreparedEval | None:
    found = (one for one in session.prepared.values() if one.loaded.config.name == run.name)
    return next(found, None)


def _unpaid_line(unpaid: Unpaid) -> str:
    debt = unpaid.debt
    return (
        f"  {debt.locator} {shown(debt.id.case)} [{shown(debt.id.variant)}] trial {debt.id.trial} "
        f"is not cleaned up after ({debt.trial_id}): {shown(unpaid.reason, 1_000)}"
    )


def _say(config: pytest.Config, run: EvalRun, lines: Sequence[str]) -> None:
    terminal = terminal_of(config)
    if terminal is not None:
        terminal.ensure_newline()
        for line in lines:
            terminal.write_line(run.writer.redactor.text(line))


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
