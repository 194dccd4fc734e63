"""What servers write to their standard error, kept for everybody who used them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.server_log import ServerLog
from pytest_mst.proxy.upstream_spec import Isolation, UpstreamSpec
from tests.proxy.setting import attempt, wild


@pytest.fixture
def log() -> Iterator[ServerLog]:
    with ServerLog() as opened:
        yield opened


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def use(hub: Hub, spec: UpstreamSpec, isolation: Isolation = "variant") -> None:
    """Open an attempt's boundary, and close it."""
    async with attempt(spec, hub=hub, isolation=isolation) as boundary:
        assert spec.label in boundary.servers


@pytest.mark.anyio
async def test_a_server_started_before_its_run_is_logged_from_its_start_for_each_user(
    tmp_path: Path,
) -> None:
    early = wild("--noise-bytes", "3")
    users = [replace(early, log_path=tmp_path / name / "wild.log") for name in ("one", "two")]
    async with Hub() as hub:
        await hub.list_tools(early)
        assert names(tmp_path) == []
        for user in users:
            await use(hub, user)
    logs = [user.log_path for user in users]
    assert [log.read_text() for log in logs if log] == ["eee\nlast line\n"] * 2


@pytest.mark.anyio
async def test_an_attempts_own_server_is_logged_too(tmp_path: Path) -> None:
    spec = replace(wild("--noise-bytes", "3"), log_path=tmp_path / "wild.log")
    async with Hub() as hub:
        await hub.list_tools(replace(spec, log_path=None))
        for _ in range(2):
            await use(hub, spec, "attempt")
    assert (tmp_path / "wild.log").read_text() == "eee\nlast line\n" * 2


@pytest.mark.anyio
async def test_nothing_is_made_for_a_server_that_says_nothing_or_serves_no_run(
    tmp_path: Path,
) -> None:
    async with Hub() as hub:
        await hub.list_tools(wild("--noise-bytes", "3"))
        await use(hub, replace(wild(), log_path=tmp_path / "silent.log"))
    assert names(tmp_path) == []


def test_lines_are_copied_once_they_are_whole_and_the_rest_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "a.log"
    with ServerLog() as log:
        log.keep_in(path, str)
        os.write(log.fd, b"one\ntw")
        log.flush()
        assert path.read_text() == "one\n"
        log.flush()
        os.write(log.fd, b"o\nthree")
        log.flush()
        assert path.read_text() == "one\ntwo\n"
    assert path.read_text() == "one\ntwo\nthree\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_who_comes_later_gets_the_whole_log(log: ServerLog, tmp_path: Path) -> None:
    log.keep_in(tmp_path / "a", str)
    os.write(log.fd, b"one\n")
    log.flush()
    log.keep_in(tmp_path / "b", str)
    log.keep_in(tmp_path / "a", str)
    log.flush()
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == "one\n"


def test_secrets_are_not_copied(log: ServerLog, tmp_path: Path) -> None:
    log.keep_in(tmp_path / "a", lambda text: text.replace("hush", "[redacted]"))
    os.write(log.fd, b"token hush\n")
    log.flush()
    assert (tmp_path / "a").read_text() == "token [redacted]\n"


SECRET = "first line of a key\nsecond line of a key\nthird"


def hush(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


def copied_in_parts(folder: Path, written: bytes, *ends: int) -> str:
    """Return what is copied where the log is flushed after each of several parts."""
    path = folder / "a"
    with ServerLog() as log:
        log.keep_in(path, hush, len(SECRET))
        for start, end in zip((0, *ends), (*ends, len(written)), strict=True):
            os.write(log.fd, written[start:end])
            log.flush()
            copied = path.read_text() if path.exists() else ""
            assert "line of a key" not in copied
    return path.read_text()


@pytest.mark.parametrize("after", ["", "\n", "\nlast\n", "\n" + "more\n" * 50])
def test_a_secret_of_several_lines_is_never_copied_in_parts(tmp_path: Path, after: str) -> None:
    written = f"before\n{SECRET}{after}".encode()
    whole = f"before\n[redacted]{after}"
    whole += "" if whole.endswith("\n") else "\n"
    for cut in range(len(written)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        assert copied_in_parts(folder, written, cut) == whole


@pytest.mark.parametrize("of_the_secret", range(len(SECRET) + 1))
def test_where_the_beginning_is_left_out_no_part_of_a_secret_is_left(
    log: ServerLog, tmp_path: Path, of_the_secret: int
) -> None:
    log.keep_in(tmp_path / "a", hush, len(SECRET))
    kept = SECRET[of_the_secret:] + "\n"
    os.write(log.fd, f"{SECRET}\n".encode() + b"x" * ((1 << 20) - len(kept)))
    log.flush(whole=True)
    copied = (tmp_path / "a").read_text()
    said = copied.replace("x", "").strip()
    left_out = f"[{len(SECRET)} bytes are left out here]"
    assert said == ("[redacted]" if of_the_secret == 0 else left_out)


def test_of_very_much_the_newest_is_copied_and_the_rest_counted(
    log: ServerLog, tmp_path: Path
) -> None:
    log.keep_in(tmp_path / "a", str)
    os.write(log.fd, b"x" * (1 << 20) + b"\nlast\n")
    log.flush()
    text = (tmp_path / "a").read_text()
    assert text.startswith("[6 bytes are left out here]\n")
    assert text.endswith("x\nlast\n")


def test_bytes_that_are_no_text_are_copied_as_far_as_they_go(
    log: ServerLog, tmp_path: Path
) -> None:
    log.keep_in(tmp_path / "a", str)
    os.write(log.fd, b"\xff\x00 odd\n")
    log.flush()
    assert (tmp_path / "a").read_text() == "\ufffd\0 odd\n"


def test_a_folder_that_is_gone_stays_gone_and_what_was_written_is_not_lost(
    log: ServerLog, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    log.keep_in(run / "logs" / "default" / "a.log", str)
    os.write(log.fd, b"one\n")
    log.flush()
    assert not run.exists()
    run.mkdir()
    log.flush()
    assert (run / "logs" / "default" / "a.log").read_text() == "one\n"


def test_a_log_that_cannot_be_written_to_harms_nobody(log: ServerLog, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log.keep_in(tmp_path / "file" / "a.log", str)
    log.keep_in(tmp_path / "b", str)
    os.write(log.fd, b"one\n")
    log.flush()
    assert (tmp_path / "b").read_text() == "one\n"
