"""How an eval case runs as one pytest item: its attempts, then one verdict.

A case whose fixtures are all wider than a function is run like any test, and its call phase
takes in all of its attempts. A case with function fixtures runs set-up, call and teardown once
for each attempt, as pytest-rerunfailures does, and its verdict is reported after them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

import pytest

from pytest_mst.attempt.collect import FinishedAttempt
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.evidence import lowest
from pytest_mst.domain.score import CaseVerdict, GradedAttempt, GraderFailure, case_verdict
from pytest_mst.plugin import timer
from pytest_mst.plugin.body import (
    FIXTURES,
    NotATrial,
    add_body_grade,
    body_grade,
    failure_before_end,
    fixtures_grade,
)
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.case_text import AttemptText, case_text
from pytest_mst.plugin.engine import Job
from pytest_mst.plugin.keys import CASE, SESSION, VERDICT
from pytest_mst.plugin.outcomes import (
    ATTEMPT_PHASE,
    CASE_PROPERTY,
    EVIDENCE_PROPERTY,
    RATE_PROPERTY,
    AttemptNote,
    CaseFailed,
    CaseIncomplete,
    SkipNote,
    state_of,
)
from pytest_mst.plugin.pytest_private import (
    forget_last_run,
    has_function_fixtures,
    outside_capture,
    run_protocol,
    sections_of,
    tear_down_to,
)
from pytest_mst.plugin.session import EvalSession

Phase: TypeAlias = Literal["setup", "call", "teardown"]

_REASON_CHARS = 2_000
_SHOWN_OUTPUTS = 20
"""Of how many attempts the captured output is kept."""
_NOTE_REASON_CHARS = 200
"""Of an attempt's reason in its report, which is to stay small."""


class _BetweenAttempts(pytest.Item):
    """Stands between attempts: of the same parents, so that only function fixtures end."""

    def runtest(self) -> None:
        """Never run."""


class Attempts:
    """The attempts of one case that have ended, as far as the verdict needs them."""

    def __init__(self, item: pytest.Item, case: CaseItem) -> None:
        self._item = item
        self._case = case
        self._start = time.time()
        self._unsaid: list[pytest.TestReport] = []
        self.graded: list[GradedAttempt] = []
        self.texts: list[AttemptText] = []
        self.sections: list[tuple[str, str, str]] = []

    def add(self, finished: FinishedAttempt | None, shown: str = "") -> None:
        """Take in an attempt and make its small report; the attempt itself is then let go."""
        case, trial = self._case, self._case.trial
        graded = GradedAttempt(trial, None) if finished is None else finished.graded
        self.graded.append(graded)
        state = state_of(graded)
        if state != "passed":
            self.texts.append(AttemptText.of(case.locator(trial), trial, state, finished, shown))
        ending = graded.ending
        broken = ending if isinstance(ending, InfrastructureFailure) else None
        note = AttemptNote(
            locator=case.locator(trial),
            run=case.run.run_id,
            variant=case.variant.name,
            case=case.case.id,
            trial=trial,
            state=state,
            broke=None if broken is None else broken.broke.value,
            reason="" if broken is None else self._redacted(broken.reason)[:_NOTE_REASON_CHARS],
            retryable=broken is not None and broken.retryable,
        )
        report = pytest.TestReport(
            nodeid=self._item.nodeid,
            location=self._item.location,
            keywords={},
            outcome="passed",
            longrepr=None,
            when=ATTEMPT_PHASE,  # type: ignore[arg-type]  # a phase of our own, that reporters pass over
            sections=(),
            duration=0.0,
            start=self._start,
            stop=time.time(),
            user_properties=[note.to_property()],
        )
        self._unsaid.append(report)

    def say(self) -> None:
        """Send the reports of the attempts taken in since the last time."""
        if self._unsaid:
            with outside_capture(self._item.config):
                for report in self._unsaid:
                    self._item.ihook.pytest_runtest_logreport(report=report)
            self._unsaid.clear()

    def keep_output(self, sections: Iterable[tuple[str, str, str]]) -> None:
        """Keep what was captured in an attempt, of the first few attempts."""
        if len(self.graded) < _SHOWN_OUTPUTS:
            self.sections += [(when, name, self._redacted(text)) for when, name, text in sections]

    def _redacted(self, text: str) -> str:
        return self._case.run.writer.redactor.text(text)

    def decide(self) -> Exception | None:
        """Settle the case's verdict: note it on the item and return what says it."""
        self.say()
        case = self._case
        verdict = case_verdict(self.graded, planned=case.trials, pass_threshold=case.pass_threshold)
        passed = sum(state_of(one) == "passed" for one in self.graded)
        trials = sum(isinstance(one.ending, Trial) for one in self.graded)
        self._item.stash[VERDICT] = verdict
        self._item.user_properties.append((CASE_PROPERTY, verdict.value))
        self._item.user_properties.append((RATE_PROPERTY, f"{passed}/{trials}"))
        evidence = lowest(one.evidence for one in self.graded)
        if evidence is not None and case.planned().write_case:
            self._item.user_properties.append((EVIDENCE_PROPERTY, evidence.label))
        text = self._redacted(case_text(case, verdict, self.graded, self.texts))
        match verdict:
            case CaseVerdict.PASSED:
                return None
            case CaseVerdict.FAILED:
                return CaseFailed(text)
            case CaseVerdict.INCOMPLETE:
                return CaseIncomplete(text)


