"""The server that a run starts, and what its program has written down."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.plugin.eval_project import EvalProject, Json

BOOTH = Path(__file__).parent / "servers" / "booth.py"
WAIT_S = 40.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def booth(port: int, *words: str, start: Mapping[str, Any] = {}, **more: Any) -> Json:
    """Return the definition of a server whose program the run starts."""
    return {
        "transport": "http",
        "serverUrl": f"http://127.0.0.1:{port}/mcp",
        "start": {
            "command": "python",
            "args": [str(BOOTH), str(port), *words],
            "env": {"BOOTH_LOG": "${BOOTH_LOG}"},
            "readyUrl": f"http://127.0.0.1:{port}/health",
            **start,
        },
        **more,
    }


class Started:
    """What the program that a project's run starts has written down."""

    def __init__(self, project: EvalProject) -> None:
        self.path = project.root / "booth.jsonl"
        project.environ["BOOTH_LOG"] = str(self.path)

    @property
    def lines(self) -> list[Json]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    @property
    def pids(self) -> list[int]:
        return [pid for line in self.lines for pid in line.get("started", ())]

    @property
    def times(self) -> int:
        return sum("started" in line for line in self.lines)

    @property
    def calls(self) -> list[str]:
        return [line["call"] for line in self.lines if "call" in line]

    def wait_for_call(self, name: str) -> None:
        """Wait until a call has reached it."""
        wait_until(lambda: name in self.calls)

    def all_gone(self) -> bool:
        """Wait until each program and its child is gone."""
        wait_until(lambda: not any(map(alive, self.pids)))
        return bool(self.pids)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def wait_until(met: Any) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
