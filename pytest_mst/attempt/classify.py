"""Asking whoever knows the surroundings what a failure means: retryable, how far, why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from pytest_mst.attempt.unexpected import detail_of, fatal_in, named
from pytest_mst.domain.ending import InfrastructureFailure, Scope
from pytest_mst.domain.failure_class import FailureClass, FailurePhase

Classify: TypeAlias = Callable[[FailurePhase, str, BaseException | None], object]
"""Given the phase, what is known in words, and the exception, if there was one. The answer is
what `FailureClass.of` takes."""


def classified(
    failure: InfrastructureFailure,
    phase: FailurePhase,
    error: BaseException | None,
    ask: Classify,
) -> InfrastructureFailure:
    """Return a failure as it is once the classifier was asked; it stays a failure.

    An answer that is wrong, and one that does not come, leave the failure as its producer said
    it, and its reason says so: what is asked here cannot lose an attempt.

    Args:
        failure: as its producer said it.
        phase: where the attempt broke.
        error: what was raised, if anything was. Where it is or holds a fatal error, the scope
            can be widened and not narrowed.
        ask: the classifier.

    """
    text = failure.reason if failure.detail is None else f"{failure.reason}\n{failure.detail}"
    try:
        answer = FailureClass.of(ask(phase, text, error))
    except BaseException as problem:  # noqa: BLE001 - around one attempt, which it cannot lose
        return replace(
            failure,
            reason=f"{failure.reason} (pytest_mst_classify_failure was of no use: "
            f"{named(problem)})",
            detail="\n".join(filter(None, (failure.detail, detail_of(problem)))),
        )
    return replace(
        failure,
        retryable=failure.retryable if answer.retryable is None else answer.retryable,
        scope=_scope(failure.scope, answer, error),
        reason=failure.reason if answer.reason is None else answer.reason,
    )


def _scope(said: Scope, answer: FailureClass, error: BaseException | None) -> Scope:
    if answer.scope is None:
        return said
    scope = Scope(answer.scope)
    fatal = None if error is None else fatal_in(error)
    return fatal.scope if fatal is not None and fatal.scope.is_wider_than(scope) else scope
