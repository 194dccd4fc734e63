"""What taking a run up again comes to, as it is said before anything is done and stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    integer_field,
    object_list_field,
    text_field,
    text_list_field,
)


class Step(StrEnum):
    """What becomes of one planned attempt when its run is taken up again."""

    KEEP = "keep"
    GRADE = "grade"
    """Its trace is kept, its trial graded again."""
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of one attempt, and why."""

    step: Step
    reason: str
    """For people, in a few words."""
    changed: tuple[str, ...] = ()
    """The parts of the collection key that differ from what is stored."""
    graders: frozenset[str] | None = None
    """Of a trial to be graded again: which graders; `None` is all of them."""
    fix: str | None = None
    """What is to be fixed first, where nothing that is done now can complete the attempt."""


ResumptionKind: TypeAlias = Literal["resume", "grade"]


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case that is not as it was when its run was started, and what became of that."""

    variant: str
    case: str
    what: str

    def to_json(self) -> dict[str, object]:
        """Write the change as `run.json` holds it."""
        return {"variant": self.variant, "id": self.case, "what": self.what}


@dataclass(frozen=True, slots=True)
class Resumption:
    """One time that a run was taken up again."""

    at: str
    """ISO 8601, UTC; also the name of the folder, below `superseded`, of what it replaced."""
    kind: ResumptionKind
    counts: Mapping[Step, int]
    cannot_help: int = 0
    """Attempts among the kept ones that nothing but a fix can complete."""
    fixes: tuple[str, ...] = ()
    """What to fix, each once."""
    changed: tuple[ChangedCase, ...] = ()
    tools: tuple[str, ...] = ()
    """Servers whose tools differ from those that the run was started with, and how."""
    torn: int = 0
    """Lines and files that could not be read, as a killed process leaves them."""

    def to_json(self) -> dict[str, object]:
        """Write the resumption as `run.json` holds it."""
        return {
            "at": self.at,
            "kind": self.kind,
            "kept": self.counts.get(Step.KEEP, 0),
            "collect": self.counts.get(Step.COLLECT, 0),
            "grade": self.counts.get(Step.GRADE, 0),
            "cannotHelp": self.cannot_help,
            "fixes": list(self.fixes),
            "changed": [one.to_json() for one in self.changed],
            "tools": list(self.tools),
            "torn": self.torn,
        }


def resumptions_from_json(stored: Stored) -> tuple[Resumption, ...]:
    """Read the resumptions that a `run.json` lists; none where it has none.

    Raises:
        ValueError: a field is missing, has a wrong type, or is outside its closed set.

    """
    return tuple(_resumption(one) for one in object_list_field(stored, "resumptions"))


def _resumption(stored: Stored) -> Resumption:
    return Resumption(
        at=text_field(stored, "at"),
        kind=_kind(stored.get("kind")),
        counts={
            Step.KEEP: integer_field(stored, "kept"),
            Step.COLLECT: integer_field(stored, "collect"),
            Step.GRADE: integer_field(stored, "grade"),
        },
        cannot_help=integer_field(stored, "cannotHelp", 0),
        fixes=text_list_field(stored, "fixes"),
        changed=tuple(
            ChangedCase(text_field(one, "variant"), text_field(one, "id"), text_field(one, "what"))
            for one in object_list_field(stored, "changed")
        ),
        tools=text_list_field(stored, "tools"),
        torn=integer_field(stored, "torn", 0),
    )


def _kind(value: object) -> ResumptionKind:
    match value:
        case "resume" | "grade":
            return value
        case _:
            raise StoredFieldError(name="kind", found=value, expected="resume or grade")
