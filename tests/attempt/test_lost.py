"""Attempts whose process ended before they did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_mst.attempt.lost import store_lost
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.plan import PlannedCase, RunPlan
from pytest_mst.domain.run import AttemptId
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.store.append import RunWriter
from pytest_mst.store.journal import begun
from tests.attempt.setting import RUN_ID, journal_of, writer_in


def attempt(case: str) -> AttemptId:
    return AttemptId("default", case, 0)


def stored(writer: RunWriter, case: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(writer.layout.trace(attempt(case)).read_bytes())
    return read


def begin(folder: Path) -> RunWriter:
    """Let two workers begin attempts, and one of those end."""
    for worker, cases in {"gw0": ["ended", "lost"], "gw1": ["under way"]}.items():
        writer = writer_in(folder, worker)
        for case in cases:
            writer.begun(attempt(case), f"@{case[:4]}")
        if "ended" in cases:
            writer.ended(attempt("ended"), "@ende", Trial())
        writer.close()
    return writer_in(folder)


def plan() -> RunPlan:
    cases = tuple(PlannedCase("default", case, "chats", 1) for case in ("lost", "under way"))
    return RunPlan(RUN_ID, "team-chat", "c", "sha256:0", "2026-11-30T09:45:00.000Z", cases)


def test_only_what_a_worker_began_and_did_not_end_is_stored(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    store_lost(writer, plan(), "gw0")
    ending = stored(writer, "lost")["ending"]
    assert (ending["kind"], ending["broke"]) == ("infrastructure", "collection")
    assert ending["retryable"] is True
    assert "gw0" in ending["reason"]
    assert stored(writer, "lost")["datasetName"] == "chats"
    assert stored(writer, "lost")["locator"] == "@lost"
    assert not writer.layout.trace(attempt("ended")).exists()
    assert not writer.layout.trace(attempt("under way")).exists()
    assert list(begun(writer.layout)) == [attempt("under way")]
    writer.close()


def test_without_a_worker_those_of_every_process_are_stored_once(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    store_lost(writer, None)
    assert stored(writer, "lost")["datasetName"] == "team-chat"
    assert "gw1" in stored(writer, "under way")["ending"]["reason"]
    lines = journal_of(writer.layout)
    store_lost(writer, None)
    assert journal_of(writer.layout) == lines
    assert lines.count("begun") == lines.count("ended") == 3
    writer.close()


def test_the_writes_it_made_until_then_are_unreported(tmp_path: Path) -> None:
    writer = begin(tmp_path)
    with writer.write_sink(attempt("lost")) as sink:
        sink(
            WriteEntry(
                seq=0,
                call_seq=0,
                time="2026-11-30T09:45:00.000Z",
                server="notes",
                tool="purge",
                arguments={"all": True},
                reply={},
                mode=WriteMode.UNGUARDED,
                unclassified=True,
            )
        )
    store_lost(writer, plan())
    agreement = stored(writer, "lost")["agreement"]
    assert agreement["unreportedWrites"] == [
        {"server": "notes", "tool": "purge", "arguments": {"all": True}}
    ]
    assert agreement["unclassifiedCalls"] == 1
    assert stored(writer, "under way")["agreement"]["unreportedWrites"] == []
    writer.close()


def test_a_run_that_nothing_began_in_has_nothing_lost(tmp_path: Path) -> None:
    writer = writer_in(tmp_path)
    store_lost(writer, None)
    assert not writer.layout.run_dir.exists()
