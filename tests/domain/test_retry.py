"""Trying again: what a `Retry-After` says, what a failure says of it, and how it is shown."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.ending import (
    RETRY_KIND_BY_DEFAULT,
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Scope,
    ending_to_json,
)
from pytest_mst.domain.retry import RetryHint, RetryKind, retry_after_s, retry_text

NOW = datetime(2026, 11, 30, 9, 45, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("8", 8),
        (" 120 ", 120),
        ("1.5", 1.5),
        ("-3", 0),
        ("Mon, 30 Nov 2026 09:45:30 GMT", 30),
        ("Mon, 30 Nov 2026 10:45:30 +0100", 30),
        ("Mon, 30 Nov 2026 09:45:30 -0000", 30),
        ("Monday, 30-Nov-26 09:46:00 GMT", 60),
        ("Mon Nov 30 09:46:00 2026", 60),
        ("Sun, 29 Nov 2026 09:45:00 GMT", 0),
    ],
)
def test_seconds_and_dates_are_read(value: str, seconds: float) -> None:
    assert retry_after_s(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", "soon", "1e3", "1_000", "nan", "inf", "0x10", "٣", "3 seconds", "9" * 400),
        *("Mon, 32 Nov 2026 09:45:30 GMT", "2026-11-30", "Mon, 30 Nov 2026 09:45:30 +9999999999"),
    ],
)
def test_what_is_neither_says_nothing(value: str) -> None:
    assert retry_after_s(value, NOW) is None


@given(st.text())
def test_no_text_is_an_error_or_a_time_that_has_passed(value: str) -> None:
    seconds = retry_after_s(value, NOW)
    assert seconds is None or 0 <= seconds < float("inf")


@given(st.integers(min_value=-(10**6), max_value=10**6))
def test_a_date_is_as_far_off_as_it_says(seconds: int) -> None:
    value = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    assert retry_after_s(value, NOW) == max(0, seconds)


def test_what_is_known_of_trying_again_survives_a_process_boundary() -> None:
    hint = RetryHint(RetryKind.RATE_LIMIT, 8)
    error = InfrastructureError("provider", "429", scope="case", accepted=False, retry=hint)
    read: object = pickle.loads(pickle.dumps(error))
    assert isinstance(read, InfrastructureError)
    assert (read.failure, read.retry) == (error.failure, hint)
    assert read.failure.scope is Scope.CASE


def test_it_is_no_part_of_the_ending() -> None:
    failure = InfrastructureFailure(Broke.PROVIDER, "429", retryable=True, accepted=False)
    error = InfrastructureError.of(failure, RetryHint(RetryKind.OVERLOADED))
    assert error.failure == failure
    assert set(ending_to_json(error.failure)) == {
        "kind", "broke", "reason", "retryable", "scope", "accepted"
    }  # fmt: skip
    assert InfrastructureError.of(failure).retry is None


def test_every_failure_has_a_kind_where_nothing_is_said() -> None:
    assert set(RETRY_KIND_BY_DEFAULT) == set(Broke)


@pytest.mark.parametrize(
    ("wait_ms", "shown"), [(8000, "8s"), (0, "0s"), (480, "0.5s"), (12_340, "12.3s")]
)
def test_a_wait_is_shown_with_the_try_it_is_for(wait_ms: int, shown: str) -> None:
    text = retry_text(2, 4, "rate_limit", wait_ms)
    assert text == f"turn retry 2/4 (rate_limit) — waiting {shown}"
