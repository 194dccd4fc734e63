"""A judge that grades by a rubric: what it asks a model, and what the replies come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.judge import DEFAULT_THRESHOLD, Criterion, RubricConfig
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.usage import Usage
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.judge import Answered, AskedModel, Question, Reply, Unanswered
from pytest_mst.grading.judge_input import INSTRUCTIONS, JudgeInput, Redact, data_line
from pytest_mst.grading.rubrics import RUBRICS

_TASK = (
    "You are a judge. You grade one attempt of an AI client at one task, by the criteria below and"
    " by nothing else."
)
_SCALE = (
    "Give each criterion a score from 0 (not at all) to 1 (fully); 0.5 is half way. Give null where"
    " what you are shown does not tell, and say in the reason what would make it known. Write the"
    " reason first: one to three sentences that name what in the data you go by."
)
_ASKED = "Grade the attempt above by the criteria of your instructions."


class CriterionGrade(BaseModel):
    """What a judge says of one criterion."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(description="What in the data the score goes by, in one to three sentences")
    score: Annotated[float, Field(ge=0, le=1, strict=True, allow_inf_nan=False)] | None = Field(
        description="0 to 1; null where the data does not tell"
    )


@dataclass(frozen=True)
class RubricJudge:
    """A judge that asks a model, once or several times, by a rubric."""

    name: str
    config: RubricConfig
    reps: int = 1
    """How many times it asks about a trial."""

    @property
    def threshold(self) -> float:
        """From which value on it passes, 0 to 1."""
        stated = self.config.threshold
        return DEFAULT_THRESHOLD if stated is None else stated

    @property
    def timeout_s(self) -> float:
        """How long it may take for one trial."""
        return self.config.timeout / 1000

    @property
    def asked(self) -> AskedModel:
        """Which model it asks."""
        config = self.config
        options = {"provider": config.provider, "baseUrl": config.base_url}
        options["apiKeyEnv"] = config.api_key_env
        said = {name: value for name, value in options.items() if value is not None}
        return AskedModel(config.model, said, config.temperature, config.max_tokens)

    @cached_property
    def reply(self) -> type[BaseModel]:
        """The form of the reply: a grade for each criterion, by its name."""
        return _reply_model(self.config.rubric)

    def instructions(self) -> str:
        """Write what the model is told: its task, how data is to be taken, the criteria."""
        criteria = [
            f"{field} ({_one_line(one.name)}): {RUBRICS.get(one.text, one.text)}"
            for field, one in zip(_fields(self.config.rubric), self.config.rubric, strict=True)
        ]
        return "\n\n".join([_TASK, *INSTRUCTIONS, *criteria, _SCALE])

    def question(self, given: JudgeInput, redact: Redact) -> Question:
        """Return the question about a trial.

        Args:
            given: the trial.
            redact: takes secrets out of a text.

        """
        lines = []
        if self.config.reference is not None:
            lines.append(data_line("reference", self.config.reference, redact))
        text = f"{given.data(redact=redact, more=lines)}\n{_ASKED}"
        return Question(self.instructions(), text, self.reply, self.asked)

    def outcome(
        self, facts: TrialFacts, given: JudgeInput, replies: Sequence[Reply]
    ) -> GradeOutcome:
        """Return what the replies come to: the mean of their scores.

        Each has to be there: with one that is not, the mean could be another. A reply that leaves
        a criterion unknown has no score, unless it could not pass whatever that came to. Where
        most of the replies have none, the trial's is unknown.
        """
        for number, reply in enumerate(replies):
            if isinstance(reply, Unanswered):
                which = f" (rep {number + 1} of {len(replies)})" if len(replies) > 1 else ""
                return GraderFailure(self.name, f"{reply.reason}{which}", reply.retryable)
        answered = [cast(Answered, reply) for reply in replies]
        reps = [self._rep(reply) for reply in answered]
        details = self._details(given, reps, answered)
        known = [rep.value for rep in reps if rep.value is not None]
        if not known or len(known) * 2 < len(reps):
            unknown = [rep.reason for rep in reps if rep.value is None]
            return Unknown(self.name, unknown[0], details)
        value = sum(known) / len(known)
        return Score(
            self.name,
            passed=value >= self.threshold,
            value=value,
            evidence=evidence_of(facts),
            reason=reps[0].reason if len(reps) == 1 else _of_several(reps),
            details=details,
        )

    def _rep(self, reply: Answered) -> _Rep:
        grades = {
            one.name: cast(CriterionGrade, getattr(reply.reply, field))
            for field, one in zip(_fields(self.config.rubric), self.config.rubric, strict=True)
        }
        scores = [grade.score for grade in grades.values()]
        known = [score for score in scores if score is not None]
        open_ = len(scores) - len(known)
        at_most = (sum(known) + open_) / len(scores)
        # What is unknown counts in full: only what cannot pass in any case has a score.
        value = None if open_ and at_most >= self.threshold else at_most
        told = [
            f"{name}: {grade.reason}" if len(grades) > 1 else grade.reason
            for name, grade in grades.items()
            if value is not None or grade.score is None
        ]
        return _Rep(grades, value, " ".join(told), reply.usage)

    def _details(
        self, given: JudgeInput, reps: Sequence[_Rep], replies: Sequence[Answered]
    ) -> Mapping[str, object]:
        return {
            "model": replies[0].model,
            "threshold": self.threshold,
            "criteria": {one.name: _mean(reps, one.name) for one in self.config.rubric},
            "reps": [rep.to_json() for rep in reps],
            "usage": total([rep.usage for rep in reps]).to_json(),
            "input": given.to_json(),
            "reference": self.config.reference,
        }


