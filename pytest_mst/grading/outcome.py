"""The grader of what is really there: it looks at what our own reads brought, and reads nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_mst.domain.case import OutcomeCheck
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.json_value import json_equal
from pytest_mst.domain.outcome import OUTCOME_GRADER, OutcomeReading
from pytest_mst.domain.placeholder import filled
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score
from pytest_mst.domain.write import WriteMode
from pytest_mst.grading.found import CannotTellError, problems_in
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.shown import listed, shown_call


@dataclass(frozen=True, slots=True)
class OutcomeGrader:
    """What the outcome checks of a live case ask for was found. Its evidence is `applied`.

    A read that failed tells nothing: it leaves the trial ungraded, where no other check fails it.
    """

    checks: tuple[OutcomeCheck, ...]
    name: str = OUTCOME_GRADER

    def applies(self, facts: TrialFacts) -> bool:
        """Outcome checks are for live attempts; nothing is read after others."""
        return WriteMode.LIVE in facts.modes.values()

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Score the share of the checks that hold."""
        wrong: list[str] = []
        unknown: list[str] = []
        for check in self.checks:
            asked = filled_check(check, facts.trial_id)
            reading = next((one for one in facts.outcome if _is_of(one, asked)), None)
            call = shown_call(asked.server, asked.tool, asked.arguments)
            try:
                found = problems(asked, reading)
            except CannotTellError as error:
                unknown.append(f"{call}: {error}")
                continue
            if found:
                wrong.append(f"{call}: {listed(found)}{_waited(reading)}")
        if unknown and not wrong:
            return GraderFailure(self.name, listed(unknown))
        return Score(
            self.name,
            passed=not wrong,
            value=1 - (len(wrong) + len(unknown)) / len(self.checks),
            evidence=Evidence.APPLIED,
            reason="; ".join([*wrong, *unknown]) or None,
            details={"failed": wrong, "unread": unknown} if wrong else {},
        )


def filled_check(check: OutcomeCheck, trial_id: str) -> OutcomeCheck:
    """Return a check as it is for one attempt: with its id in every text."""
    written = check.model_dump(by_alias=True, exclude_unset=True)
    return OutcomeCheck.model_validate(filled(written, trial_id))


def problems(check: OutcomeCheck, reading: OutcomeReading | None) -> list[str]:
    """Say what a check asks for and a reading does not have; nothing where all of it holds.

    Args:
        check: with the attempt's id in its texts.
        reading: what was read for it; `None` where nothing was.

    Raises:
        CannotTellError: the reading tells nothing of it.

    """
    if reading is None:
        msg = "was not read when the attempt ended; --mst-resume collects the attempt anew"
        raise CannotTellError(msg)
    if reading.result is None:
        msg = f"could not be read: {reading.error or 'for a reason that is not stored'}"
        raise CannotTellError(msg)
    return problems_in(check, reading.result)


def _is_of(reading: OutcomeReading, check: OutcomeCheck) -> bool:
    return (
        reading.server == check.server
        and reading.tool == check.tool
        and json_equal(reading.arguments, check.arguments)
    )


def _waited(reading: OutcomeReading | None) -> str:
    """Say how long it was waited for, where it was read more than once."""
    if reading is None or reading.tries < 2:  # noqa: PLR2004 - the first read is no wait
        return ""
    return f" (read {reading.tries} times in {reading.waited_ms} ms)"
