"""Servers that cannot be started, met or listed, and how they are ended."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from pytest_mst.domain.ending import Broke, InfrastructureError, Scope
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.local.child import SAFE_ENVIRONMENT
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.unavailable import BrokenPart, ServerUnavailableError
from pytest_mst.proxy.upstream_spec import AttemptServer, UpstreamSpec
from tests.proxy.setting import SERVERS, attempt, received, stdio, text, wild

pytestmark = pytest.mark.anyio


async def unavailable(spec: UpstreamSpec) -> ServerUnavailableError:
    with anyio.fail_after(10):
        async with Hub() as hub:
            with pytest.raises(ServerUnavailableError) as caught:
                await hub.list_tools(spec)
    return caught.value


@pytest.mark.parametrize(
    ("spec", "broke", "words"),
    [
        (stdio("s", "no-such-program-anywhere"), "spawn", "on PATH"),
        (stdio("s", "./wild.py"), "spawn", "not executable"),
        (stdio("s", "./nothing.py"), "spawn", "does not exist"),
        (stdio("s", "python", cwd="nowhere"), "spawn", "cwd"),
        (stdio("s", "/etc/passwd"), "spawn", "not executable"),
        (wild("--exit-on-start", "9"), "exit", "boom: cannot start"),
        (wild("--exit-on-start", "0"), "exit", "status 0"),
        (wild("--hang-on-start", connectTimeoutMs=400), "hang", "connectTimeoutMs"),
        (wild("--hang-on-start", "--banner", connectTimeoutMs=2000), "unreadable", "My server"),
        (wild("--hang-on-list", connectTimeoutMs=2000), "hang", "tools/list"),
        (wild("--endless"), "listing", "'x'"),
        (wild("--revision", "2024-11-05", protocol="2025-06-18"), "handshake", "2024-11-05"),
        (wild("--era", "legacy", protocol="2026-07-28"), "handshake", "Method not found"),
    ],
)
async def test_what_broke_is_known_where_it_broke(
    spec: UpstreamSpec, broke: BrokenPart, words: str
) -> None:
    error = await unavailable(spec)
    assert error.broke == broke
    assert words in str(error)
    assert error.label == spec.label


async def test_the_exit_status_and_the_end_of_standard_error_are_kept() -> None:
    error = await unavailable(wild("--exit-on-start", "9"))
    assert (error.exit_code, error.stderr_tail) == (9, "boom: cannot start")
    assert error.as_failure().failure.detail == "boom: cannot start"


async def test_only_the_end_of_standard_error_is_kept() -> None:
    error = await unavailable(wild("--noise-bytes", str(2**18), "--endless"))
    assert error.stderr_tail.endswith("last line")
    assert len(error.stderr_tail) < 5000


async def test_an_attempt_whose_server_cannot_be_met_is_a_setup_failure_of_its_variant() -> None:
    with pytest.raises(InfrastructureError) as caught:
        async with attempt(wild(), wild("--exit-on-start", "1", label="other")):
            pytest.fail("the attempt must not begin")
    failure = caught.value.failure
    assert (failure.broke, failure.retryable, failure.scope) == (Broke.SETUP, True, Scope.VARIANT)
    assert "'other'" in failure.reason


async def test_a_server_that_exits_on_the_probe_is_started_again_in_the_older_era() -> None:
    async with Hub() as hub:
        listing = await hub.list_tools(wild("--exit-on-probe"))
    assert listing.protocol == "2025-11-25"


async def test_legacy_never_probes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with Hub() as hub:
        await hub.list_tools(wild("--exit-on-probe", log=log, protocol="legacy"))
    assert [one["method"] for one in received(log)] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
    ]


@pytest.mark.parametrize(
    ("protocol", "flags", "agreed"),
    [
        ("auto", [], "2026-07-28"),
        ("auto", ["--era", "legacy"], "2025-11-25"),
        ("auto", ["--era", "legacy", "--revision", "2024-11-05"], "2024-11-05"),
        ("legacy", [], "2025-11-25"),
        ("2025-03-26", [], "2025-03-26"),
        ("2026-07-28", [], "2026-07-28"),
    ],
)
async def test_the_revision_is_agreed_on_as_the_config_asks(
    protocol: str, flags: list[str], agreed: str
) -> None:
    async with Hub() as hub:
        listing = await hub.list_tools(wild(*flags, protocol=protocol))
    assert (listing.protocol, listing.name, listing.version) == (agreed, "wild", "1")


async def test_a_probe_that_is_ignored_is_followed_by_the_handshake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pytest_mst.proxy.handshake._SILENCE_S", 0.2)
    with anyio.fail_after(10):
        async with Hub() as hub:
            listing = await hub.list_tools(wild("--ignore-probe"))
    assert listing.protocol == "2025-11-25"


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_all_pages_of_tools_are_listed(protocol: str) -> None:
    async with Hub() as hub:
        listing = await hub.list_tools(wild("--tools", "14", "--page", "8", protocol=protocol))
    assert list(listing.tools) == [f"tool_{n}" for n in range(14)]


@pytest.mark.parametrize("page", ["2", "100"])
async def test_of_two_tools_with_one_name_the_one_that_writes_counts(page: str) -> None:
    spec = wild("--twice", "--page", page)
    async with attempt(spec) as boundary:
        await boundary.call_tool("wild", "read_item", {})
    assert [entry.tool for entry in boundary.entries] == ["read_item"]


async def test_tools_are_listed_once_until_they_change(tmp_path: Path) -> None:
    log = tmp_path / "log"
    spec = wild(log=log)
    async with Hub() as hub:
        first = await hub.list_tools(spec)
        assert await hub.list_tools(spec) is first
        async with attempt(spec, hub=hub) as boundary:
            await boundary.call_tool("wild", "start_daemon", {})
        assert "create_x" in (await hub.list_tools(spec)).tools
        await hub.list_tools(spec, fresh=True)
    assert [one["method"] for one in received(log)].count("tools/list") == 3


async def test_a_list_that_changes_whenever_it_is_read_is_read_anew_for_each_call(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"

    def listed() -> int:
        return [one["method"] for one in received(log)].count("tools/list")

    with anyio.fail_after(20):
        async with attempt(wild("--restless", log=log, protocol="legacy")) as boundary:
            before = listed()
            await boundary.call_tool("wild", "read_item", {})
            between = listed()
            await boundary.call_tool("wild", "write_item", {"id": "a"})
    assert 0 < before < between < listed()
    assert [entry.tool for entry in boundary.entries] == ["write_item"]


async def test_servers_start_before_anybody_asks_and_without_the_sdk() -> None:
    script = (
        "import sys, anyio\n"
        "from tests.proxy.setting import *\n"
        "async def main():\n"
        "    async with Hub() as hub:\n"
        "        spec = wild()\n"
        "        await hub.prespawn([spec])\n"
        "        async with attempt(spec, hub=hub) as boundary:\n"
        "            await boundary.call_tool('wild', 'read_item', {})\n"
        "            await boundary.call_tool('wild', 'make_record', {'id': 'a'})\n"
        "    print('mcp' in sys.modules, len(boundary.entries))\n"
        "anyio.run(main)\n"
    )
    root = Path(__file__).parents[2]
    done = await anyio.run_process([sys.executable, "-c", script], cwd=root)
    assert done.stdout.decode().split() == ["False", "1"]


async def test_a_server_gets_a_safe_part_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MST_SECRET", "s")
    show = "import os,sys; sys.exit(repr(sorted(k for k in os.environ if k[:3] in ('MST','PAT'))))"
    kept = await unavailable(stdio("s", "python", "-c", show, env={"MST_OWN": "1"}))
    assert kept.stderr_tail == "['MST_OWN', 'PATH']"
    all_of_it = await unavailable(stdio("s", "python", "-c", show, inheritEnv=True))
    assert "MST_SECRET" in all_of_it.stderr_tail


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing of ours starts a server")
async def test_what_starts_a_server_adds_nothing_to_its_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in os.environ if name.startswith(("LC_", "LANG"))]:
        monkeypatch.delenv(name)  # in the C locale, Python adds to its own environment
    kept = await unavailable(stdio("s", "sh", "-c", "env >&2; exit 1", env={"MST_OWN": "1"}))
    names = {line.partition("=")[0] for line in kept.stderr_tail.splitlines()}
    assert names - {*SAFE_ENVIRONMENT} <= {"MST_OWN", "PWD", "OLDPWD", "SHLVL", "_"}


async def test_standard_error_is_appended_to_a_private_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "server.log"
    spec = wild("--banner", "--noise-bytes", "3")
    kept = UpstreamSpec(spec.label, spec.config, spec.base_dir, log_path=log)
    for _ in range(2):
        async with Hub() as hub:
            await hub.list_tools(kept)
    assert log.read_text().count("eee\nlast line\n") == 2
    assert "[stdout] not JSON: My server v1.2" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def living_members(group: int) -> list[int]:
    """List the processes of a group that have not ended, from the kernel's own table."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, _, member_of = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(member_of) == group and state != "Z":
                found.append(int(entry.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads the process table in /proc")
async def test_no_process_outlives_the_hub_also_behind_a_wrapper() -> None:
    wrapped = f"sleep 600 & '{sys.executable}' '{SERVERS / 'wild.py'}'; exit 0"
    with anyio.fail_after(10):
        async with attempt(stdio("s", "sh", "-c", wrapped)) as boundary:
            pid = int(text(await boundary.call_tool("s", "pid", {})))
            group = os.getpgid(pid)
            assert len(living_members(group)) == 3
        while living_members(group):
            await anyio.lowlevel.checkpoint()


async def test_a_server_that_will_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("proxy.process._EXIT_GRACE_S", "local.child.TERM_GRACE_S"):
        monkeypatch.setattr(f"pytest_mst.{name}", 0.2)
    with anyio.fail_after(10):
        async with attempt(wild("--stubborn")) as boundary:
            pid = int(text(await boundary.call_tool("wild", "pid", {})))
    assert not alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux's")
async def test_a_server_does_not_outlive_a_test_run_that_was_killed() -> None:
    script = (
        "import os, signal, anyio\n"
        "from tests.proxy.setting import *\n"
        "async def main():\n"
        "    async with attempt(wild('--stubborn')) as boundary:\n"
        "        print(text(await boundary.call_tool('wild', 'pid', {})), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(main)\n"
    )
    root = Path(__file__).parents[2]
    done = await anyio.run_process([sys.executable, "-c", script], cwd=root, check=False)
    assert done.returncode == -9
    with anyio.fail_after(5):
        while alive(int(done.stdout)):
            await anyio.lowlevel.checkpoint()


async def test_a_private_server_is_gone_with_its_attempt() -> None:
    spec = wild()
    async with Hub() as hub:
        pids = []
        for _ in range(2):
            async with attempt(spec, hub=hub, isolation="attempt") as boundary:
                pids.append(int(text(await boundary.call_tool("wild", "pid", {}))))
            assert not alive(pids[-1])
        async with attempt(spec, hub=hub) as boundary:
            pids.append(int(text(await boundary.call_tool("wild", "pid", {}))))
        async with attempt(spec, hub=hub) as boundary:
            pids.append(int(text(await boundary.call_tool("wild", "pid", {}))))
    assert len(set(pids)) == 3
    assert pids[2] == pids[3]


async def test_a_private_attempt_takes_over_the_server_that_was_listed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    spec = wild(log=log)
    async with Hub() as hub:
        await hub.prespawn([spec])
        await hub.list_tools(spec)
        async with attempt(spec, hub=hub, isolation="attempt") as boundary:
            await boundary.call_tool("wild", "read_item", {})
    assert [one["method"] for one in received(log)] == [
        "server/discover",
        "tools/list",
        "tools/call",
    ]


async def test_a_hub_that_is_cancelled_leaves_no_process() -> None:
    pids: list[int] = []
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        async with attempt(wild()) as boundary:
            pids.append(int(text(await boundary.call_tool("wild", "pid", {}))))
            scope.cancel()
            await boundary.call_tool("wild", "slow", {"seconds": 60})
    assert not alive(pids[0])


def test_a_hub_works_from_other_threads_through_a_portal() -> None:
    spec = wild()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Hub()) as hub:
        portal.call(hub.prespawn, [spec])
        stored: list[WriteEntry] = []
        servers = {"wild": AttemptServer(spec, WriteMode.PLANNED)}
        opened = hub.open_attempt(servers, stored.append)
        with portal.wrap_async_context_manager(opened) as boundary:
            result = portal.call(boundary.call_tool, "wild", "pid", {})
            assert alive(int(text(result)))
    assert not alive(int(text(result)))


async def test_text_is_the_same_in_a_locale_that_is_not_utf8() -> None:
    script = (
        "import anyio\n"
        "from tests.proxy.setting import *\n"
        "given = {'text': '\\u65e5\\u672c \\u2713 \\U0001f389'}\n"
        "async def main():\n"
        "    async with attempt(wild()) as boundary:\n"
        "        read = await boundary.call_tool('wild', 'read_item', given)\n"
        "        await boundary.call_tool('wild', 'odd', given)\n"
        "    same = json.loads(text(read)) == given == boundary.entries[0].arguments\n"
        "    print(same)\n"
        "anyio.run(main)\n"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUTF8"}
    root = Path(__file__).parents[2]
    command = [sys.executable, "-X", "utf8=0", "-c", script]
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    done = await anyio.run_process(command, cwd=root, env=env | locale)
    assert done.stdout.strip() == b"True"
