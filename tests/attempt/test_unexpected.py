"""What an exception that nobody caught says about an attempt."""

from __future__ import annotations

import socket
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_mst.attempt.unexpected import failure_of, proxy_failure
from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.errors import OptionsError

NETWORK = [ConnectionError(), ConnectionAbortedError("x"), socket.gaierror(1), ssl.SSLError("s")]
OTHERS = [ValueError("v"), OSError("disk"), TimeoutError("slow"), KeyError("k")]


def nested(errors: list[Exception], depth: int) -> Exception:
    """Put errors in a group, in groups."""
    group: Exception = ExceptionGroup("g", errors)
    for _ in range(depth):
        group = ExceptionGroup("g", [group])
    return group


def raised(error: Exception, cause: Exception) -> Exception:
    """Raise one error from another, as libraries wrap what they meet."""
    try:
        raise error from cause
    except type(error) as caught:
        return caught


@settings(max_examples=30)
@given(st.lists(st.sampled_from(NETWORK), min_size=1, max_size=3), st.integers(0, 3))
def test_only_network_errors_at_any_depth_are_the_networks_fault(
    errors: list[Exception], depth: int
) -> None:
    failure = failure_of(nested(errors, depth))
    assert (failure.broke, failure.retryable) == (Broke.NETWORK, True)
    assert type(errors[0]).__name__ in failure.reason


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(NETWORK), max_size=2),
    st.lists(st.sampled_from(OTHERS), min_size=1, max_size=2),
    st.integers(0, 3),
)
def test_one_other_error_among_them_is_the_clients(
    network: list[Exception], others: list[Exception], depth: int
) -> None:
    failure = failure_of(nested([*network, *others], depth))
    assert (failure.broke, failure.retryable) == (Broke.CLIENT_APP, True)


def test_a_network_error_is_known_under_what_a_library_wraps_it_in() -> None:
    inner = raised(LookupError("transport"), ConnectionRefusedError("refused"))
    failure = failure_of(raised(RuntimeError("request failed"), inner))
    assert failure.broke is Broke.NETWORK
    assert "RuntimeError: request failed" in failure.reason
    assert "ConnectionRefusedError: refused" in (failure.detail or "")


def test_an_error_met_while_another_was_handled_is_not_made_by_it() -> None:
    error, lost = ValueError("a bug"), ConnectionError("lost")
    error.__context__ = lost
    assert failure_of(error).broke is Broke.CLIENT_APP
    error.__cause__ = lost
    assert failure_of(error).broke is Broke.NETWORK


def test_causes_that_go_round_in_a_circle_end() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert failure_of(one).broke is Broke.CLIENT_APP


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_what_is_said_as_an_infrastructure_error_counts_wherever_it_is(depth: int) -> None:
    said = InfrastructureError("provider", "529", scope="variant", accepted=False)
    failure = failure_of(nested([ValueError("v"), said], depth))
    assert failure == said.failure
    assert failure.scope is Scope.VARIANT
    assert proxy_failure(nested([ValueError("v"), said], depth)) == said.failure


def test_options_that_are_not_taken_are_the_setups_fault() -> None:
    failure = failure_of(OptionsError("script", "a list"))
    assert (failure.broke, failure.retryable, failure.accepted) == (Broke.SETUP, False, False)
    assert failure.reason == "clientOptions.script takes a list"


def test_a_reason_is_one_line_and_the_rest_is_detail() -> None:
    failure = failure_of(ValueError("first\nsecond"))
    assert failure.reason == "the client raised ValueError: first"
    assert "second" in (failure.detail or "")
    assert failure_of(ValueError()).reason == "the client raised ValueError"


def test_a_long_traceback_keeps_its_end() -> None:
    failure = failure_of(ValueError("x" * 20_000 + "END"))
    assert failure.detail is not None
    assert len(failure.detail) == 8_000
    assert failure.detail.rstrip().endswith("END")


def test_what_breaks_around_the_client_is_not_said_to_be_the_clients() -> None:
    failure = proxy_failure(ValueError("no such mode"))
    assert (failure.broke, failure.retryable) == (Broke.SETUP, True)
    assert failure.reason == "the proxy raised ValueError: no such mode"
    assert failure.detail is not None


def test_an_error_that_cannot_be_written_is_named_by_its_type() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    failure = failure_of(Mute())
    assert failure.broke is Broke.CLIENT_APP
    assert failure.reason.startswith("the client raised Mute")
