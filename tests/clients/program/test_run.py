"""Running a client's program: its lines, its end, and what is left of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from pytest_mst.clients.program.run import TAIL_LIMIT_CHARS, Ran, run_program
from pytest_mst.domain.ending import Broke, InfrastructureError, Scope, Trial
from pytest_mst.local.child import Command

pytestmark = pytest.mark.anyio


def python(code: str, folder: Path) -> Command:
    return Command(sys.executable, ["-c", code], {}, folder)


async def ran(code: str, folder: Path, stdin: bytes | None = None) -> tuple[Ran, Sequence[str]]:
    lines: list[str] = []
    with anyio.fail_after(20):
        return await run_program(python(code, folder), lines.append, stdin=stdin), lines


async def test_each_line_is_taken_also_one_without_an_end(tmp_path: Path) -> None:
    ended, lines = await ran("print('a'); print('b\\r'); print('é', end='')", tmp_path)
    assert lines == ["a", "b", "é"]
    assert (ended.exit_code, ended.how, ended.killed) == (0, "exited with status 0", None)


async def test_it_reads_what_it_is_given_and_else_nothing(tmp_path: Path) -> None:
    code = "import sys; print(len(sys.stdin.read()))"
    assert (await ran(code, tmp_path, b"x" * 300_000))[1] == ["300000"]
    assert (await ran(code, tmp_path))[1] == ["0"]


async def test_the_end_of_what_it_complains_of_is_kept(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('x' * 100_000 + 'last words'); sys.exit(3)"
    ended, _ = await ran(code, tmp_path)
    assert ended.stderr.endswith("last words")
    assert len(ended.stderr) == TAIL_LIMIT_CHARS
    assert ended.exit_code == 3


CHILDREN = """
import os, signal, subprocess, sys
code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True);"
code += "signal.pause()"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.readline()
print(os.getpid(), child.pid, flush=True)
signal.pause()
"""


async def test_cut_off_it_ends_with_its_children_and_its_lines_are_kept(tmp_path: Path) -> None:
    lines: list[str] = []
    up = anyio.Event()

    def take(line: str) -> None:
        lines.append(line)
        up.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_program, python(CHILDREN, tmp_path), take)
            await up.wait()
            tasks.cancel_scope.cancel()
    (line,) = lines
    for pid in line.split():
        assert not is_running(int(pid))


async def test_what_we_end_it_for_is_how_it_ended(tmp_path: Path) -> None:
    up = anyio.Event()

    async def watch() -> Trial:
        await up.wait()
        return Trial(stopped_by="turns")

    with anyio.fail_after(20):
        ended = await run_program(
            python("import time; print('up', flush=True); time.sleep(60)", tmp_path),
            lambda _line: up.set(),
            watches=[watch],
        )
    assert ended.killed == Trial(stopped_by="turns")
    assert ended.exit_code is not None
    assert ended.exit_code < 0


async def test_a_child_that_it_leaves_behind_holds_nothing_up(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); print('done')"
    )
    ended, lines = await ran(code, tmp_path)
    assert (ended.exit_code, lines) == (0, ["done"])


async def test_a_program_that_is_not_there_is_a_failure_of_the_variant(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError) as raised:
        await run_program(Command("no-such-agent", [], {}, tmp_path), lambda _line: None)
    failure = raised.value.failure
    assert (failure.broke, failure.retryable, failure.accepted) == (Broke.CLIENT_APP, False, False)
    assert failure.scope is Scope.VARIANT


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z" and os.path.exists(f"/proc/{pid}")  # noqa: PTH110
