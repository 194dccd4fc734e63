"""What somebody who knows the surroundings says of an infrastructure failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from pytest_mst.domain.ending import Scope

FailurePhase: TypeAlias = Literal["setup", "client", "body", "collection"]
"""Where an attempt broke: before its client was given anything (fixtures, servers); while the
client acted; in a test body that runs the client itself; while its result was being collected."""
ScopeName: TypeAlias = Literal["trial", "case", "variant", "run"]


@dataclass(frozen=True, slots=True)
class FailureClass:
    """An answer to the hook `pytest_mst_classify_failure`; `None` leaves a thing as it is."""

    retryable: bool | None = None
    """Whether a retry can help."""
    scope: Scope | ScopeName | None = None
    """How far the failure reaches; wider than `trial`, what has not begun there is not begun."""
    reason: str | None = None
    """One line for people."""

    def __post_init__(self) -> None:
        """Check the answer.

        Raises:
            ValueError: a part of it has a wrong type, or the scope is not of its closed set.

        """
        retryable: Any = self.retryable
        scope: Any = self.scope
        reason: Any = self.reason
        if retryable is not None and not isinstance(retryable, bool):
            msg = f"retryable is {retryable!r:.80}; valid: True, False or None"
            raise ValueError(msg)
        if scope is not None:
            if not isinstance(scope, str) or scope not in _SCOPES:
                msg = f"scope is {scope!r:.80}; valid: {', '.join(_SCOPES)} or None"
                raise ValueError(msg)
            object.__setattr__(self, "scope", Scope(scope))
        if reason is not None and (not isinstance(reason, str) or not reason.strip()):
            msg = f"reason is {reason!r:.80}; valid: a text that says something, or None"
            raise ValueError(msg)

    @classmethod
    def of(cls, answer: object) -> FailureClass:
        """Return what a hook answered: a `FailureClass`, the same as a dict, or `None`.

        Raises:
            ValueError: the answer is something else, or a part of it is wrong.

        """
        match answer:
            case None:
                return cls()
            case FailureClass():
                return answer
            case Mapping():
                unknown = [key for key in answer if key not in _KEYS]
                if unknown:
                    msg = f"there is no {unknown[0]!r:.80}; valid: {', '.join(_KEYS)}"
                    raise ValueError(msg)
                return cls(**answer)
            case _:
                msg = (
                    f"the answer is {answer!r:.80}; valid: a FailureClass, a dict with "
                    f"{', '.join(_KEYS)}, or None"
                )
                raise ValueError(msg)


_SCOPES = tuple(scope.value for scope in Scope)
_KEYS = tuple(one.name for one in fields(FailureClass))
