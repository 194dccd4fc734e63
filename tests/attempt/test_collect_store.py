"""Attempts whose files cannot be written: never a write answered as done, never a verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.function import FunctionClient
from pytest_mst.domain.ending import Broke, InfrastructureError
from pytest_mst.domain.write import WriteMode
from pytest_mst.store.layout import RunLayout
from tests.attempt.setting import AT, DONE, READ, WRITE, make, scripted, target, writer_in

pytestmark = pytest.mark.anyio

FULL_DISK = Path("/dev/full")
"""Takes no byte: every write fails for want of space."""
CASE = {"expected": {"writes": [{"tool": "write_note"}]}, "assertions": {"containsText": "done"}}


def full(path: Path) -> None:
    """Let a file be on a disk that is full."""
    path.parent.mkdir(parents=True)
    path.symlink_to(FULL_DISK)


def blocked(path: Path) -> None:
    """Let no folder be made in a place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("in the way")


needs_full_disk = pytest.mark.skipif(not FULL_DISK.exists(), reason="there is no /dev/full here")


@needs_full_disk
@pytest.mark.parametrize(
    "mode",
    [
        WriteMode.PLANNED,
        WriteMode.SIMULATED,
        pytest.param(WriteMode.UNGUARDED, marks=pytest.mark.lets_writes_through()),
    ],
)
async def test_a_write_that_cannot_be_recorded_is_not_answered_as_done(
    tmp_path: Path, mode: WriteMode
) -> None:
    heard: list[Any] = []

    async def agent(request: ClientRequest) -> str:
        for _ in range(2):  # an agent that goes on whatever happens
            with pytest.raises(InfrastructureError) as caught:
                heard.append(await request.tools.call_tool("notes", "write_note", {"text": "hi"}))
            heard.append(caught.value.failure.broke)
        return "done"

    full(writer_in(tmp_path).layout.writes(AT))
    made = await make(target(client=FunctionClient(agent), mode=mode), tmp_path, CASE)
    assert heard == [Broke.COLLECTION, Broke.COLLECTION]
    assert made.failure.broke is Broke.COLLECTION
    assert made.failure.retryable
    assert "No space left on device" in made.failure.reason
    assert made.finished.writes == ()
    assert made.finished.outcomes == ()
    assert made.stored["ending"]["broke"] == "collection"


@needs_full_disk
async def test_a_scripted_attempt_ends_at_the_write_that_cannot_be_recorded(
    tmp_path: Path,
) -> None:
    full(writer_in(tmp_path).layout.writes(AT))
    made = await make(scripted(READ, WRITE, DONE), tmp_path, CASE)
    assert made.failure.broke is Broke.COLLECTION
    assert made.events == [("read_note", False)]
    assert made.stored["trace"]["answer"] is None


@needs_full_disk
async def test_an_attempt_whose_beginning_cannot_be_noted_lets_no_client_act(
    tmp_path: Path,
) -> None:
    full(writer_in(tmp_path).layout.journal)
    made = await make(scripted(WRITE, DONE), tmp_path, CASE)
    assert made.failure.broke is Broke.COLLECTION
    assert "journal.jsonl" in made.failure.reason
    assert made.finished.calls == ()
    assert made.finished.record.trace is None


@pytest.mark.parametrize(
    "place",
    [lambda layout: layout.run_dir / "traces", lambda layout: layout.scores_dir],
    ids=["traces", "scores"],
)
async def test_a_trial_that_cannot_be_stored_is_a_collection_failure_with_no_verdict(
    tmp_path: Path, place: Callable[[RunLayout], Path]
) -> None:
    blocked(place(writer_in(tmp_path).layout))
    made = await make(scripted(WRITE, DONE), tmp_path, CASE)
    assert made.failure.broke is Broke.COLLECTION
    assert made.failure.retryable
    assert "a file is in the place of a folder" in made.failure.reason
    assert made.finished.outcomes == ()
    assert made.finished.graded.verdict is None
    assert made.stored_writes == ["write_note"]
    assert made.journal == ["begun"]


async def test_a_failure_that_cannot_be_stored_is_still_reported(tmp_path: Path) -> None:
    blocked(writer_in(tmp_path).layout.run_dir / "traces")
    made = await make(scripted({"raise": "no"}), tmp_path)
    assert made.failure.broke is Broke.COLLECTION
    assert made.journal == ["begun"]


async def test_what_json_cannot_hold_is_stored_all_the_same(tmp_path: Path) -> None:
    async def agent(request: ClientRequest) -> str:
        request.trace.usage = {"at": tmp_path, "raw": b"\xff", "lone": "\ud83d", "self": {1, 2}}  # type: ignore[dict-item]  # agents do
        return "done \ud83d"

    made = await make(target(client=FunctionClient(agent)), tmp_path, CASE)
    assert made.stored["trace"]["answer"] == "done \ud83d"
    assert set(made.stored["trace"]["usage"]) == {"at", "raw", "lone", "self"}
