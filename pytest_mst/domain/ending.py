"""How an attempt ended: as a trial, which is graded, or as an infrastructure failure.

The ending is decided by whoever ended the attempt, where the facts are. Readers ask it; none of
them looks at an error's words.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, TypeAlias

from pytest_mst.domain.retry import RetryHint, RetryKind

StoppedBy: TypeAlias = Literal["turns", "time", "calls", "context"]
"""Which of its own limits a client ran out of."""


class Broke(StrEnum):
    """What broke around an attempt. The set is closed."""

    CLIENT_APP = "client-app"
    """The program crashed, was not there, did not take the input, or gave unreadable output."""
    WORKSPACE = "workspace"
    """The client's sandbox or virtual machine."""
    NETWORK = "network"
    PROVIDER = "provider"
    """The model's API."""
    COLLECTION = "collection"
    """The result could not be collected, for example because the worker ended without it."""
    DEADLINE = "deadline"
    """Our deadline, for what hangs; not one of the client's own limits."""
    SETUP = "setup"
    """The eval, the case, a setting, a permission, or a server that could not be used."""


class Scope(StrEnum):
    """How far an infrastructure failure is known to reach; narrow to wide."""

    TRIAL = "trial"
    CASE = "case"
    VARIANT = "variant"
    RUN = "run"

    def is_wider_than(self, other: Scope) -> bool:
        """Tell whether this reaches further."""
        return _REACH.index(self) > _REACH.index(other)


_REACH = tuple(Scope)


RETRYABLE_BY_DEFAULT: dict[Broke, bool] = {
    Broke.CLIENT_APP: True,
    Broke.WORKSPACE: True,
    Broke.NETWORK: True,
    Broke.PROVIDER: True,
    Broke.COLLECTION: True,
    Broke.DEADLINE: True,
    Broke.SETUP: False,
}
"""Whether a retry can help, where the producer of a failure does not know better."""

RETRY_KIND_BY_DEFAULT: dict[Broke, RetryKind] = {
    Broke.CLIENT_APP: RetryKind.NOT_STARTED,
    Broke.WORKSPACE: RetryKind.NOT_STARTED,
    Broke.NETWORK: RetryKind.NETWORK,
    Broke.PROVIDER: RetryKind.UNAVAILABLE,
    Broke.COLLECTION: RetryKind.NOT_STARTED,
    Broke.DEADLINE: RetryKind.NOT_STARTED,
    Broke.SETUP: RetryKind.NOT_STARTED,
}
"""Why a client could not begin, where the producer of a failure does not know better."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An attempt that counts, even when the client errored or ran out of its own limits."""

    client_error: str | None = None
    """The client's own error. Such a trial is graded and cannot pass."""
    stopped_by: StoppedBy | None = None
    kind: Literal["trial"] = "trial"


@dataclass(frozen=True, slots=True)
class InfrastructureFailure:
    """An attempt that says nothing about the client, because something around it broke."""

    broke: Broke
    reason: str
    """One line for people: what broke, and what to do about it where that is known."""
    retryable: bool
    scope: Scope = Scope.TRIAL
    accepted: bool | None = None
    """Whether the client is known to have taken the input; `None` is unknown."""
    detail: str | None = None
    """The client's or server's own diagnostics, for people; no logic reads it."""
    kind: Literal["infrastructure"] = "infrastructure"


Ending: TypeAlias = Trial | InfrastructureFailure


