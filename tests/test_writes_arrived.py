"""The witness of the whole suite is no ornament: it fails a test in which a write gets through."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEAKS = """
import anyio
import pytest

from pytest_mst.domain.write import WriteMode
from pytest_mst.proxy.policy import Forward, ServerPolicy
from tests.proxy.setting import attempt, wild


@pytest.fixture
def leak(monkeypatch):
    monkeypatch.setattr(ServerPolicy, "decide", lambda *_: Forward(is_read=True))


async def calls(tool, mode=WriteMode.PLANNED):
    async with attempt(wild(), mode=mode) as boundary:
        await boundary.call_tool("wild", tool, {"id": "a"})


def test_stops():
    anyio.run(calls, "write_item")


def test_leaks_when_planned(leak):
    anyio.run(calls, "write_item")


def test_leaks_when_simulated(leak):
    anyio.run(calls, "make_record", WriteMode.SIMULATED)


def test_reads(leak):
    anyio.run(calls, "read_item")


@pytest.mark.lets_writes_through("write_item")
def test_lets_through():
    anyio.run(calls, "write_item", WriteMode.UNGUARDED)


@pytest.mark.lets_writes_through("make_record")
def test_lets_another_through():
    anyio.run(calls, "write_item", WriteMode.UNGUARDED)


@pytest.mark.lets_writes_through("write_item")
def test_says_so_and_stops():
    anyio.run(calls, "write_item")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found as on Linux")
@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n", "2")], ids=["alone", "two workers"])
def test_a_write_that_gets_through_fails_its_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    pytester.makepyfile(test_leaks=LEAKS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("CI", "1")  # cuts no line short
    done = pytester.runpytest_subprocess("-p", "tests.writes_arrived", *workers, timeout=60)
    done.assert_outcomes(passed=7, errors=4)
    done.stdout.fnmatch_lines_random(
        [
            "ERROR *test_leaks_when_planned - *reached a server that was to be spared: write_item",
            "ERROR *test_leaks_when_simulated - *that was to be spared: make_record",
            "ERROR *test_lets_another_through - *that was to be spared: write_item",
            "ERROR *test_says_so_and_stops - *witness that this has arrived: write_item",
            "1 write reached a server, all in tests that let them through",
        ]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found as on Linux")
def test_a_write_after_the_last_test_fails_the_session(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(test_fine="def test_fine(): pass")
    pytester.makeconftest(
        "import pytest\nfrom tests import witness\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_sessionfinish(): witness.executed('too_late')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = pytester.runpytest_subprocess("-p", "tests.writes_arrived", timeout=60)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines(["writes reached servers after the tests: too_late"])
