"""Graders that a case asks for and that cannot run: their trials stay ungraded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_mst.domain.score import GradeOutcome, GraderFailure
from pytest_mst.domain.write import WriteMode
from pytest_mst.grading.grader import TrialFacts


@dataclass(frozen=True, slots=True)
class UnavailableJudge:
    """A judge. This version has none."""

    name: str

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Say that the judge did not run; that is neither a pass nor a fail."""
        return GraderFailure(
            self.name,
            "judges are not available in this version, so that the trial stays ungraded; take the "
            "judge out of the case, or grade the run again with a version that has it",
        )


@dataclass(frozen=True, slots=True)
class UnavailableOutcome:
    """The outcome checks of a case, where nobody made them."""

    name: str = "outcome"

    def applies(self, facts: TrialFacts) -> bool:
        """Outcome checks are for live attempts."""
        return WriteMode.LIVE in facts.modes.values()

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Say that the checks were not made; a live trial never passes without them."""
        return GraderFailure(
            self.name, "the outcome checks of this live trial were not made, so it stays ungraded"
        )


def judge_name(judge: object) -> str:
    """Return what a judge is called: its name, else its type, else `judge`."""
    if isinstance(judge, str) and judge.strip():
        return judge
    if isinstance(judge, Mapping):
        for key in ("name", "type"):
            named = judge.get(key)
            if isinstance(named, str) and named.strip():
                return named
    return "judge"
