"""A run is in use by one session at a time, over processes, and let go of with the last."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_mst.domain.errors import StoreError
from pytest_mst.store.lock import RunLock
from tests.store.records import RUN_ID, layout_in

HOLDER = """
import sys
from pathlib import Path
from pytest_mst.store.layout import RunLayout
from pytest_mst.store.lock import RunLock

lock = RunLock(RunLayout(Path(sys.argv[1]), "team-chat", sys.argv[2]))
lock.take(0) if sys.argv[3] == "take" else lock.share()
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(folder: Path, how: str) -> Iterator[subprocess.Popen[bytes]]:
    """Hold the run in another process until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), RUN_ID, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def lock_in(folder: Path) -> RunLock:
    return RunLock(layout_in(folder))


@pytest.mark.parametrize("how", ["take", "share"])
def test_a_run_that_another_session_uses_is_refused_and_its_holder_is_named(
    tmp_path: Path, how: str
) -> None:
    with another_process(tmp_path, how) as holder:
        with pytest.raises(StoreError) as raised:
            lock_in(tmp_path).take(0)
        assert f"process {holder.pid}" in raised.value.problem
        assert raised.value.path == str(layout_in(tmp_path).run_dir)
        assert raised.value.remedy is not None


def test_a_holder_that_is_killed_lets_go(tmp_path: Path) -> None:
    with another_process(tmp_path, "take") as holder:
        holder.kill()
        holder.wait(10)
        lock = lock_in(tmp_path)
        lock.take(0)
        assert str(os.getpid()) in layout_in(tmp_path).lock.read_text()
        lock.release()


def test_a_session_that_is_just_ending_is_waited_for(tmp_path: Path) -> None:
    with another_process(tmp_path, "take") as holder:
        assert holder.stdin is not None
        holder.stdin.close()  # it ends by itself now
        lock = lock_in(tmp_path)
        lock.take(20)
        lock.release()


def test_all_processes_of_a_session_share_it_and_the_last_one_lets_go(tmp_path: Path) -> None:
    controller = lock_in(tmp_path)
    controller.take(0)
    with another_process(tmp_path, "share") as worker:
        controller.release()
        with pytest.raises(StoreError) as raised:  # the worker outlives its controller
            lock_in(tmp_path).take(0)
        assert f"process {os.getpid()}" in raised.value.problem  # who took it
        worker.kill()
        worker.wait(10)
    lock_in(tmp_path).take(0)


def test_a_new_run_is_held_by_the_first_process_that_shares_it(tmp_path: Path) -> None:
    first, second = lock_in(tmp_path), lock_in(tmp_path)
    first.share()
    second.share()
    second.share()  # again is nothing
    first.release()
    first.release()
    with pytest.raises(StoreError):
        lock_in(tmp_path).take(0)
    second.release()
    lock_in(tmp_path).take(0)


def test_a_copy_of_a_run_that_is_in_use_is_free(tmp_path: Path) -> None:
    lock = lock_in(tmp_path / "a")
    lock.take(0)
    copied = layout_in(tmp_path / "b").lock
    copied.parent.mkdir(parents=True)
    copied.write_bytes(layout_in(tmp_path / "a").lock.read_bytes())
    other = lock_in(tmp_path / "b")
    other.take(0)
    other.release()
    lock.release()


def test_a_lock_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "team-chat").write_text("in the way")
    with pytest.raises(StoreError, match="lock"):
        lock_in(tmp_path).take(0)
    with pytest.raises(StoreError, match="lock"):
        lock_in(tmp_path).share()


def test_only_its_owner_can_read_who_holds_a_run(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    lock.take(0)
    assert layout_in(tmp_path).lock.stat().st_mode & 0o077 == 0
    lock.release()
