"""A project to benchmark in: written to a folder, run by pytest in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("desk_server.py")
MEMORY = Path("/dev/shm")
"""A memory file system, so that disks do not differ."""

READ = {"call": {"server": "desk", "tool": "look_up", "arguments": {"key": "a"}}}
WRITE = {"call": {"server": "desk", "tool": "put", "arguments": {"key": "a", "value": "b"}}}

PROBE = """
import json, os, resource, time
import pytest

MOMENTS = {}

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionstart(session):
    MOMENTS["loading_s"] = time.perf_counter()
    result = yield
    MOMENTS["loaded_s"] = time.perf_counter()
    return result

def pytest_runtest_logreport(report):
    if report.when == "trial":
        MOMENTS.setdefault("first_attempt_s", time.perf_counter())

def pytest_unconfigure(config):
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "max_rss_bytes": usage.ru_maxrss * 1024,
        "moments": MOMENTS,
    }
    with open(os.environ["BENCHMARK_FIGURES"], "w") as file:
        json.dump(figures, file)
"""
"""A conftest that writes down what pytest's own process used, its children left out."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of pytest took."""

    wall_s: float
    cpu_s: float
    """Of pytest's own process: servers are not counted."""
    max_rss_bytes: int
    moments: Mapping[str, float]
    """When loading began and ended and the first attempt had ended, in seconds of one clock."""
    output: str


@contextmanager
def scratch(*, in_memory: bool = True) -> Iterator[Path]:
    """Make a folder that goes away; in memory where there is a file system for that."""
    base = MEMORY if in_memory and MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="mst-benchmark-", dir=base) as folder:
        (Path(folder) / "conftest.py").write_text(PROBE)
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        yield Path(folder)


def write_eval(
    folder: Path,
    *,
    cases: int,
    trials: int,
    steps: Sequence[Mapping[str, Any]],
    name: str = "speed",
) -> Path:
    """Write an eval of equal cases, each of which checks one write."""
    expected = [{"server": "desk", "tool": "put"}] if WRITE in steps else None
    content = {
        "name": name,
        "servers": {
            "desk": {
                "transport": "stdio",
                "command": "python",
                "args": ["-I", "-S", str(SERVER)],
                "protocol": "legacy",
            }
        },
        "trials": trials,
        "clientOptions": {"script": [*steps, {"answer": "done"}]},
        "cases": [
            {
                "id": f"case-{number}",
                "input": "Put it there",
                "assertions": {"containsText": "done"},
                **({"expected": {"writes": expected}} if expected else {}),
            }
            for number in range(cases)
        ],
    }
    path = folder / f"{name}.eval.json"
    path.write_text(json.dumps(content))
    return path


def run_pytest(folder: Path, *arguments: str) -> Measured:
    """Run pytest and measure it.

    Raises:
        RuntimeError: it did not end with exit code 0.

    """
    figures = folder / "figures.json"
    environment = {**os.environ, "BENCHMARK_FIGURES": str(figures), "PYTHONHASHSEED": "0"}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    wall_s = time.perf_counter() - start
    if done.returncode != 0:
        msg = f"pytest ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        raise RuntimeError(msg)
    used = json.loads(figures.read_text())
    return Measured(wall_s, used["cpu_s"], used["max_rss_bytes"], used["moments"], done.stdout)
