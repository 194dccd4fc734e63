"""Scripts: what a step may be, and what is said of what is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.clients.script import (
    Answer,
    Call,
    Claim,
    ClientErrors,
    Fail,
    Hidden,
    Raise,
    Sleep,
    Step,
    Stop,
    check_script,
    parse_script,
)
from pytest_mst.domain.ending import RETRYABLE_BY_DEFAULT, Broke, InfrastructureFailure, Scope
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.retry import RetryHint, RetryKind

CALL = {"server": "chat", "tool": "post"}


def parse(*steps: Any) -> tuple[Step, ...]:
    return parse_script({"script": list(steps)}, 0)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"call": CALL}, Call("chat", "post", None)),
        ({"call": {**CALL, "arguments": {"a": 1}}}, Call("chat", "post", {"a": 1})),
        ({"call": {**CALL, "arguments": None}}, Call("chat", "post", None)),
        ({"hidden": {**CALL, "arguments": {}}}, Hidden("chat", "post", {})),
        ({"claim": CALL}, Claim("chat", "post", None)),
        ({"answer": "done"}, Answer("done")),
        ({"error": "confused"}, ClientErrors("confused")),
        ({"stop": "context"}, Stop("context")),
        ({"raise": "boom"}, Raise("boom")),
        ({"sleep": 0}, Sleep(0.0)),
        ({"sleep": 0.2}, Sleep(0.2)),
    ],
    ids=str,
)
def test_every_step_is_read(written: dict[str, Any], read: Step) -> None:
    assert parse(written) == (read,)


@pytest.mark.parametrize("limit", ["turns", "time", "calls", "context"])
def test_a_client_can_run_out_of_each_of_its_limits(limit: Any) -> None:
    assert parse({"stop": limit}) == (Stop(limit),)


@pytest.mark.parametrize("broke", Broke)
def test_a_failure_has_the_defaults_of_what_broke(broke: Broke) -> None:
    (step,) = parse({"fail": {"broke": broke.value}})
    assert isinstance(step, Fail)
    assert step.failure.broke is broke
    assert step.failure.retryable is RETRYABLE_BY_DEFAULT[broke]
    assert step.failure.scope is Scope.TRIAL
    assert step.failure.accepted is None
    assert step.failure.reason


def test_a_failure_says_all_that_can_be_known_of_one() -> None:
    fields = {
        "broke": "network",
        "reason": "cut",
        "retryable": False,
        "scope": "case",
        "accepted": True,
    }
    failure = InfrastructureFailure(
        Broke.NETWORK, "cut", retryable=False, scope=Scope.CASE, accepted=True
    )
    assert parse({"fail": fields}) == (Fail(failure),)


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({}, None),
        ({"retry": "rate_limit"}, RetryHint(RetryKind.RATE_LIMIT)),
        ({"retry": "overloaded", "retryAfter": 0}, RetryHint(RetryKind.OVERLOADED, 0.0)),
        ({"retryAfter": "1.5"}, RetryHint(RetryKind.NETWORK, 1.5)),
        ({"retryAfter": "Thu, 01 Jan 1970 00:00:00 GMT"}, RetryHint(RetryKind.NETWORK, 0.0)),
    ],
    ids=str,
)
def test_a_failure_says_why_and_when_to_try_again(
    fields: dict[str, Any], hint: RetryHint | None
) -> None:
    (step,) = parse({"fail": {"broke": "network", "tries": 2, **fields}})
    assert isinstance(step, Fail)
    assert (step.retry, step.tries) == (hint, 2)


@pytest.mark.parametrize(
    ("step", "key", "expected"),
    [
        ({"cal": CALL}, "script[0]", "not 'cal'; did you mean 'call'?"),
        ({"awnser": "x"}, "script[0]", "did you mean 'answer'?"),
        ({"zzz": 1}, "script[0]", "not 'zzz'"),
        ({"call": CALL, "answer": "x"}, "script[0]", "one step (call, answer, hidden"),
        ({}, "script[0]", "not 0 keys"),
        ("answer", "script[0]", "an object, not string"),
        (None, "script[0]", "an object, not null"),
        ({"call": "post"}, "script[0].call", "an object, not string"),
        ({"call": {"tool": "post"}}, "script[0].call.server", "a text, not null"),
        ({"call": {"server": "chat"}}, "script[0].call.tool", "a text, not null"),
        ({"call": {**CALL, "arguments": []}}, "script[0].call.arguments", "an object, not array"),
        ({"call": {**CALL, "argument": {}}}, "script[0].call", "did you mean 'arguments'?"),
        ({"hidden": {**CALL, "x": 1}}, "script[0].hidden", "server, tool, arguments, not 'x'"),
        ({"answer": 1}, "script[0].answer", "a text, not number"),
        ({"error": None}, "script[0].error", "a text, not null"),
        ({"raise": []}, "script[0].raise", "a text, not array"),
        ({"stop": "turn"}, "script[0].stop", "turns, time, calls, context, not 'turn'"),
        ({"fail": {}}, "script[0].fail.broke", "client-app"),
        ({"fail": {"broke": "disk"}}, "script[0].fail.broke", "not 'disk'"),
        ({"fail": {"broke": "setup", "scope": "all"}}, "script[0].fail.scope", "variant, run"),
        ({"fail": {"broke": "setup", "retryable": 1}}, "script[0].fail.retryable", "true or false"),
        ({"fail": {"broke": "setup", "accepted": "no"}}, "script[0].fail.accepted", "not string"),
        ({"fail": {"broke": "setup", "reason": 1}}, "script[0].fail.reason", "a text, not number"),
        ({"fail": {"broke": "setup", "retryabel": True}}, "script[0].fail", "mean 'retryable'?"),
        ({"fail": {"broke": "setup", "retry": True}}, "script[0].fail.retry", "not True"),
        ({"fail": {"broke": "setup", "retry": "429"}}, "script[0].fail.retry", "rate_limit, over"),
        ({"fail": {"broke": "setup", "retryAfter": -1}}, "script[0].fail.retryAfter", "number -1"),
        ({"fail": {"broke": "setup", "retryAfter": True}}, "script[0].fail.retryAfter", "boolean"),
        (
            {"fail": {"broke": "setup", "retryAfter": "soon"}},
            "script[0].fail.retryAfter",
            "seconds, 0 or more, or an HTTP date, not string 'soon'",
        ),
        ({"fail": {"broke": "setup", "tries": 0}}, "script[0].fail.tries", "not number 0"),
        ({"fail": {"broke": "setup", "tries": True}}, "script[0].fail.tries", "boolean"),
        ({"fail": {"broke": "setup", "tries": "1"}}, "script[0].fail.tries", "string"),
        ({"sleep": -1}, "script[0].sleep", "seconds, 0 or more, not number -1"),
        ({"sleep": "1"}, "script[0].sleep", "not string '1'"),
        ({"sleep": True}, "script[0].sleep", "not boolean True"),
    ],
    ids=str,
)
def test_what_is_no_step_is_told_with_its_place_and_what_is_valid(
    step: object, key: str, expected: str
) -> None:
    with pytest.raises(OptionsError) as caught:
        parse(step)
    assert caught.value.key == key
    assert expected in caught.value.expected
    assert str(caught.value).startswith(f"clientOptions.{key} takes ")


@pytest.mark.parametrize(
    ("options", "key", "expected"),
    [
        ({}, "script", "there is neither"),
        ({"script": [], "scripts": [[]]}, "script", "there is both"),
        ({"script": "answer"}, "script", "a list of steps, not string"),
        ({"script": {"answer": "x"}}, "script", "a list of steps, not object"),
        ({"scripts": []}, "scripts", "at least one list of steps"),
        ({"scripts": [{"answer": "x"}]}, "scripts[0]", "a list of steps, not object"),
        ({"scripts": [[], [{"answer": "x"}, {"anser": "x"}]]}, "scripts[1][1]", "mean 'answer'"),
        ({"scripts": "x"}, "scripts", "a list of steps, not string"),
        ({"scripts": 3}, "scripts", "a list of steps, not number"),
        (
            {"scripts": [[], [{"answer": "It is {{ last.text }}"}]]},
            "scripts[1][0].answer",
            "not '{{ last.text }}'; did you mean {{last.text}}?",
        ),
        (
            {"script": [{"call": {**CALL, "arguments": {"to": ["{{trail.id}}"]}}}]},
            "script[0].call.arguments.to[0]",
            "{{last.text}} and {{trial.id}}, not '{{trail.id}}'; did you mean {{trial.id}}?",
        ),
    ],
    ids=str,
)
def test_every_script_is_looked_at_before_anything_starts(
    options: Any, key: str, expected: str
) -> None:
    with pytest.raises(OptionsError) as caught:
        check_script(options)
    assert caught.value.key == key
    assert expected in caught.value.expected


@given(st.integers(1, 5), st.integers(0, 50))
def test_scripts_are_one_for_each_trial_and_repeat(count: int, trial: int) -> None:
    options: Any = {"scripts": [[{"answer": str(n)}] for n in range(count)]}
    check_script(options)
    assert parse_script(options, trial) == (Answer(str(trial % count)),)


@given(st.integers(0, 50))
def test_one_script_is_for_every_trial(trial: int) -> None:
    assert parse_script({"script": [{"answer": "x"}]}, trial) == (Answer("x"),)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["call", "fail", "stop", "sleep", "server", "tool", "broke", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.fixed_dictionaries({}, optional={"script": JSON, "scripts": JSON}))
def test_whatever_the_options_hold_is_a_script_or_an_error_that_says_where(options: Any) -> None:
    problem = _problem(options)
    assert problem is None or (problem.key.startswith("script") and problem.expected)


def _problem(options: Any) -> OptionsError | None:
    try:
        check_script(options)
    except OptionsError as error:
        return error
    return None
