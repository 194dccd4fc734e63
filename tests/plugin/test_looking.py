"""Looking at what a session left: `show` by the locators it printed, and its servers' words."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plugin.eval_project import DESK, EvalProject, Json, answer, call, case, desk

SECRET = "hush-4711-do-not-tell"
TALKATIVE = (
    "import os, runpy, sys;"
    "print('desk is open,', os.environ.get('DESK_TOKEN'), file=sys.stderr, flush=True);"
    f"sys.argv = ['desk']; runpy.run_path({str(DESK)!r}, run_name='__main__')"
)


def talkative() -> Json:
    """Return the definition of a server that writes to its standard error, a secret too."""
    server = desk()
    env = {**server["env"], "DESK_TOKEN": "${DESK_TOKEN}"}
    return {**server, "args": ["-ISc", TALKATIVE], "env": env}


def logs(project: EvalProject) -> list[Path]:
    return sorted((project.root / ".mst-results").rglob("*.log"))


def show(project: EvalProject, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pytest_mst", "show", *arguments],
        cwd=project.root,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture
def talking(project: EvalProject) -> EvalProject:
    """An eval with a server that says more than it should, and a failing case."""
    project.environ["DESK_TOKEN"] = SECRET
    project.eval(
        case("good", call("find", key="a"), answer("ok"), trials=2),
        case("bad", call("find", key="b"), answer("no")),
        servers={"desk": talkative()},
    )
    return project


@pytest.mark.parametrize("options", [(), ("-n", "2")])
def test_what_a_shared_server_said_is_in_the_run_without_its_secrets(
    talking: EvalProject, options: tuple[str, ...]
) -> None:
    session = talking.run("--mst", *options)
    assert session.code == 1, session.text
    [log] = logs(talking)
    assert set(log.read_text().splitlines()) == {"desk is open, [redacted]"}
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("options", [("--collect-only",), ("--mst-variant", "none")])
def test_a_session_that_runs_nothing_keeps_no_log(
    talking: EvalProject, options: tuple[str, ...]
) -> None:
    talking.run("--mst", *options)
    assert not (talking.root / ".mst-results").exists()


def test_each_locator_that_a_session_printed_can_be_looked_at(talking: EvalProject) -> None:
    session = talking.run("--mst", "-rA")
    printed = sorted(set(re.findall(r"@[a-z0-9]{8}\b", session.out)))
    assert printed, session.text
    for locator in printed:
        text = show(talking, locator)
        assert text.startswith(f"{locator} case bad [default] trial 0\n")
        assert "0. desk.find" in text
        assert "desk is open, [redacted]" in text
        document = json.loads(show(talking, locator, "--json"))
        assert document["serverLogs"][0]["lines"] == ["desk is open, [redacted]"]
    [run_id] = set(re.findall(r"^run (\S+) in", session.out, re.MULTILINE))
    closing = show(talking, run_id)
    assert closing in session.out