def run_case(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run one case, whatever it is written in, and report it once."""
    case = item.stash[CASE]
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    if case.has_body or has_function_fixtures(item):
        _run_each_attempt(item, case, nextitem)
    else:
        reports = run_protocol(item, nextitem)
        timer.disarm(item)
        if VERDICT not in item.stash:
            _stopped_before_verdict(item, case, reports)
        for report in _verdict_first(reports):
            item.ihook.pytest_runtest_logreport(report=report)
    if VERDICT in item.stash:
        del item.stash[VERDICT]
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


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


def _stopped_before_verdict(
    item: pytest.Item, case: CaseItem, reports: list[pytest.TestReport]
) -> None:
    """Make a case incomplete that something else stopped: a fixture, or another plugin.

    Attempts that had already been made are kept; a failure around them leaves them ungraded.
    """
    broken = next((one for one in reports if one.failed and one.when != "teardown"), None)
    if broken is None:
        _skipped(case, reports)
        _give_up_all(item, case)
        return
    session = item.config.stash[SESSION]
    attempts = Attempts(item, case)
    failure = fixtures_grade(case) or GraderFailure(FIXTURES, broken.longreprtext[-_REASON_CHARS:])
    raised = case.raised
    out_of_time = raised is not None and timer.fired(raised)
    for trial in range(case.trials):
        case.begin_trial(trial)
        assert case.target is not None
        job = case.job(trial, case.target)
        if raised is not None and out_of_time and session.engine.give_up(job):
            attempts.add(session.store_failure(case, failure_before_end(raised)))
            continue
        finished = session.engine.get_if_begun(job)
        if finished is not None and isinstance(finished.record.ending, Trial):
            finished = add_body_grade(case.run.writer, finished, failure)
        attempts.add(finished)
    attempts.say()
    broken.when = "setup"
    broken.user_properties.append((CASE_PROPERTY, CaseVerdict.INCOMPLETE.value))


def _skipped(case: CaseItem, reports: list[pytest.TestReport]) -> bool:
    """Note on the report that skipped a case, if one did, which case is outside the ledger."""
    skipped = next((one for one in reports if one.skipped and one.when != "teardown"), None)
    if skipped is None:
        return False
    longrepr = skipped.longrepr
    reason = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    note = SkipNote(case.run.run_id, case.variant.name, case.case.id, reason[:_NOTE_REASON_CHARS])
    skipped.user_properties.append(note.to_property())
    return True


def _run_each_attempt(item: pytest.Item, case: CaseItem, nextitem: pytest.Item | None) -> None:
    parent = item.parent
    assert parent is not None  # only the session has none
    boundary = _BetweenAttempts.from_parent(parent, name=item.name)
    attempts = Attempts(item, case)
    start = time.time()
    teardown_errors: list[pytest.TestReport] = []
    for trial in range(case.trials):
        case.begin_trial(trial)
        forget_last_run(item)
        timer.rearm(item)
        reports = run_protocol(item, boundary)
        timer.disarm(item)
        if trial == 0 and case.finished is None and _skipped(case, reports):
            _give_up_all(item, case)
            for report in reports:
                item.ihook.pytest_runtest_logreport(report=report)
            _report_phase(item, "teardown", lambda: tear_down_to(item.session, nextitem))
            return
        finished, shown = _finish(item, case, reports)
        if finished is not None and isinstance(finished.record.ending, Trial):
            attempts.keep_output(sections_of(item))
        attempts.add(finished, shown)
        attempts.say()
        teardown_errors.extend(
            report for report in reports if report.when == "teardown" and report.failed
        )
        if item.session.shouldstop:
            break
    case.begin_trial(0)  # lets the last attempt go
    for report in teardown_errors:
        item.ihook.pytest_runtest_logreport(report=report)
    _report_verdict(item, attempts, nextitem, start)


def _finish(
    item: pytest.Item, case: CaseItem, reports: list[pytest.TestReport]
) -> tuple[FinishedAttempt | None, str]:
    """Return the attempt of the trial that has just run, with what fixtures and body said."""
    failed = next((one for one in reports if one.failed and one.when != "teardown"), None)
    shown = failed.longreprtext if failed is not None else ""
    session = item.config.stash[SESSION]
    finished, raised = case.finished, case.raised
    if finished is None and not isinstance(raised, NotATrial):
        job = _made_without_fixtures(session, case, raised)
        if job is not None:
            finished = session.engine.get(job)
        elif raised is not None:
            return session.store_failure(case, failure_before_end(raised)), shown
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
    if case.run_by != "engine" or case.target is None:
        return None
    job = case.job(case.trial, case.target)
    if raised is not None and timer.fired(raised) and session.engine.give_up(job):
        return None  # it took longer than it may
    return None if session.engine.was_asked_for(job) else job


def _give_up_all(item: pytest.Item, case: CaseItem) -> None:
    """Cut short what was begun ahead of a case that turned out to be skipped."""
    for trial in range(case.trials):
        if case.target is not None:
            item.config.stash[SESSION].engine.give_up(case.job(trial, case.target))


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


def shape_report(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> pytest.TestReport:
    """Note what a phase raised while attempts run; show a verdict as its text alone."""
    case = item.stash[CASE]
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
