"""Runs, plans, attempts and writes: as JSON and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given

from pytest_mst.domain.attempt import AttemptRecord, Try, attempt_from_json
from pytest_mst.domain.plan import ToolCounts, plan_from_json, tools_hash
from pytest_mst.domain.run import AttemptId, locator, utc_text
from pytest_mst.domain.stored_field import StoredFieldError, integer_field
from pytest_mst.domain.write import ServerTools, WriteEntry, write_from_json
from tests.store.records import attempt_id, case_of, entries, plan_of, record, records


def test_a_moment_is_written_in_utc_with_milliseconds_and_a_z() -> None:
    there = datetime(2026, 11, 30, 11, 45, 0, 7000, tzinfo=timezone(timedelta(hours=2)))
    assert utc_text(there) == "2026-11-30T09:45:00.007Z"
    assert utc_text(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000Z"


def test_a_moment_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        utc_text(datetime(2026, 1, 2))


def test_a_locator_is_short_and_belongs_to_one_attempt_of_one_run() -> None:
    ids = [AttemptId(v, c, t) for v in ("a", "b") for c in ("a", "\ud83d") for t in (0, 1)]
    names = {locator(run, id_) for run in ("r1", "r2") for id_ in ids}
    assert len(names) == 16
    assert all(name[0] == "@" and len(name) == 9 and name.isascii() for name in names)


@given(records)
def test_an_attempt_reads_back_as_it_was_written(attempt: AttemptRecord) -> None:
    stored = json.loads(json.dumps(attempt.to_json("run")))
    assert attempt_from_json(stored) == attempt


@given(entries)
def test_a_write_reads_back_as_it_was_written(entry: WriteEntry) -> None:
    assert write_from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_a_plan_reads_back_as_it_was_written() -> None:
    plan = plan_of(
        case_of("a", trials=3, pass_threshold=0.5, write_case=True, unguarded=True),
        case_of("b", skip="waiting for the new search"),
        partial=True,
        selection={"keyword": "a or b", "trials": None},
        judges=({"type": "rubric"},),
        baseline="default",
    )
    assert plan_from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_skipped_case_plans_no_attempts() -> None:
    plan = plan_of(case_of("a", trials=2), case_of("b", trials=2, skip="later"))
    assert list(plan.attempts) == [attempt_id(0, "a"), attempt_id(1, "a")]


def test_durations_are_never_stored_below_zero() -> None:
    attempt = record(attempt_id(), duration_ms=-3_600_000, tries=(Try("at", "429", -1),))
    stored: dict[str, Any] = attempt.to_json("run")
    assert stored["durationMs"] == 0
    assert stored["tries"][0]["waitMs"] == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "score"),
        ("trial", "0"),
        ("durationMs", float("inf")),
        ("caseId", None),
        ("trace", []),
        ("ending", None),
    ],
)
def test_a_field_of_a_wrong_type_is_named(field: str, value: object) -> None:
    stored = {**record(attempt_id()).to_json("run"), field: value}
    with pytest.raises(StoredFieldError) as raised:
        attempt_from_json(stored)
    assert raised.value.name == field
    assert raised.value.found == value


def test_a_boolean_is_no_number() -> None:
    with pytest.raises(StoredFieldError):
        integer_field({"trial": True}, "trial")


def test_tools_are_counted_by_what_they_say_of_themselves() -> None:
    tools = ServerTools(
        "chat",
        {
            "list": {"name": "list", "annotations": {"readOnlyHint": True}},
            "post": {"name": "post", "annotations": {"readOnlyHint": False}},
            "odd": {"name": "odd"},
            "found": {"name": "found"},
        },
        read_only_tools=frozenset({"found"}),
    )
    assert ToolCounts.of(tools) == ToolCounts(total=4, reads=2, declared_writes=1, unhinted=1)


def test_the_hash_of_a_tool_list_changes_with_any_field_of_a_tool() -> None:
    one = ServerTools("chat", {"list": {"name": "list", "title": "List"}})
    same = ServerTools("other label", {"list": {"title": "List", "name": "list"}})
    other = ServerTools("chat", {"list": {"name": "list", "title": "Lists"}})
    assert tools_hash(one) == tools_hash(same) != tools_hash(other)
