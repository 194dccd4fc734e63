"""What reading evals costs at the start of a run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_mst.eval_files.serialise import loaded_from_json, loaded_to_json
from tests.eval_files.evals import load, write

ROOT = Path(__file__).parents[2]


def test_reading_evals_imports_nothing_that_is_slow() -> None:
    code = (
        "import sys, pytest_mst.eval_files.load, pytest_mst.eval_files.serialise;"
        "slow = ('mcp', 'anyio', 'jsonschema', 'asyncio', 'pytest');"
        "print([name for name in slow if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def thousand_cases() -> dict[str, Any]:
    return {
        "name": "many",
        "cases": [
            {
                "id": f"case-{number}",
                "input": f"Post message number {number} in the team channel, please",
                "tags": ["smoke", "posting"],
                "expected": {
                    "answer": "posted",
                    "writes": [{"tool": "post_message", "arguments": {"text": f"n {number}"}}],
                },
                "assertions": {
                    "containsText": ["posted"],
                    "toolsTriggered": {"calls": [{"name": "list_channels"}]},
                },
            }
            for number in range(1000)
        ],
    }


# The bounds are several times what it takes on a machine that is not busy, in CPU seconds, so
# that only a change in kind (something quadratic, the slow YAML loader) goes over them.


@pytest.mark.parametrize(("name", "limit_s"), [("many.json", 0.6), ("many.yaml", 1.2)])
def test_a_thousand_cases_are_read_in_a_moment(tmp_path: Path, name: str, limit_s: float) -> None:
    dump = json.dumps if name.endswith(".json") else yaml.safe_dump
    (tmp_path / name).write_text(dump(thousand_cases()), encoding="utf-8")
    path = write(tmp_path, f"name: team\ndatasets: [{name}]")
    began = time.process_time()
    loaded = load(path)
    assert time.process_time() - began < limit_s
    assert len(loaded.cases) == 1000


def test_a_thousand_cases_are_handed_on_in_a_moment(tmp_path: Path) -> None:
    (tmp_path / "many.json").write_text(json.dumps(thousand_cases()), encoding="utf-8")
    loaded = load(write(tmp_path, "name: team\ndatasets: [many.json]"))
    began = time.process_time()
    assert loaded_from_json(loaded_to_json(loaded)) == loaded
    assert time.process_time() - began < 1
