"""The benchmarks can be started; what they measure is no matter of tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_an_unknown_benchmark_is_refused_with_those_there_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "")
    names = "attempts, sleeping, first, collect, memory, model, proxy"
    assert done.stdout == f"no benchmark nonsense; there are: {names}\n"
