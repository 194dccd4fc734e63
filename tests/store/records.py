"""Records to store: by hand, and by hypothesis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from pytest_mst.domain.attempt import AttemptRecord, Try
from pytest_mst.domain.ending import Broke, Ending, InfrastructureFailure, Scope, Trial
from pytest_mst.domain.loaded import DatasetInfo
from pytest_mst.domain.plan import PlannedCase, RunPlan, ServerInfo, ToolCounts, VariantInfo
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry, WriteMode, WriteTarget
from pytest_mst.store.append import RunWriter
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.read import (
    StoredAttempt,
    UnreadableAttempt,
    read_attempt,
    score_folders,
)

RUN_ID = "20261130T094500Z-7f3c2a"
AT = "2026-11-30T09:45:00.000Z"
LOST = InfrastructureFailure(Broke.NETWORK, "the connection was cut", retryable=True)


def layout_in(folder: Path, run_id: str = RUN_ID) -> RunLayout:
    return RunLayout(folder, "team-chat", run_id)


def writer_in(folder: Path, *, secrets: tuple[str, ...] = ()) -> RunWriter:
    return RunWriter(layout_in(folder), secrets=secrets)


def read_attempts(layout: RunLayout, plan: RunPlan) -> Iterator[StoredAttempt | UnreadableAttempt]:
    """Yield the planned attempts that are on disk, in the plan's order.

    Files of others beside them are neither read nor touched.

    Raises:
        StoreError: the folder of scores is there and cannot be listed.

    """
    folders = score_folders(layout)
    for attempt in plan.attempts:
        stored = read_attempt(layout, attempt, folders)
        if stored is not None:
            yield stored


def attempt_id(trial: int = 0, case: str = "post-summary", variant: str = "default") -> AttemptId:
    return AttemptId(variant, case, trial)


def record(id_: AttemptId, ending: Ending | None = None, **more: Any) -> AttemptRecord:
    fields: dict[str, Any] = {
        "id": id_,
        "dataset": "cases",
        "locator": locator(RUN_ID, id_),
        "started_at": AT,
        "duration_ms": 12,
        "ending": ending or Trial(),
        "key": "sha256:0",
        **more,
    }
    return AttemptRecord(**fields)


def entry(seq: int = 0, **more: Any) -> WriteEntry:
    fields: dict[str, Any] = {
        "seq": seq,
        "call_seq": seq,
        "time": AT,
        "server": "chat",
        "tool": "post_message",
        "arguments": {"channel": "#team"},
        "reply": {"content": []},
        "mode": WriteMode.PLANNED,
        **more,
    }
    return WriteEntry(**fields)


def plan_of(*cases: PlannedCase, **more: Any) -> RunPlan:
    fields: dict[str, Any] = {
        "run_id": RUN_ID,
        "eval_name": "team-chat",
        "config_id": "evals/team-chat.eval.yaml",
        "content_hash": "sha256:1",
        "created_at": AT,
        "cases": cases,
        "datasets": (DatasetInfo("cases", 1, "sha256:2"),),
        "variants": (
            VariantInfo(
                "default",
                "scripted",
                servers=(
                    ServerInfo(
                        "chat", WriteMode.PLANNED, ToolCounts(4, 2, 1, 1), "sha256:3", "2025-11-25"
                    ),
                ),
            ),
        ),
        **more,
    }
    return RunPlan(**fields)


def case_of(case: str = "post-summary", trials: int = 1, **more: Any) -> PlannedCase:
    fields: dict[str, Any] = {"variant": "default", "dataset": "cases", **more}
    return PlannedCase(case=case, trials=trials, **fields)


def _as_json_reads_it(text: str) -> str:
    """Two lone surrogates beside each other are one character to JSON."""
    read: str = json.loads(json.dumps(text))
    return read


texts = st.text(st.characters(exclude_categories=()), max_size=12).map(_as_json_reads_it)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
attempt_ids = st.builds(AttemptId, texts, texts, st.integers(0, 20))
endings = st.one_of(
    st.builds(
        Trial, st.none() | texts, st.sampled_from([None, "turns", "time", "calls", "context"])
    ),
    st.builds(
        InfrastructureFailure,
        st.sampled_from(Broke),
        texts,
        st.booleans(),
        st.sampled_from(Scope),
        st.none() | st.booleans(),
        st.none() | texts,
    ),
)
events = st.builds(
    TraceEvent,
    name=texts,
    kind=st.sampled_from(["tool_call", "skill", "command", "subagent", "tool_search"]),
    source=st.sampled_from(["mcp", "builtin"]),
    server=st.none() | texts,
    arguments=st.none() | json_objects,
    output=json_values,
    is_error=st.none() | st.booleans(),
    id=st.none() | texts,
)
traces = st.builds(
    Trace,
    answer=st.none() | texts,
    events=st.lists(events, max_size=3).map(tuple),
    servers=st.lists(texts, max_size=2).map(tuple),
    evidence=st.sampled_from(["structured", "observed", "none"]),
    usage=st.none() | json_objects,
)
records = st.builds(
    AttemptRecord,
    id=attempt_ids,
    dataset=texts,
    locator=texts,
    started_at=texts,
    duration_ms=st.integers(0, 10**9),
    ending=endings,
    key=texts,
    trace=st.none() | traces,
    grading_error=st.none() | texts,
    tries=st.lists(st.builds(Try, texts, texts, st.integers(0, 10**6)), max_size=2).map(tuple),
    graders=st.lists(texts, max_size=2).map(tuple),
)
entries = st.builds(
    WriteEntry,
    seq=st.integers(0, 100),
    call_seq=st.integers(0, 100),
    time=texts,
    server=texts,
    tool=texts,
    arguments=json_objects,
    reply=json_values,
    mode=st.sampled_from(WriteMode),
    target=st.none() | st.builds(WriteTarget, texts, json_objects, st.none() | texts),
    refused=st.sampled_from([None, "unknown-tool", "invalid-arguments"]),
    unclassified=st.booleans(),
    unparsed=st.booleans(),
    join_id=st.none() | texts,
)
