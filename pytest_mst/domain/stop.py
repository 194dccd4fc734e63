"""A stop: why attempts of a run are not begun any more, and which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pytest_mst.domain.ending import Scope
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stored_field import (
    Stored,
    StoredFieldError,
    optional_text_field,
    text_field,
)

Gate: TypeAlias = tuple[Scope, str | None, str | None]
"""What a stop closes: its scope, the variant and the case, as far as the scope has them."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One closed gate: attempts behind it that have not begun stay unstarted."""

    scope: Scope
    """Wider than one attempt: `case` (of one variant), `variant` or `run`."""
    reason: str
    """What happened, in the words of whoever knew it."""
    locator: str
    """Of the attempt that met it."""
    at: str
    """ISO 8601, UTC."""
    variant: str | None = None
    """The variant, where the scope is not the run."""
    case: str | None = None
    """The case, where the scope is one."""

    def __post_init__(self) -> None:
        named = (self.variant is not None, self.case is not None)
        if named != _NAMED.get(self.scope):
            msg = (
                f"a stop of scope {self.scope.value!r} cannot be with variant {self.variant!r} and "
                f"case {self.case!r}; valid: a run with neither, a variant with its name, a case "
                "with both"
            )
            raise ValueError(msg)

    @classmethod
    def met(cls, attempt: AttemptId, scope: Scope, reason: str, locator: str, at: str) -> Stop:
        """Return the stop that an attempt met.

        Args:
            attempt: which one.
            scope: how far it reaches from there: a case, a variant or the run.
            reason: what happened.
            locator: the attempt's short name.
            at: ISO 8601, UTC.

        Raises:
            ValueError: the scope is one attempt, which stops no other.

        """
        return cls(
            scope=scope,
            reason=reason,
            locator=locator,
            at=at,
            variant=None if scope is Scope.RUN else attempt.variant,
            case=attempt.case if scope is Scope.CASE else None,
        )

    @property
    def gate(self) -> Gate:
        """What it closes; equal for stops that close the same."""
        return self.scope, self.variant, self.case

    def closes(self, attempt: AttemptId) -> bool:
        """Tell whether it keeps an attempt from beginning."""
        return self.variant in (None, attempt.variant) and self.case in (None, attempt.case)

    def to_json(self) -> dict[str, object]:
        """Write the stop as stored runs hold it; absent fields are left out."""
        stored: dict[str, object] = {"scope": self.scope.value}
        if self.variant is not None:
            stored["variant"] = self.variant
        if self.case is not None:
            stored["case"] = self.case
        return {**stored, "reason": self.reason, "locator": self.locator, "at": self.at}


_NAMED = {Scope.CASE: (True, True), Scope.VARIANT: (True, False), Scope.RUN: (False, False)}
"""Whether a stop of a scope names a variant and a case."""


def stop_from_json(stored: Stored) -> Stop:
    """Read a stop that `to_json` wrote; fields that are not known are ignored.

    Raises:
        ValueError: a field is missing, has a wrong type, or is outside its closed set.

    """
    scope = text_field(stored, "scope")
    if scope not in [one.value for one in _NAMED]:
        raise StoredFieldError(name="scope", found=scope, expected="case, variant or run")
    return Stop(
        scope=Scope(scope),
        reason=text_field(stored, "reason"),
        locator=text_field(stored, "locator"),
        at=text_field(stored, "at"),
        variant=optional_text_field(stored, "variant"),
        case=optional_text_field(stored, "case"),
    )
