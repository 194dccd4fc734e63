"""Programs that the run starts: ready or not in time, started once, ended with their children."""

from __future__ import annotations

import os
import re
import socket
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import pytest

from pytest_mst.domain.eval_config import HttpServer
from pytest_mst.local import child
from pytest_mst.proxy.started import StartedPrograms, program_identity
from pytest_mst.proxy.unavailable import BrokenPart, ServerUnavailableError
from pytest_mst.proxy.upstream_spec import UpstreamSpec
from tests.proxy.setting import SERVERS, wild

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="reads the process table in /proc"),
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def program(*words: str, port: int | None = None, label: str = "web", **more: Any) -> UpstreamSpec:
    """Specify a server whose program is started with these words."""
    port = free_port() if port is None else port
    paths = {name: more.pop(name) for name in ("log_path", "redact") if name in more}
    longest = more.pop("longest_secret_bytes", 0)
    start = {
        "command": "python",
        "args": ["-IS", str(SERVERS / "program.py"), str(port), *words],
        "readyUrl": f"http://127.0.0.1:{port}/health",
        **more,
    }
    given = {"transport": "http", "serverUrl": f"http://127.0.0.1:{port}/mcp", "start": start}
    config = HttpServer.model_validate(given)
    return UpstreamSpec(label, config, SERVERS, longest_secret_bytes=longest, **paths)


def asked(spec: UpstreamSpec, path: str = "/health") -> int:
    """Ask the program of a server; gives the status."""
    assert isinstance(spec.config, HttpServer)
    connection = HTTPConnection(spec.config.server_url.split("/")[2], timeout=5)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def said_in(log: Path) -> str:
    return log.read_text() if log.exists() else ""


def mode_of(log: Path) -> int:
    return log.stat().st_mode & 0o777


def pids(log: Path) -> list[int]:
    return [int(pid) for pid in re.findall(r"^pid (\d+)$", said_in(log), re.MULTILINE)]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def gone(pid: int) -> None:
    while alive(pid):
        await anyio.lowlevel.checkpoint()


async def unavailable(spec: UpstreamSpec) -> ServerUnavailableError:
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            with pytest.raises(ServerUnavailableError) as caught:
                await programs.ready(spec)
    return caught.value


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "web.log"


async def test_a_program_answers_once_it_is_ready_and_is_gone_with_its_children(log: Path) -> None:
    spec = program("child", log_path=log)
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            await programs.ready(spec)
            await programs.keep_log(spec)
            assert asked(spec) == 200
        assert len(pids(log)) == 2
        assert not any(map(alive, pids(log)))
    with pytest.raises(ConnectionRefusedError):
        asked(spec)


async def test_a_program_that_will_not_end_is_ended(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "TERM_GRACE_S", 0.2)
    spec = program("child", "stubborn", log_path=log)
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            await programs.ready(spec)
            await programs.keep_log(spec)
        for pid in pids(log):
            await gone(pid)
    assert len(pids(log)) == 2


@pytest.mark.parametrize("status", ["204", "302", "404", "499"])
async def test_any_answer_but_that_it_is_not_able_to_is_ready(status: str) -> None:
    spec = program(f"status={status}")
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            await programs.ready(spec)


@pytest.mark.parametrize(
    ("words", "more", "broke", "said"),
    [
        (["exit=3"], {}, "exit", "exited with status 3 before it was ready; it said: boom: no"),
        (["exit=0"], {}, "exit", "exited with status 0 before it was ready"),
        (["deaf"], {"timeoutMs": 300}, "hang", "within 300 ms (start.timeoutMs): there is no"),
        (["status=503"], {"timeoutMs": 800}, "hang", "the answer is 503"),
        ([], {"command": "no-such-program-anywhere"}, "spawn", "there is no program"),
        ([], {"cwd": "nowhere"}, "spawn", "set cwd"),
    ],
)
async def test_what_keeps_it_from_being_ready_is_told(
    words: list[str], more: dict[str, Any], broke: BrokenPart, said: str
) -> None:
    error = await unavailable(program(*words, **more))
    assert error.broke == broke
    assert said in error.reason
    assert error.label == "web"


async def test_its_end_is_noticed_at_once_with_its_status_and_last_words() -> None:
    with anyio.fail_after(10):
        error = await unavailable(program("exit=3", timeoutMs=600_000))
    assert error.exit_code == 3
    assert error.stderr_tail.endswith("boom: no luck today")
    failure = error.as_failure().failure
    assert (failure.broke, failure.retryable) == ("setup", True)


async def test_what_answers_already_is_not_taken_for_the_program(log: Path) -> None:
    """Its writes would go to something that nobody here has started."""
    strange = program()
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([strange])
            await programs.ready(strange)
            assert isinstance(strange.config, HttpServer)
            port = int(strange.config.server_url.split("/")[2].split(":")[1])
            error = await unavailable(program("child", port=port, log_path=log))
            assert asked(strange) == 200
    assert error.broke == "spawn"
    assert f"something else answers at http://127.0.0.1:{port} already" in error.reason
    assert said_in(log) == ""