@dataclass(frozen=True, slots=True)
class _Rep:
    """What one reply says."""

    grades: Mapping[str, CriterionGrade]
    value: float | None
    reason: str
    usage: Usage

    def to_json(self) -> dict[str, object]:
        return {
            "value": self.value,
            "criteria": {
                name: {"reason": grade.reason}
                | ({"unknown": True} if grade.score is None else {"score": grade.score})
                for name, grade in self.grades.items()
            },
            "usage": self.usage.to_json(),
        }


def evidence_of(facts: TrialFacts) -> Evidence:
    """Return how far a judge's score of a trial can be trusted that was shown all of its facts.

    It read a record where a boundary stood; without one it goes by what the client claims. A call
    that nobody can classify, or that may be another attempt's, leaves it the trace at most.
    """
    guarded = [label for label in facts.modes if label not in facts.direct]
    if not guarded:
        return Evidence.CLAIMED
    if any(entry.unclassified for entry in facts.writes) or facts.agreement.in_doubt:
        return Evidence.CALLED
    return Evidence.REQUESTED


def total(usages: Sequence[Usage]) -> Usage:
    """Add up what several questions used; what one of them does not say is not known of all."""

    def added(name: str) -> Any:
        values = [getattr(one, name) for one in usages]
        return None if not values or None in values else sum(values)

    sources = {one.cost_source for one in usages}
    return Usage(
        requests=added("requests"),
        input_tokens=added("input_tokens"),
        output_tokens=added("output_tokens"),
        cache_read_tokens=added("cache_read_tokens"),
        cache_write_tokens=added("cache_write_tokens"),
        cost_usd=added("cost_usd"),
        cost_source=sources.pop() if len(sources) == 1 else None,
        model_ms=added("model_ms"),
    )


def _mean(reps: Sequence[_Rep], criterion: str) -> float | None:
    scores = [score for rep in reps if (score := rep.grades[criterion].score) is not None]
    return sum(scores) / len(scores) if scores else None


def _of_several(reps: Sequence[_Rep]) -> str:
    shown = ", ".join("unknown" if rep.value is None else f"{rep.value:.2f}" for rep in reps)
    return f"{shown}; {reps[0].reason}"


def _fields(criteria: Sequence[Criterion]) -> list[str]:
    """Return names that every API takes for the fields of a reply."""
    return [f"criterion_{number}" for number in range(1, len(criteria) + 1)]


def _reply_model(criteria: Sequence[Criterion]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        field: (CriterionGrade, Field(description=f"By the criterion {_one_line(one.name)}"))
        for field, one in zip(_fields(criteria), criteria, strict=True)
    }
    only = next(iter(fields)) if len(fields) == 1 else None

    def bare(value: Any) -> Any:
        """Take the grade of the only criterion, or a plain verdict, for the whole reply."""
        if only is None or not isinstance(value, Mapping) or only in value:
            return value
        if isinstance(value.get("pass"), bool) and value.keys() <= {"pass", "reason"}:
            score = 1.0 if value["pass"] else 0.0
            return {only: {"reason": value.get("reason", ""), "score": score}}
        return {only: value} if value.keys() == {"reason", "score"} else value

    model: type[BaseModel] = create_model(
        "Grades",
        __config__=ConfigDict(extra="forbid"),
        __doc__="The grades of one attempt.",
        __validators__={"bare": cast(Any, model_validator(mode="before")(bare))},
        **fields,
    )
    return model


def _one_line(text: str) -> str:
    return " ".join(text.split())
