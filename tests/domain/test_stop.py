"""Stops: what a closed gate keeps from beginning, fatal errors, and what hooks answer."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.ending import (
    Broke,
    CaseFatalError,
    FatalError,
    InfrastructureError,
    RunFatalError,
    Scope,
    VariantFatalError,
)
from pytest_mst.domain.failure_class import FailureClass
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.stop import Stop, stop_from_json

AT = AttemptId("b", "two", 3)
WHEN = "2026-11-30T09:45:00.000Z"
TEXTS = st.text(max_size=20)
NAMES = st.text(min_size=1, max_size=8)
WIDE = st.sampled_from([Scope.CASE, Scope.VARIANT, Scope.RUN])


@pytest.mark.parametrize(
    ("scope", "closed"),
    [
        (Scope.CASE, {("b", "two")}),
        (Scope.VARIANT, {("b", "one"), ("b", "two")}),
        (Scope.RUN, {("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")}),
    ],
)
def test_a_stop_closes_what_its_scope_says_from_the_attempt_that_met_it(
    scope: Scope, closed: set[tuple[str, str]]
) -> None:
    stop = Stop.met(AT, scope, "gone", "@k7f3abcd", WHEN)
    there = [(variant, case) for variant in "ab" for case in ("one", "two")]
    assert {pair for pair in there if stop.closes(AttemptId(*pair, 0))} == closed


@given(NAMES, NAMES, WIDE, TEXTS)
def test_a_stop_is_read_back_as_it_was_written(
    variant: str, case: str, scope: Scope, reason: str
) -> None:
    stop = Stop.met(AttemptId(variant, case, 0), scope, reason, "@k7f3abcd", WHEN)
    assert stop_from_json(stop.to_json()) == stop
    assert stop.closes(AttemptId(variant, case, 9))


@pytest.mark.parametrize(
    ("scope", "named"),
    [
        (Scope.TRIAL, {"variant": "b", "case": "two"}),
        (Scope.CASE, {"case": "two"}),
        (Scope.VARIANT, {"variant": "b", "case": "two"}),
        (Scope.RUN, {"variant": "b"}),
    ],
)
def test_a_stop_that_closes_nothing_that_there_is_cannot_be_made(
    scope: Scope, named: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=f"scope '{scope.value}' cannot be"):
        Stop(scope, "gone", "@k7f3abcd", WHEN, **named)


@pytest.mark.parametrize(
    "broken", [{"scope": "trial"}, {"scope": "world"}, {"reason": None}, {"variant": 3}]
)
def test_what_is_no_stop_is_not_read_as_one(broken: dict[str, object]) -> None:
    stored = Stop.met(AT, Scope.RUN, "gone", "@k7f3abcd", WHEN).to_json() | broken
    with pytest.raises(ValueError, match=next(iter(broken))):
        stop_from_json(stored)


def test_scopes_are_ordered_by_their_reach() -> None:
    narrow_to_wide = [Scope.TRIAL, Scope.CASE, Scope.VARIANT, Scope.RUN]
    wider = {(a, b) for a in Scope for b in Scope if a.is_wider_than(b)}
    assert wider == {(a, b) for at, a in enumerate(narrow_to_wide) for b in narrow_to_wide[:at]}


def test_a_fatal_error_says_what_broke() -> None:
    provider = InfrastructureError(Broke.PROVIDER, "quota")
    assert RunFatalError("gone").broke is Broke.SETUP
    assert RunFatalError("gone", cause=Broke.NETWORK).broke is Broke.NETWORK
    assert RunFatalError("gone", cause="workspace").broke is Broke.WORKSPACE
    assert RunFatalError("gone", cause=ValueError("x")).broke is Broke.SETUP
    chained = CaseFatalError("gone", cause=provider)
    assert chained.broke is Broke.PROVIDER
    assert chained.__cause__ is provider
    bare = VariantFatalError("gone")
    with pytest.raises(VariantFatalError) as caught:
        raise bare from provider
    assert caught.value.broke is Broke.PROVIDER


def test_a_fatal_error_refuses_a_cause_that_is_not_of_the_closed_set() -> None:
    with pytest.raises(ValueError, match=r"one of: client-app, workspace, .*setup; not 'disk'"):
        RunFatalError("gone", cause="disk")


@pytest.mark.parametrize("kind", [CaseFatalError, VariantFatalError, RunFatalError])
@pytest.mark.parametrize("cause", [None, "network", InfrastructureError("provider", "quota")])
def test_a_fatal_error_survives_being_pickled(kind: type[FatalError], cause: Any) -> None:
    error = kind("the database is gone", cause=cause)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert (str(again), again.scope, again.broke) == (str(error), error.scope, error.broke)


class OutOfQuota(RunFatalError):
    """A project's own, which says nothing to its base."""

    def __init__(self) -> None:
        Exception.__init__(self, "no quota")


def test_a_fatal_error_of_somebody_elses_need_not_call_its_base() -> None:
    error = OutOfQuota()
    assert (error.scope, error.broke) == (Scope.RUN, Broke.SETUP)


@pytest.mark.parametrize("scope", [None, "variant", Scope.VARIANT])
def test_an_answer_may_be_a_class_or_a_dict(scope: Any) -> None:
    expected = FailureClass(retryable=False, scope=scope, reason="r")
    assert FailureClass.of({"retryable": False, "scope": scope, "reason": "r"}) == expected
    assert FailureClass.of(expected) is expected
    assert expected.scope in (None, Scope.VARIANT)


def test_no_answer_says_nothing() -> None:
    assert FailureClass.of(None) == FailureClass.of({}) == FailureClass()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("run", "valid: a FailureClass, a dict with retryable, scope, reason, or None"),
        (True, "valid: a FailureClass"),
        ({"scop": "run"}, "no 'scop'; valid: retryable, scope, reason"),
        ({"scope": "world"}, "'world'; valid: trial, case, variant, run"),
        ({"scope": ["run"]}, "valid: trial, case, variant, run"),
        ({"retryable": "no"}, "'no'; valid: True, False or None"),
        ({"retryable": 1}, "1; valid: True"),
        ({"reason": 3}, "3; valid: a text"),
        ({"reason": " "}, "valid: a text that says something"),
        ({1: 2}, "no 1; valid"),
    ],
)
def test_a_wrong_answer_says_what_is_valid(answer: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        FailureClass.of(answer)
