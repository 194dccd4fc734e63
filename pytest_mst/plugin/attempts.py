"""The attempts of one case as they end, and the verdict that they come to."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.domain.evidence import lowest
from pytest_mst.domain.score import CaseVerdict, GradedAttempt, case_verdict
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.case_text import AttemptText, case_text
from pytest_mst.plugin.keys import VERDICT
from pytest_mst.plugin.outcomes import (
    ATTEMPT_PHASE,
    CASE_PROPERTY,
    EVIDENCE_PROPERTY,
    NOTE_REASON_CHARS,
    RATE_PROPERTY,
    AttemptNote,
    CaseFailed,
    CaseIncomplete,
    state_of,
)
from pytest_mst.plugin.pytest_private import outside_capture
from pytest_mst.report.text import shown

_SHOWN_OUTPUTS = 20
"""Of how many attempts the captured output is kept."""


class Attempts:
    """The attempts of one case that have ended, as far as the verdict needs them."""

    def __init__(self, item: pytest.Item, case: CaseItem, skipped: str | None = None) -> None:
        """Take a case of which no attempt has been taken in.

        Args:
            item: its item.
            case: the case.
            skipped: why it is skipped, where what is stored of it stands all the same.

        """
        self.skipped = skipped
        self._item = item
        self._case = case
        self._start = time.time()
        self._unsaid: list[pytest.TestReport] = []
        self.graded: list[GradedAttempt] = []
        self.texts: list[AttemptText] = []
        self.sections: list[tuple[str, str, str]] = []

    @property
    def any_ended(self) -> bool:
        """Whether there is one that was made, now or earlier."""
        return any(one.ending is not None for one in self.graded)

    def add(self, finished: FinishedAttempt | None, body_text: str = "") -> None:
        """Take in an attempt and make its small report; the attempt itself is then let go."""
        case, trial = self._case, self._case.trial
        graded = GradedAttempt(trial, None) if finished is None else finished.graded
        self.graded.append(graded)
        state = state_of(graded)
        if state != "passed":
            name = case.locator(trial)
            self.texts.append(AttemptText.of(name, trial, state, finished, body_text))
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
            reason="" if broken is None else self._redacted(broken.reason)[:NOTE_REASON_CHARS],
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
        self._item.stash[VERDICT] = verdict
        self._item.user_properties.append((CASE_PROPERTY, verdict.value))
        if verdict is not CaseVerdict.INCOMPLETE:
            self._item.user_properties.append((RATE_PROPERTY, f"{passed}/{len(self.graded)}"))
        evidence = lowest(one.evidence for one in self.graded)
        if evidence is not None and case.planned().write_case:
            self._item.user_properties.append((EVIDENCE_PROPERTY, evidence.label))
        text = case_text(case, verdict, self.graded, self.texts)
        if self.skipped is not None:
            text += f"\nskipped now ({shown(self.skipped)}): what there is of it stands"
        text = self._redacted(text)
        match verdict:
            case CaseVerdict.PASSED:
                return None
            case CaseVerdict.FAILED:
                return CaseFailed(text)
            case CaseVerdict.INCOMPLETE:
                return CaseIncomplete(text)