async def test_of_two_sessions_that_start_a_program_at_one_moment_only_one_does() -> None:
    spec, ready, refused = program(), 0, []
    with anyio.fail_after(20):
        async with StartedPrograms() as one, StartedPrograms() as other:
            one.begin([spec])
            other.begin([spec])
            for programs in (one, other):
                try:
                    await programs.ready(spec)
                    ready += 1
                except ServerUnavailableError as error:
                    refused.append(error)
        async with StartedPrograms() as later:  # the claim has ended with the program
            later.begin([spec])
            await later.ready(spec)
    assert ready == 1
    assert [error.broke for error in refused] == ["spawn"]
    assert "is not started: " in refused[0].reason


async def test_a_program_that_several_servers_name_is_started_once(tmp_path: Path) -> None:
    port = free_port()
    specs = [
        program(port=port, label=label, timeoutMs=wait, log_path=tmp_path / "logs" / f"{label}.log")
        for label, wait in (("one", 5000), ("two", 6000))
    ]
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin(specs)
            for spec in specs:
                await programs.ready(spec)
                await programs.keep_log(spec)
    logs = [said_in(tmp_path / "logs" / f"{label}.log") for label in ("one", "two")]
    assert logs[0] == logs[1]
    assert logs[0].count("pid ") == 1


def test_a_program_is_told_by_all_that_it_is_started_with() -> None:
    same: dict[str, Any] = {"port": 4711, "cwd": "."}
    first = program_identity(program(**same))
    assert program_identity(program(**same, timeoutMs=1)) == first
    assert program_identity(program("child", **same)) != first
    assert program_identity(program(**same, env={"A": "b"})) != first
    assert program_identity(program(port=4712, cwd=".")) != first


async def test_a_server_that_has_no_program_is_ready(log: Path) -> None:
    async with StartedPrograms() as programs:
        programs.begin([wild()])
        await programs.ready(wild())
        await programs.keep_log(wild())


async def test_what_it_says_is_kept_from_its_first_line_and_without_its_secrets(log: Path) -> None:
    secret = "hush-4711-do-not-tell"
    spec = program(
        "leave",
        env={"SAY": f"my token is {secret}"},
        log_path=log,
        redact=lambda text: text.replace(secret, "[redacted]"),
        longest_secret_bytes=len(secret),
    )
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            await programs.ready(spec)
            await programs.keep_log(spec)
            with pytest.raises(ConnectionError):
                asked(spec, "/leave")
            await programs.ready(spec)  # it was; that it has ended, its callers notice
            while "[start]" not in said_in(log):
                await anyio.lowlevel.checkpoint()
    said = said_in(log)
    assert said.startswith("my token is [redacted]\npid ")
    assert said.endswith("[start] exited with status 9; the run goes on without it\n")
    assert mode_of(log) == 0o600


async def test_a_program_gets_a_safe_part_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, log: Path
) -> None:
    monkeypatch.setenv("SAY", "not for you")
    spec = program(log_path=log)
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            await programs.ready(spec)
            await programs.keep_log(spec)
    assert said_in(log).startswith("hello\n")


@pytest.mark.parametrize("number", [9, 15])
async def test_nothing_outlives_a_process_that_is_ended_by_a_signal(
    tmp_path: Path, number: int
) -> None:
    log = tmp_path / "logs" / "web.log"
    script = (
        "import os, sys, anyio\n"
        "from pathlib import Path\n"
        "from tests.proxy.test_started import *\n"
        "spec = program('child', 'stubborn', log_path=Path(sys.argv[1]))\n"
        "async def main():\n"
        "    async with StartedPrograms() as programs:\n"
        "        programs.begin([spec])\n"
        "        await programs.ready(spec)\n"
        "        await programs.keep_log(spec)\n"
        "        while not Path(sys.argv[1]).exists():\n"
        "            await anyio.sleep(0.01)\n"
        f"        os.kill(os.getpid(), {number})\n"
        "        await anyio.sleep_forever()\n"
        "anyio.run(main)\n"
    )
    root = Path(__file__).parents[2]
    done = await anyio.run_process([sys.executable, "-c", script, str(log)], cwd=root, check=False)
    assert done.returncode == -number, done.stderr
    assert len(pids(log)) == 2
    with anyio.fail_after(10):
        for pid in pids(log):
            await gone(pid)


async def test_programs_that_are_stopped_before_they_are_ready_are_gone() -> None:
    spec = program("deaf", timeoutMs=600_000)
    errors: list[ServerUnavailableError] = []

    async def wait(programs: StartedPrograms) -> None:
        try:
            await programs.ready(spec)
        except ServerUnavailableError as error:
            errors.append(error)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, StartedPrograms() as programs:
            programs.begin([spec])
            tasks.start_soon(wait, programs)
            await anyio.lowlevel.checkpoint()
    assert [error.reason for error in errors] == ["was stopped while it was started"]


async def test_no_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setitem(os.environ, name, f"http://127.0.0.1:{free_port()}")
    spec = program()
    with anyio.fail_after(20):
        async with StartedPrograms() as programs:
            programs.begin([spec])
            await programs.ready(spec)
