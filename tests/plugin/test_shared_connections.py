"""Attempts whose client has one connection for all of them, in a session."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject, StoredRun, answer, case

CASES = """
import anyio
from pytest_mst import Trial
from pytest_mst.domain.trace import TraceEvent

TOGETHER = 4

class OneConnection:
    name = "one-connection"
    shares_connection = True

    def __init__(self):
        self.connection = None
        self.meetings = [(set(), anyio.Event()) for _ in range(2)]

    async def meet(self, request, number):
        there, all_there = self.meetings[number]
        there.add((request.input, request.trial))
        if len(there) == TOGETHER:
            all_there.set()
        with anyio.fail_after(20):
            await all_there.wait()

    async def run(self, request):
        if self.connection is None:
            self.connection = request.session
        await self.meet(request, 0)
        sent = {"to": f"{request.input} {request.trial}"}
        await self.connection.call_tool("desk", "post", sent)
        if request.input != "silent":
            request.trace.events.append(TraceEvent("post", server="desk", arguments=sent))
        await self.meet(request, 1)
        request.trace.answer = "ok"
        return Trial()

@pytest.fixture(scope="module")
def mst_client():
    return OneConnection()

@pytest.mark.mst(input="open", config="desk.eval.json", trials=3)
@pytest.mark.writes(server="desk", tool="post", exclusive=True)
def test_open(trial):
    assert trial.writes.one("post").arguments == {"to": f"open {trial.number}"}
"""
SILENT = """
@pytest.mark.mst(input="silent", config="desk.eval.json")
@pytest.mark.writes(server="desk", tool="post")
def test_silent(trial):
    assert trial.answer == "ok"
"""


def test_attempts_that_overlap_on_one_connection_have_each_their_own_writes(
    project: EvalProject,
) -> None:
    project.eval(case("unused", answer("ok")))
    project.test_file(CASES.replace("TOGETHER = 4", "TOGETHER = 3"))
    session = project.run("--mst", "test_evals.py", "--mst-concurrency", "4")
    assert session.code == 0, session.text
    run = session.run
    assert [run.writes("test_open", number)[0]["arguments"] for number in range(3)] == [
        {"to": f"open {number}"} for number in range(3)
    ]
    assert run.summary["variants"][0]["unattributedWrites"] == []
    assert project.desk_calls == []


def test_what_a_silent_attempt_wrote_is_nobodys_and_nothing_passes_beside_it(
    project: EvalProject,
) -> None:
    project.eval(case("unused", answer("ok")))
    project.test_file(CASES + SILENT)
    session = project.run("--mst", "test_evals.py", "--mst-concurrency", "4")
    assert session.code == 10, session.text
    run = session.run
    nobodys = {"server": "desk", "tool": "post", "arguments": {"to": "silent 0"}}
    assert run.results["unattributedWrites"] == {"default": [nobodys]}
    assert run.summary["variants"][0]["unattributedWrites"] == [nobodys]
    assert session.count("unattributed write: desk.post") == 1
    assert set(run.verdicts.values()) == {"incomplete"}
    assert "no trace claims" in project.show(run.trial("test_silent")["locator"])
    assert "unattributed write: desk.post" in project.show(run.trial("test_open")["locator"])


@pytest.mark.parametrize("concurrency", ["1", "2"])
def test_attempts_that_wait_for_one_another_hold_up_nothing(
    project: EvalProject, concurrency: str
) -> None:
    project.eval(case("unused", answer("ok")))
    project.test_file(CASES.replace("TOGETHER = 4", f"TOGETHER = {concurrency}"))
    session = project.run("--mst", "test_evals.py", "--mst-concurrency", concurrency)
    assert session.code == 0, session.text


def test_a_killed_session_loses_no_write_and_can_be_finished(project: EvalProject) -> None:
    killed = project.root / "killed"
    project.environ["KILLED"] = str(killed)
    dies = """
        if not os.path.exists(os.environ["KILLED"]):
            open(os.environ["KILLED"], "w").close()
            os.kill(os.getpid(), 9)
        await self.meet(request, 1)
"""
    assert "        await self.meet(request, 1)\n" in CASES
    source = CASES.replace("        await self.meet(request, 1)\n", dies)
    project.eval(case("unused", answer("ok")))
    project.test_file(source.replace("TOGETHER = 4", "TOGETHER = 3"))
    assert project.run("--mst", "test_evals.py", "--mst-concurrency", "3").code == -9
    resumed = project.run("--mst", "--mst-resume", "--mst-concurrency", "3")
    assert resumed.code == 0, resumed.text
    (folder,) = project.root.glob(".mst-results/*/runs/*")
    run = StoredRun(folder)
    assert [run.writes("test_open", number)[0]["arguments"] for number in range(3)] == [
        {"to": f"open {number}"} for number in range(3)
    ]
    (variant,) = run.summary["variants"]
    before = [one["arguments"]["to"] for one in variant["unattributedWrites"]]
    assert before
    assert set(before) <= {f"open {number}" for number in range(3)}
    connections = [one for one in run.files if one.startswith("connections/")]
    recorded = [line for one in connections for line in run.files[one] if "kind" not in line]
    assert len(recorded) == len(before) + 3
