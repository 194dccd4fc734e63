"""Writes: which calls are writes, and the lines of their record."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.domain.plan import ToolCounts
from pytest_mst.domain.write import (
    ServerTools,
    WriteEntry,
    WriteMode,
    WriteTarget,
    hinted_read_only,
    unclassified_calls,
    write_from_json,
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OBJECTS = st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS, max_size=3)
ENTRIES = st.builds(
    WriteEntry,
    seq=st.integers(0, 100),
    call_seq=st.integers(0, 100),
    time=TEXTS,
    server=TEXTS,
    tool=TEXTS,
    arguments=OBJECTS,
    reply=st.none() | OBJECTS,
    mode=st.sampled_from(WriteMode),
    target=st.none() | st.builds(WriteTarget, TEXTS, OBJECTS, st.none() | TEXTS),
    refused=st.sampled_from([None, "unknown-tool", "invalid-arguments"]),
    unparsed=st.booleans(),
    unclassified=st.booleans(),
    join_id=st.none() | TEXTS,
)
HINTS: st.SearchStrategy[Any] = st.sampled_from([True, False, None, "true", 1, 0, [], {}])
ANNOTATIONS = st.none() | st.fixed_dictionaries(
    {}, optional={"readOnlyHint": HINTS, "destructiveHint": HINTS, "title": TEXTS}
)
TOOLS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.fixed_dictionaries({}, optional={"annotations": ANNOTATIONS}),
)
NAMES = st.frozensets(st.sampled_from("abcdefg"))


@pytest.mark.parametrize(
    ("annotations", "reads"),
    [
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": False}, True),
        ({"readOnlyHint": True, "destructiveHint": None}, True),
        ({"readOnlyHint": True, "destructiveHint": "true"}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
        ({"readOnlyHint": False}, False),
        ({"readOnlyHint": "true"}, False),
        ({"readOnlyHint": 1}, False),
        ({"destructiveHint": False}, False),
        ({}, False),
        (None, False),
        ([], False),
        ("readOnlyHint", False),
    ],
    ids=str,
)
def test_only_a_real_boolean_makes_a_tool_read_only(annotations: Any, *, reads: bool) -> None:
    assert hinted_read_only({"annotations": annotations}) is reads


def test_a_tool_without_annotations_writes() -> None:
    assert not hinted_read_only({})


@given(TOOLS, NAMES, NAMES)
def test_the_configs_word_overrules_annotations_and_what_is_not_listed_writes(
    tools: dict[str, Any], reads: frozenset[str], writes: frozenset[str]
) -> None:
    server = ServerTools("a", tools, reads, writes)
    for name in "abcdefgh":
        is_read = server.is_read(name)
        if name not in tools or name in writes:
            assert not is_read
        else:
            assert is_read is (name in reads or hinted_read_only(tools[name]))
    assert server.writes == tuple(name for name in tools if not server.is_read(name))


@given(TOOLS, NAMES, NAMES)
def test_tools_are_counted_once_each(
    tools: dict[str, Any], reads: frozenset[str], writes: frozenset[str]
) -> None:
    server = ServerTools("a", tools, reads, writes)
    counts = ToolCounts.of(server)
    assert counts.total == counts.reads + counts.declared_writes + counts.unhinted == len(tools)
    assert set(server.unhinted) <= set(server.writes)
    assert not set(server.unhinted) & writes


@given(ENTRIES)
def test_an_entry_is_read_back_as_it_was_written(entry: WriteEntry) -> None:
    assert write_from_json(json.loads(json.dumps(entry.to_json()))) == entry


def entry(**fields: Any) -> WriteEntry:
    given: dict[str, Any] = {
        "seq": 0,
        "call_seq": 2,
        "time": "2026-11-30T09:45:00.000Z",
        "server": "chat",
        "tool": "run",
        "arguments": {"tool": "post"},
        "reply": {"content": []},
        "mode": WriteMode.PLANNED,
        **fields,
    }
    return WriteEntry(**given)


def test_a_line_has_the_fields_that_others_rely_on() -> None:
    line = entry(target=WriteTarget("post", {"a": 1}), join_id="x", refused="unknown-tool")
    assert line.to_json() == {
        "format": "mst.write/v1",
        "seq": 0,
        "callSeq": 2,
        "time": "2026-11-30T09:45:00.000Z",
        "server": "chat",
        "tool": "run",
        "arguments": {"tool": "post"},
        "target": {"tool": "post", "arguments": {"a": 1}},
        "reply": {"content": []},
        "mode": "planned",
        "refused": "unknown-tool",
        "joinId": "x",
    }


def test_a_line_says_what_could_not_be_read_or_told() -> None:
    line = entry(unparsed=True, unclassified=True).to_json()
    assert (line["unparsed"], line["unclassified"]) == (True, True)
    assert not {"target", "refused"} & line.keys()


def test_the_unclassified_targets_of_one_batch_are_one_call() -> None:
    batch = [entry(seq=n, target=WriteTarget("a", {}), unclassified=True) for n in range(3)]
    other = [entry(seq=3, call_seq=7, unclassified=True), entry(seq=4, call_seq=8)]
    assert unclassified_calls([*batch, *other]) == 2
    assert unclassified_calls([]) == 0


@pytest.mark.parametrize(
    ("target", "effective"),
    [
        (None, ("chat", "run", {"tool": "post"})),
        (WriteTarget("post", {"a": 1}), ("chat", "post", {"a": 1})),
        (WriteTarget("post", {}, "mail"), ("mail", "post", {})),
    ],
)
def test_expectations_are_matched_with_the_target_of_a_dispatched_call(
    target: WriteTarget | None, effective: tuple[str, str, Any]
) -> None:
    assert entry(target=target).effective == effective


@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "wished"},
        {"refused": "maybe"},
        {"seq": "0"},
        {"seq": None},
        {"arguments": []},
        {"target": {"tool": 1, "arguments": {}}},
        {"target": "post"},
        {"joinId": 7},
    ],
    ids=str,
)
def test_what_is_no_line_of_a_record_is_refused(changes: dict[str, Any]) -> None:
    stored = {**entry(target=WriteTarget("post", {})).to_json(), **changes}
    with pytest.raises(ValueError, match=r".+"):
        write_from_json(stored)
