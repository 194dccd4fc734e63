"""A case whose set-up, call and teardown run once for each attempt, as pytest-rerunfailures does.

Its verdict is reported after them. A case of which nothing is left to be made goes the same way:
what is stored is taken in, and nothing is set up for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal, TypeAlias

import pytest

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.domain.ending import Trial
from pytest_mst.plugin import timer
from pytest_mst.plugin.attempts import Attempts
from pytest_mst.plugin.body import (
    NotATrial,
    add_body_grade,
    body_grade,
    failure_before_end,
    fatal_behind,
    fixtures_grade,
)
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.engine import Job
from pytest_mst.plugin.keys import SESSION
from pytest_mst.plugin.outcomes import CaseIncomplete
from pytest_mst.plugin.pytest_private import (
    forget_last_run,
    run_protocol,
    sections_of,
    tear_down_to,
)
from pytest_mst.plugin.session import EvalSession
from pytest_mst.plugin.skipping import (
    give_up_all,
    keep_as_stored,
    note_skip,
    reason_of,
    skip_in,
)
from pytest_mst.plugin.stopping import is_stopped

Phase: TypeAlias = Literal["setup", "call", "teardown"]


class _BetweenAttempts(pytest.Item):
    """Stands between attempts: of the same parents, so that only function fixtures end."""

    def runtest(self) -> None:
        """Never run."""


def run_each_attempt(
    item: pytest.Item,
    case: CaseItem,
    nextitem: pytest.Item | None,
    *,
    after: Iterable[pytest.TestReport] = (),
    skipped: pytest.TestReport | None = None,
) -> None:
    """Run a case, once for each attempt that is to be made, and report it.

    Args:
        item: the case's item.
        case: the case.
        nextitem: what pytest runs next.
        after: the reports of phases that came before; of them, broken teardowns are told.
        skipped: the report that skipped the case before, where what is stored of it stands.

    """
    parent = item.parent
    assert parent is not None  # only the session has none
    boundary = _BetweenAttempts.from_parent(parent, name=item.name)
    engine = item.config.stash[SESSION].engine
    attempts = Attempts(item, case, skipped=None if skipped is None else reason_of(skipped))
    start = time.time()
    teardown_errors = _broken_teardowns(after)
    for trial in range(case.trials):
        case.begin_trial(trial)
        if case.is_stored(trial):
            attempts.add(engine.get(case.stored_job(trial)))
            continue
        if is_stopped(engine, case, trial):
            attempts.add(None)
            continue
        reports = _run_once(item, boundary)
        skipped = _skip_of(case, reports)
        if skipped is not None:
            give_up_all(item, case)
            if not (case.is_in_ledger or attempts.any_ended):
                note_skip(case, skipped)
                _report_skip(item, reports, nextitem)
                return
            keep_as_stored(case)
            attempts.skipped = reason_of(skipped)
            attempts.add(engine.get(case.stored_job(trial)))
        else:
            finished, shown = _finish(item, case, reports)
            if finished is not None and isinstance(finished.record.ending, Trial):
                attempts.keep_output(sections_of(item))
            attempts.add(finished, shown)
        attempts.say()
        teardown_errors += _broken_teardowns(reports)
        if item.session.shouldstop:
            break
    case.begin_trial(0)  # lets the last attempt go
    for report in teardown_errors:
        item.ihook.pytest_runtest_logreport(report=report)
    _report_verdict(item, attempts, nextitem, start)


def _run_once(item: pytest.Item, boundary: pytest.Item) -> list[pytest.TestReport]:
    """Run set-up, call and teardown for one attempt; what is wider than a function stays."""
    forget_last_run(item)
    timer.rearm(item)
    reports = run_protocol(item, boundary)
    timer.disarm(item)
    return reports


def _broken_teardowns(reports: Iterable[pytest.TestReport]) -> list[pytest.TestReport]:
    return [report for report in reports if report.when == "teardown" and report.failed]


def _skip_of(case: CaseItem, reports: list[pytest.TestReport]) -> pytest.TestReport | None:
    """Return the report that skipped the case at the trial under way, before it was an attempt."""
    if case.finished is not None or isinstance(case.raised, NotATrial):
        return None
    return skip_in(reports)


def _report_skip(
    item: pytest.Item, reports: list[pytest.TestReport], nextitem: pytest.Item | None
) -> None:
    """Report a case that is outside the ledger."""
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    _report_phase(item, "teardown", lambda: tear_down_to(item.session, nextitem))


def _finish(
    item: pytest.Item, case: CaseItem, reports: list[pytest.TestReport]
) -> tuple[FinishedAttempt | None, str]:
    """Return the attempt of the trial that has just run, with what fixtures and body said."""
    failed = next((one for one in reports if one.failed and one.when != "teardown"), None)
    shown = failed.longreprtext if failed is not None else ""
    session = item.config.stash[SESSION]
    finished, raised = case.finished, case.raised
    if finished is None and not isinstance(raised, NotATrial | pytest.skip.Exception):
        job = _made_without_fixtures(session, case, raised)
        fatal = raised is not None and fatal_behind(raised) is not None
        if job is not None:
            engine = session.engine
            finished = engine.get_if_begun(job) if fatal else engine.get(job)
        if finished is None and raised is not None and (job is None or fatal):
            return session.store_failure(case, failure_before_end(raised), raised), shown
    if finished is None or not isinstance(finished.record.ending, Trial):
        return finished, shown
    said = body_grade(case) if case.has_body else fixtures_grade(case)
    if said is not None:
        finished = add_body_grade(case.run.writer, finished, said)
    return finished, shown


def _made_without_fixtures(
    session: EvalSession, case: CaseItem, raised: BaseException | None
) -> Job | None:
    """Return the attempt that no fixture handed out, where the engine has or can make it."""
    if case.stands(case.trial):
        return case.stored_job(case.trial)
    target = case.target
    if target is None and case.shared_key is not None:
        target = session.shared_targets.get(case.shared_key)  # it can be begun ahead with that
    if case.run_by != "engine" or target is None:
        return None
    job = case.job(case.trial, target)
    if raised is not None and timer.fired(raised) and session.engine.give_up(job):
        return None  # it took longer than it may
    return None if session.engine.was_asked_for(job) else job


def _report_verdict(
    item: pytest.Item, attempts: Attempts, nextitem: pytest.Item | None, start: float
) -> None:
    """Report a case once, through the hook that reporters wrap."""
    verdict = attempts.decide()
    if verdict is not None:
        sections_of(item)[:] = attempts.sections
    incomplete = isinstance(verdict, CaseIncomplete)
    say_in: Phase = "setup" if incomplete else "call"
    phases: tuple[Phase, ...] = (
        ("setup", "teardown") if incomplete else ("setup", "call", "teardown")
    )

    def phase(when: Phase) -> Callable[[], None]:
        def run() -> None:
            if when == "teardown":
                stopping = item.session.shouldfail or item.session.shouldstop
                if stopping:  # attempts under way may still use what is torn down
                    item.config.stash[SESSION].engine.drain()
                tear_down_to(item.session, None if stopping else nextitem)
            elif when == say_in and verdict is not None:
                raise verdict

        return run

    for when in phases:
        _report_phase(item, when, phase(when), time.time() - start if when == say_in else 0.0)


def _report_phase(
    item: pytest.Item, when: Phase, run: Callable[[], None], duration_s: float = 0.0
) -> None:
    call = pytest.CallInfo.from_call(run, when=when)
    call.duration = duration_s
    report = item.ihook.pytest_runtest_makereport(item=item, call=call)
    item.ihook.pytest_runtest_logreport(report=report)
