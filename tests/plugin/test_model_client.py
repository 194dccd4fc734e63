"""The client `mst` end to end: many attempts at once, some refused for a while, all graded."""

from __future__ import annotations

import threading

from tests.model_provider.asked import Asked
from tests.model_provider.server import ModelProvider
from tests.model_provider.steps import Fail, Step, Tool, say, use
from tests.plugin.eval_project import EvalProject, says

CASES, TRIALS = 10, 5
ASKED_FOR_S = 1.0


class OneInTen:
    """Refuses every tenth request; else asks for a write, then answers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self.refused = 0

    def __call__(self, asked: Asked) -> Step:
        with self._lock:
            self._count += 1
            if self._count % 10 == 0:
                self.refused += 1
                return Fail(429, "rate", retry_after_s=ASKED_FOR_S)
        if asked.turn == 0:
            return use(Tool("post", {"channel": "#team", "text": "hello"}))
        return say("ok")


def test_attempts_that_are_refused_for_a_while_are_all_graded_and_their_waits_shown(
    project: EvalProject,
) -> None:
    wanted = {"writes": [{"server": "desk", "tool": "post"}]}
    cases = [
        {"id": f"c{number}", "input": "Post it", "assertions": says("ok"), "expected": wanted}
        for number in range(CASES)
    ]
    project.eval(*cases, client="mst", model="claude-loopback", trials=TRIALS)
    script = OneInTen()
    with ModelProvider(script) as provider:
        project.environ |= provider.environment
        session = project.run("--mst", "--mst-concurrency", "32")
    assert session.code == 0, session.text
    assert session.run.ledger["graded"] == CASES * TRIALS
    assert set(session.run.verdicts.values()) == {"passed"}
    assert script.refused > 0
    assert "turn retry 2/4 (rate_limit)" in session.text
    stored = [
        session.run.trace_file(f"c{case}", trial)
        for case in range(CASES)
        for trial in range(TRIALS)
    ]
    waited = [one for one in stored if one.get("tries")]
    assert waited
    for one in waited:
        assert all(again["waitMs"] > 0 for again in one["tries"])
    for one in stored:
        assert one["trace"]["usage"]["requests"] == 2
