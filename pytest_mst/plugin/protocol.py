"""How an eval case runs as one pytest item: its attempts, then one verdict.

A case whose fixtures are all wider than a function is run like any test, and its call phase
takes in all of its attempts. For one with function fixtures see `each_attempt`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_mst.domain.ending import Trial
from pytest_mst.domain.score import CaseVerdict, GraderFailure
from pytest_mst.plugin import timer
from pytest_mst.plugin.attempts import Attempts
from pytest_mst.plugin.body import FIXTURES, add_body_grade, failure_before_end, fixtures_grade
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.each_attempt import run_each_attempt
from pytest_mst.plugin.keys import CASE, SESSION, VERDICT
from pytest_mst.plugin.outcomes import CASE_PROPERTY, CaseFailed, CaseIncomplete
from pytest_mst.plugin.pytest_private import has_function_fixtures, run_protocol
from pytest_mst.plugin.skipping import give_up_all, keep_as_stored, note_skip, skip_in
from pytest_mst.plugin.stopping import close_gate, is_stopped

_REASON_CHARS = 2_000


def run_case(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run one case, whatever it is written in, and report it once."""
    case = item.stash[CASE]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    by_attempt = case.has_body or has_function_fixtures(item)
    if by_attempt or case.is_all_stored or _stopped_before(item, case):
        run_each_attempt(item, case, nextitem)
    else:
        _run_at_once(item, case, nextitem)
    if VERDICT in item.stash:
        del item.stash[VERDICT]
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _stopped_before(item: pytest.Item, case: CaseItem) -> bool:
    """Tell whether no attempt of a case is to begin, so that nothing is set up for it either."""
    engine = item.config.stash[SESSION].engine
    return all(is_stopped(engine, case, trial) for trial in range(case.trials))


def _run_at_once(item: pytest.Item, case: CaseItem, nextitem: pytest.Item | None) -> None:
    reports = run_protocol(item, nextitem)
    timer.disarm(item)
    if VERDICT not in item.stash:
        broken = next((one for one in reports if one.failed and one.when != "teardown"), None)
        skipped = skip_in(reports) if broken is None else None
        if broken is not None:
            _stopped_before_verdict(item, case, broken)
        else:
            give_up_all(item, case)
        if skipped is not None and case.is_in_ledger:
            keep_as_stored(case)
            run_each_attempt(item, case, nextitem, after=reports, skipped=skipped)
            return
        if skipped is not None:
            note_skip(case, skipped)
    for report in _verdict_first(reports):
        item.ihook.pytest_runtest_logreport(report=report)


def _verdict_first(reports: list[pytest.TestReport]) -> Iterator[pytest.TestReport]:
    """Leave out the set-up that passed where the call's report stands as a failed set-up."""
    moved = any(report.when == "setup" and not report.passed for report in reports[1:])
    yield from reports[1:] if moved else reports


def run_call_phase(item: pytest.Item) -> None:
    """Take in the attempts of a case in an eval file: all of them, or the one under way.

    Raises:
        CaseFailed: too few of its trials passed.
        CaseIncomplete: it is short of a graded trial.

    """
    case, session = item.stash[CASE], item.config.stash[SESSION]
    assert case.target is not None  # a case in an eval file has one from the start
    if has_function_fixtures(item):
        case.finished = session.engine.get(case.job(case.trial, case.target))
        return
    attempts = Attempts(item, case)
    for trial in range(case.trials):
        case.begin_trial(trial)
        timer.rearm(item)
        job = case.job(trial, case.target)
        if not session.engine.has_result(job):
            attempts.say()  # before a wait; else together, since leaving capture costs
        attempts.add(session.engine.get(job))
    case.begin_trial(0)
    verdict = attempts.decide()
    if verdict is not None:
        raise verdict


def _stopped_before_verdict(item: pytest.Item, case: CaseItem, broken: pytest.TestReport) -> None:
    """Make a case incomplete that something else stopped: a fixture, or another plugin.

    Attempts that had already been made are kept; a failure around them leaves them ungraded.
    """
    session = item.config.stash[SESSION]
    attempts = Attempts(item, case)
    failure = fixtures_grade(case) or GraderFailure(FIXTURES, broken.longreprtext[-_REASON_CHARS:])
    raised = case.raised
    out_of_time = raised is not None and timer.fired(raised)
    for trial in range(case.trials):
        case.begin_trial(trial)
        assert case.target is not None
        job = case.job(trial, case.target)
        if case.is_stored(trial):
            attempts.add(session.engine.get(job))
            continue
        if raised is not None and out_of_time and session.engine.give_up(job):
            attempts.add(session.store_failure(case, failure_before_end(raised), raised))
            continue
        finished = session.engine.get_if_begun(job)
        if finished is not None and isinstance(finished.record.ending, Trial):
            finished = add_body_grade(case.run.writer, finished, failure)
        attempts.add(finished)
    attempts.say()
    broken.when = "setup"
    broken.user_properties.append((CASE_PROPERTY, CaseVerdict.INCOMPLETE.value))


def shape_report(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> pytest.TestReport:
    """Note what a phase raised while attempts run; show a verdict as its text alone."""
    case = item.stash[CASE]
    if call.excinfo is not None:
        close_gate(case, call.excinfo.value)
    verdict = item.stash.get(VERDICT, None)
    if verdict is None:
        case.body_ended = case.body_ended or call.when == "call"
        if call.excinfo is not None:
            case.errors.append((call.when, call.excinfo))
        return report
    error = call.excinfo.value if call.excinfo is not None else None
    if isinstance(error, CaseFailed | CaseIncomplete):
        report.longrepr = str(error)
    if isinstance(error, CaseIncomplete):
        report.when = "setup"  # how reporters tell what could not be measured from what failed
    return report
