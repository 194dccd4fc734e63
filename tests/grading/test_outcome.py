"""Outcome checks, graded by what was read for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_mst.domain.case import OutcomeCheck
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.outcome import OutcomeReading, outcome_reading_from_json
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score
from pytest_mst.domain.write import WriteMode
from pytest_mst.grading.found import CannotTellError, problems_in, result_text, unusable_parts
from pytest_mst.grading.select import applicable, grade, graders_of
from tests.grading.trials import case_of, entry, facts_of

MESSAGES = {"messages": [{"text": "hi", "by": "ada"}, {"text": "bye", "by": "bob"}], "more": None}


def check_of(**keys: Any) -> OutcomeCheck:
    return OutcomeCheck.model_validate({"server": "chat", "tool": "list_messages", **keys})


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def reading_of(result: dict[str, Any] | None = None, **fields: Any) -> OutcomeReading:
    return OutcomeReading("chat", "list_messages", fields.pop("arguments", {}), result, **fields)


def graded(*readings: OutcomeReading, checks: list[dict[str, Any]], **facts: Any) -> GradeOutcome:
    """Grade a live trial of a case with these checks."""
    written = [{"server": "chat", "tool": "list_messages", **one} for one in checks]
    case = case_of(expected={"outcome": written})
    live = facts_of(case, modes={"chat": WriteMode.LIVE}, outcome=readings, **facts)
    (outcome,) = grade(live, [one for one in graders_of(case) if one.name == "outcome"])
    return outcome


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        ({"containsText": ["hi", "cafe\u0301"]}, said("hi from the caf\u00e9")),
        ({"lacksText": "draft"}, said("posted")),
        ({"matchesPattern": r"^\d+ messages$"}, said("3 messages")),
        ({"jsonPath": [{"path": "$.messages[0].text"}]}, said("", structuredContent=MESSAGES)),
        (
            {"jsonPath": [{"path": "$.messages[0].text", "equals": "hi"}]},
            said(json.dumps(MESSAGES)),
        ),
        ({"jsonPath": [{"path": "$.more", "equals": None}]}, said(json.dumps(MESSAGES))),
        (
            {"jsonPath": [{"path": "$.messages[?@.by == 'bob']", "contains": {"text": "bye"}}]},
            said(json.dumps(MESSAGES)),
        ),
        ({"jsonPath": [{"path": "$.messages[*]", "count": 2}]}, said(json.dumps(MESSAGES))),
        ({"jsonPath": [{"path": "$.drafts", "exists": False}]}, said(json.dumps(MESSAGES))),
        (
            {"jsonPath": [{"path": "$.messages[?@.by == 'eve']", "count": 0}]},
            said(json.dumps(MESSAGES)),
        ),
        (
            {"schema": {"required": ["messages"], "properties": {"messages": {"minItems": 2}}}},
            said(json.dumps(MESSAGES)),
        ),
        ({"isError": True, "containsText": "no such"}, said("no such message", isError=True)),
        ({"isError": False, "containsText": "a"}, said("a")),
    ],
)
def test_what_is_there_holds(keys: dict[str, Any], result: dict[str, Any]) -> None:
    assert problems_in(check_of(**keys), result) == []


@pytest.mark.parametrize(
    ("keys", "result", "said_of_it"),
    [
        ({"containsText": "hi"}, said("Hi"), '"hi" is not in "Hi"'),
        ({"lacksText": "draft"}, said("a draft"), '"draft" is in "a draft", and is not to be'),
        ({"matchesPattern": r"^\d+$"}, said("three"), r'"^\\d+$" is not found in "three"'),
        (
            {"jsonPath": [{"path": "$.messages[0].text", "equals": "bye"}]},
            said(json.dumps(MESSAGES)),
            '$.messages[0].text selects "hi", not string "bye"',
        ),
        (
            {"jsonPath": [{"path": "$.messages[*].text", "equals": "hi"}]},
            said(json.dumps(MESSAGES)),
            '$.messages[*].text selects "hi"; "bye", not string "hi"',
        ),
        (
            {"jsonPath": [{"path": "$.drafts", "equals": None}]},
            said(json.dumps(MESSAGES)),
            '$.drafts selects nothing, not null; read: {"messages": [{"text": "hi", "by": "ada"}',
        ),
        (
            {"jsonPath": [{"path": "$.messages[*]", "contains": {"text": "no"}}]},
            said(json.dumps(MESSAGES)),
            'none of which has object {"text": "no"}',
        ),
        (
            {"jsonPath": [{"path": "$.messages", "exists": False}]},
            said(json.dumps({"messages": []})),
            "$.messages selects [], and is not to select anything",
        ),
        (
            {"jsonPath": [{"path": "$.messages[*]", "count": 1}]},
            said(json.dumps({"messages": [1, 2]})),
            "$.messages[*] selects 2 values, not 1: 1; 2",
        ),
        ({"jsonPath": [{"path": "$.a"}]}, said("no JSON"), "its text is no JSON"),
        (
            {
                "jsonPath": [{"path": "$.drafts"}, {"path": "$.read", "count": 1}],
                "schema": {"properties": {"n": {"type": "string"}}},
            },
            said('{"n": 1}'),
            "$.drafts selects nothing; $.read selects 0 values, not 1; does not fit the schema: "
            """"['n']: 1 is not of type 'string'"; read: {"n": 1}""",
        ),
        ({"isError": True}, said("found"), 'the tool answered with no error: "found"'),
        ({"isError": False}, said("lost", isError=True), 'the tool answered with an error: "lost"'),
    ],
)
def test_what_is_not_there_is_said_with_what_is(
    keys: dict[str, Any], result: dict[str, Any], said_of_it: str
) -> None:
    (problem,) = problems_in(check_of(**keys), result)
    assert said_of_it in problem


def test_a_pattern_in_a_schema_is_searched_for() -> None:
    check = check_of(schema={"properties": {"n": {"pattern": "^[a-c]+$"}}})
    assert problems_in(check, {"structuredContent": {"n": "abc"}}) == []
    assert problems_in(check, {"structuredContent": {"n": 5}}) == []
    (problem,) = problems_in(check, {"structuredContent": {"n": "abd"}})
    assert "'abd' does not match '^[a-c]+$'" in problem


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def test_structured_content_comes_before_the_text() -> None:
    check = check_of(jsonPath=[{"path": "$.n", "equals": 1}])
    assert problems_in(check, said('{"n": 2}', structuredContent={"n": 1})) == []
    assert result_text({"structuredContent": {"n": 1}}) == '{"n":1}'
    held: dict[str, Any] = {"type": "resource", "resource": {"uri": "a:b", "text": "inside"}}
    assert (
        result_text({"content": [{"type": "image"}, held, said("x")["content"][0]]}) == "inside\nx"
    )


@pytest.mark.parametrize(
    ("keys", "result", "why"),
    [
        ({"containsText": "a"}, said("not found", isError=True), "write isError: true"),
        ({"matchesPattern": "(a|aa)+$"}, said("a" * 60 + "b"), "without an end"),
        ({"containsText": "a"}, {"structuredContent": nested(950)}, "nested too deeply"),
        (
            {"jsonPath": [{"path": "$.a", "equals": 1}]},
            {"structuredContent": nested(950)},
            "nested",
        ),
        (
            {"schema": {"properties": {"n": {"type": "string", "pattern": "^(a|aa)+$"}}}},
            {"structuredContent": {"n": "a" * 60 + "b"}},
            "without an end",
        ),
    ],
)
def test_what_cannot_be_told_is_neither(
    keys: dict[str, Any], result: dict[str, Any], why: str
) -> None:
    with pytest.raises(CannotTellError, match=why):
        problems_in(check_of(**keys), result)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"jsonPath": [{"path": "messages"}]}, 'jsonPath "messages" is not a query'),
        ({"jsonPath": [{"path": "$[?match(@.a, '(a|aa)+')]"}]}, "function 'match' is not defined"),
        ({"schema": {"type": "objekt"}}, "schema cannot be used"),
        ({"schema": {"$ref": "https://example.org/s.json"}}, "nothing is fetched"),
        ({"schema": {"$ref": "#/$defs/a"}}, "is not in it"),
    ],
)
def test_a_part_that_can_never_be_used_is_known_before(keys: dict[str, Any], problem: str) -> None:
    (found,) = unusable_parts(check_of(**keys))
    assert problem in found


def test_a_part_that_can_be_used_is_no_problem() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}
    path = "$.a[?@.b == '{{trial.id}}' && count(@.*) > 1]..c"
    assert list(unusable_parts(check_of(schema=schema, jsonPath=[{"path": path}]))) == []
    named = {"$id": "https://example.org/a", "$ref": "b", "$defs": {"b": {"$id": "b"}}}
    assert list(unusable_parts(check_of(schema=named))) == []


def test_an_applied_write_is_proved_and_one_that_is_not_there_fails() -> None:
    checks = [{"arguments": {"marker": "{{trial.id}}"}, "containsText": "{{trial.id}}"}]
    asked = {"arguments": {"marker": "mst1"}}
    applied = graded(reading_of(said("mst1 is there"), **asked), checks=checks, trial_id="mst1")
    assert isinstance(applied, Score)
    assert (applied.passed, applied.evidence, applied.reason) == (True, Evidence.APPLIED, None)
    none = graded(
        reading_of(said("nothing"), tries=4, waited_ms=900, **asked),
        checks=checks,
        trial_id="mst1",
        writes=[entry(mode=WriteMode.LIVE)],  # a record of the write does not prove it
    )
    assert isinstance(none, Score)
    assert (none.passed, none.value, none.evidence) == (False, 0, Evidence.APPLIED)
    assert none.reason == (
        'chat.list_messages {"marker": "mst1"}: "mst1" is not in "nothing" (read 4 times in 900 ms)'
    )


def test_what_could_not_be_read_leaves_the_trial_ungraded() -> None:
    checks = [{"containsText": "a"}]
    for reading, why in [
        (reading_of(error="server 'chat' did not answer in 3 s"), "did not answer"),
        (reading_of(said("gone", isError=True)), "answered with an error"),
    ]:
        failure = graded(reading, checks=checks)
        assert isinstance(failure, GraderFailure)
        assert why in failure.reason
    nothing = graded(checks=checks)
    assert isinstance(nothing, GraderFailure)
    assert "--mst-resume collects the attempt anew" in nothing.reason


def test_a_check_that_fails_decides_also_beside_one_that_was_not_read() -> None:
    checks: list[dict[str, Any]] = [
        {"containsText": "a"},
        {"arguments": {"page": 2}, "containsText": "b"},
    ]
    unread = reading_of(error="gone", arguments={"page": 2})
    outcome = graded(reading_of(said("x")), unread, checks=checks)
    assert isinstance(outcome, Score)
    assert not outcome.passed
    assert outcome.value == 0
    assert outcome.reason is not None
    assert "could not be read: gone" in outcome.reason


def test_checks_find_their_readings_in_any_order() -> None:
    first = reading_of(said("a"))
    second = reading_of(said("b"), arguments={"page": 2})
    checks: list[dict[str, Any]] = [
        {"containsText": "a"},
        {"arguments": {"page": 2.0}, "containsText": "b"},
    ]
    outcome = graded(second, first, checks=checks)
    assert isinstance(outcome, Score)
    assert outcome.passed


def test_outcome_checks_are_for_live_trials() -> None:
    case = case_of(expected={"outcome": [{"server": "a", "tool": "b", "containsText": "x"}]})
    assert [one.name for one in applicable(facts_of(case), graders_of(case))] == []


@pytest.mark.parametrize(
    "reading",
    [
        reading_of(said("a"), tries=3, waited_ms=12),
        reading_of(error="gone", arguments={"a": [1, None]}),
    ],
)
def test_a_reading_is_stored_and_read_back(reading: OutcomeReading) -> None:
    assert outcome_reading_from_json(json.loads(json.dumps(reading.to_json()))) == reading
