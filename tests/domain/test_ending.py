"""Endings: a trial or an infrastructure failure, and their stored form."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.ending import (
    RETRYABLE_BY_DEFAULT,
    Broke,
    CaseFatalError,
    Ending,
    FatalError,
    InfrastructureError,
    InfrastructureFailure,
    RunFatalError,
    Scope,
    Trial,
    VariantFatalError,
    ending_from_json,
    ending_to_json,
)

LIMITS = ["turns", "time", "calls", "context"]
TRIALS = st.builds(Trial, st.none() | st.text(), st.sampled_from([None, *LIMITS]))
FAILURES = st.builds(
    InfrastructureFailure,
    st.sampled_from(Broke),
    st.text(),
    st.booleans(),
    st.sampled_from(Scope),
    st.none() | st.booleans(),
    st.none() | st.text(),
)


@given(TRIALS | FAILURES)
def test_an_ending_is_read_back_as_it_was_written(ending: Ending) -> None:
    assert ending_from_json(json.loads(json.dumps(ending_to_json(ending)))) == ending


def test_what_is_not_known_is_left_out_and_what_is_false_is_not() -> None:
    assert ending_to_json(Trial()) == {"kind": "trial"}
    failure = InfrastructureFailure(Broke.NETWORK, "cut", retryable=False, accepted=False)
    assert ending_to_json(failure) == {
        "kind": "infrastructure",
        "broke": "network",
        "reason": "cut",
        "retryable": False,
        "scope": "trial",
        "accepted": False,
    }


@pytest.mark.parametrize(
    "stored",
    [
        {},
        {"kind": "passed"},
        {"kind": "trial", "stoppedBy": "tokens"},
        {"kind": "infrastructure"},
        {"kind": "infrastructure", "broke": "disk"},
        {"kind": "infrastructure", "broke": "setup", "scope": "world"},
    ],
    ids=str,
)
def test_what_is_no_ending_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ending_from_json(stored)


def test_a_stored_failure_is_retryable_only_where_it_says_so() -> None:
    read = ending_from_json({"kind": "infrastructure", "broke": "network", "retryable": "yes"})
    assert read == InfrastructureFailure(Broke.NETWORK, "", retryable=False)


def test_everything_that_can_break_has_a_default() -> None:
    assert set(RETRYABLE_BY_DEFAULT) == set(Broke)
    assert not RETRYABLE_BY_DEFAULT[Broke.SETUP]


@pytest.mark.parametrize("broke", Broke)
def test_an_error_takes_the_default_of_what_broke_and_the_word_of_who_knows(broke: Broke) -> None:
    assert InfrastructureError(broke, "x").failure.retryable is RETRYABLE_BY_DEFAULT[broke]
    for retryable in (True, False):
        error = InfrastructureError(broke.value, "x", retryable=retryable)
        assert error.failure.retryable is retryable
        assert error.failure.broke is broke


@given(FAILURES)
def test_an_error_says_its_failure_also_in_another_process(failure: InfrastructureFailure) -> None:
    error = InfrastructureError.of(failure)
    assert error.failure == failure
    assert str(error) == failure.reason
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, InfrastructureError)
    assert again.failure == failure


@pytest.mark.parametrize("fields", [{"broke": "disk"}, {"broke": "setup", "scope": "world"}])
def test_an_error_of_no_known_kind_cannot_be_made(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is not a valid"):
        InfrastructureError(reason="x", **fields)


@pytest.mark.parametrize("ending", [Trial(), InfrastructureFailure(Broke.SETUP, "x", True)])
def test_an_ending_does_not_change(ending: Ending) -> None:
    with pytest.raises(FrozenInstanceError):
        ending.kind = "other"  # type: ignore[assignment, misc]  # what must not work


@pytest.mark.parametrize(
    ("error", "scope"),
    [
        (CaseFatalError, Scope.CASE),
        (VariantFatalError, Scope.VARIANT),
        (RunFatalError, Scope.RUN),
    ],
)
def test_fatal_errors_say_how_far_they_reach(error: type[FatalError], scope: Scope) -> None:
    assert error("no use").scope is scope