class InfrastructureError(Exception):
    """Raised by whoever knows that an attempt cannot go on, with what it knows.

    Raise it from a client, a fixture or the body of a case that runs the client itself.
    """

    def __init__(
        self,
        broke: Broke | str,
        reason: str,
        *,
        retryable: bool | None = None,
        scope: Scope | str = Scope.TRIAL,
        accepted: bool | None = None,
        detail: str | None = None,
        retry: RetryHint | None = None,
    ) -> None:
        """Build the error.

        Args:
            broke: what broke, one of the values of `Broke`.
            reason: one line for people.
            retryable: whether a retry can help; by default what `RETRYABLE_BY_DEFAULT` says.
            scope: how far the failure is known to reach.
            accepted: whether the client is known to have taken the input.
            detail: diagnostics for people.
            retry: why and when to try again inside the attempt, which is only done where the
                client is known not to have taken the input (`accepted=False`).

        Raises:
            ValueError: `broke` or `scope` is not of its closed set.

        """
        super().__init__(reason)
        cause = Broke(broke)
        self.failure = InfrastructureFailure(
            broke=cause,
            reason=reason,
            retryable=RETRYABLE_BY_DEFAULT[cause] if retryable is None else retryable,
            scope=Scope(scope),
            accepted=accepted,
            detail=detail,
        )
        self.retry = retry

    @classmethod
    def of(
        cls, failure: InfrastructureFailure, retry: RetryHint | None = None
    ) -> InfrastructureError:
        """Return the error that says a failure that is already known."""
        return cls(
            failure.broke,
            failure.reason,
            retryable=failure.retryable,
            scope=failure.scope,
            accepted=failure.accepted,
            detail=failure.detail,
            retry=retry,
        )

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by fields, so that the error survives a process boundary."""
        return (InfrastructureError.of, (self.failure, self.retry))


class FatalError(Exception):
    """Base of the errors that stop more than the attempt that met them.

    Raise one from a client, a fixture, a set-up step or a test body. It is found through what it
    was raised from or turned into, and in an exception group. The attempt that it ended, and those
    that it kept from starting, are collected when the run is resumed.
    """

    scope: ClassVar[Scope] = Scope.CASE
    _broke: Broke | None = None
    """What broke, where it was said outright."""

    def __init__(
        self, message: str = "", *, cause: BaseException | Broke | str | None = None
    ) -> None:
        """Build the error.

        Args:
            message: one line for people: what is wrong, and what to do about it.
            cause: what broke, as a value of `Broke`; or the exception that shows it, which is
                then what this one was raised from. An `InfrastructureError` says what broke;
                where nobody does, it is `setup`.

        Raises:
            ValueError: `cause` is a text that is not of the closed set.

        """
        super().__init__(message)
        if isinstance(cause, BaseException):
            self.__cause__ = cause
        elif cause is not None:
            self._broke = _broke_named(cause)

    @property
    def broke(self) -> Broke:
        """What broke."""
        if self._broke is not None:
            return self._broke
        cause = self.__cause__
        return cause.failure.broke if isinstance(cause, InfrastructureError) else Broke.SETUP

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with what broke: what an error was raised from is left behind."""
        return (type(self), self.args, {**self.__dict__, "_broke": self.broke})


def _broke_named(text: str) -> Broke:
    try:
        return Broke(text)
    except ValueError:
        valid = ", ".join(broke.value for broke in Broke)
        msg = f"cause takes an exception, or what broke, one of: {valid}; not {text!r}"
        raise ValueError(msg) from None


class CaseFatalError(FatalError):
    """No other attempt at this case can be useful."""

    scope = Scope.CASE


class VariantFatalError(FatalError):
    """No other attempt by this variant can be useful."""

    scope = Scope.VARIANT


class RunFatalError(FatalError):
    """No other attempt of this run can be useful."""

    scope = Scope.RUN


def ending_to_json(ending: Ending) -> dict[str, object]:
    """Write an ending as the object that stored runs hold; absent fields are left out."""
    fields: dict[str, object]
    match ending:
        case Trial():
            fields = {
                "kind": "trial",
                "clientError": ending.client_error,
                "stoppedBy": ending.stopped_by,
            }
        case InfrastructureFailure():
            fields = {
                "kind": "infrastructure",
                "broke": ending.broke.value,
                "reason": ending.reason,
                "retryable": ending.retryable,
                "scope": ending.scope.value,
                "accepted": ending.accepted,
                "detail": ending.detail,
            }
    return {name: value for name, value in fields.items() if value is not None}


def ending_from_json(stored: dict[str, object]) -> Ending:
    """Read an ending that `ending_to_json` wrote.

    Raises:
        ValueError: the object is not an ending.

    """
    if stored.get("kind") == "trial":
        return Trial(
            client_error=_text(stored.get("clientError")),
            stopped_by=_stopped_by(stored.get("stoppedBy")),
        )
    if stored.get("kind") == "infrastructure":
        accepted = stored.get("accepted")
        return InfrastructureFailure(
            broke=Broke(str(stored.get("broke"))),
            reason=str(stored.get("reason", "")),
            retryable=stored.get("retryable") is True,
            scope=Scope(str(stored.get("scope", "trial"))),
            accepted=accepted if isinstance(accepted, bool) else None,
            detail=_text(stored.get("detail")),
        )
    msg = f"not an ending: kind {stored.get('kind')!r} is neither 'trial' nor 'infrastructure'"
    raise ValueError(msg)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _stopped_by(value: object) -> StoppedBy | None:
    match value:
        case None:
            return None
        case "turns" | "time" | "calls" | "context":
            return value
        case _:
            msg = f"not a limit: {value!r}; valid: turns, time, calls, context"
            raise ValueError(msg)
