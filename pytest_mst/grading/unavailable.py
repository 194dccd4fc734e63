"""Graders that a case asks for and that cannot run: their trials stay ungraded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_mst.domain.score import GradeOutcome, GraderFailure
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
