"""A worker that dies, however xdist hands out tests: nothing is made twice or forgotten."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer  # type: ignore[import-untyped]  # xdist has no types

from pytest_mst.plugin.distribution import check_distribution
from pytest_mst.plugin.scheduling import Fate, Fates, scheduler
from tests.plugin.eval_project import (
    EvalProject,
    Json,
    Session,
    StoredRun,
    answer,
    call,
    case,
    junit_cases,
)

DISTS = ("load", "worksteal", "loadfile", "loadscope", "loadgroup")
CONFTEST = """
    import asyncio
    import json
    import os
    from pathlib import Path

    import pytest

    LOG = Path(__file__).parent / "desk.jsonl"

    def note(step, request):
        arguments = {"case": request.input, "trial": request.trial, "step": step}
        line = json.dumps({"call": "find", "arguments": arguments}) + "\\n"
        with open(LOG, "a") as file:
            file.write(line)

    async def agent(request):
        request.trace.evidence = "structured"  # it asks no server, and says so itself
        note("begun", request)
        if "exits" in request.input:
            os._exit(9)
        await asyncio.sleep(0.01)
        note("ended", request)
        return "ok"

    @pytest.fixture(scope="session")
    def mst_client():
        return agent
"""


@dataclass(frozen=True)
class Made:
    """What clients really did, as their server heard of it, by case and trial."""

    begun: Counter[tuple[str, int]]
    ended: Counter[tuple[str, int]]

    @classmethod
    def in_(cls, project: EvalProject) -> Made:
        said = [line["arguments"] for line in project.desk_lines if line.get("call") == "find"]
        steps = {
            step: Counter((one["case"], one["trial"]) for one in said if one["step"] == step)
            for step in ("begun", "ended")
        }
        return cls(steps["begun"], steps["ended"])


def eval_of(project: EvalProject, name: str, *ids: str, trials: int = 1) -> None:
    """Write an eval; the client of a case named `kill` ends its worker, in trial 0."""

    def script(case_id: str, trial: int) -> list[Json]:
        begun, ended = (
            call("find", case=case_id, trial=trial, step=step) for step in ("begun", "ended")
        )
        deadly = case_id.startswith("kill") and trial == 0
        between = call("end_client") if deadly else {"sleep": 0.01}
        return [begun, between, ended, answer("ok")]

    cases = [
        case(one, options={"script": None, "scripts": [script(one, n) for n in range(trials)]})
        for one in ids
    ]
    for one in cases:
        del one["clientOptions"]["script"]
    project.eval(*cases, name=name, trials=trials)


def several(name: str, number: int) -> list[str]:
    """Return names of cases that go well."""
    return [f"{name}-{n}" for n in range(number)]


def lost_in(run: StoredRun, made: Made) -> set[tuple[str, int]]:
    """Return the attempts that workers took along; every other one was made, once, and graded."""
    begun = Counter(
        (line["caseId"], line["trial"]) for line in run.journal if line["kind"] == "begun"
    )
    lost = set()
    for found in run.results["cases"]:
        name, of_python = found["id"], found["id"].startswith("test_")
        for trial in found["trials"]:
            attempt, ending = (name, trial["trial"]), trial["ending"]
            assert ending is not None, f"{attempt} is unstarted"
            assert begun[attempt] == 1, f"{attempt} was begun {begun[attempt]} times"
            if ending["kind"] == "infrastructure":
                assert (ending["broke"], ending["retryable"]) == ("collection", True), ending
                assert "ended before the attempt did" in ending["reason"]
                assert made.begun[attempt] <= 1
                lost.add(attempt)
                continue
            # a test whose worker ends between its attempt and its body is ungraded
            assert trial["verdict"] in (("passed", "ungraded") if of_python else ("passed",))
            if "[" not in name:
                assert made.begun[attempt] == made.ended[attempt] == 1, attempt
        whole = all(trial["verdict"] == "passed" for trial in found["trials"])
        assert found["verdict"] == ("passed" if whole else "incomplete"), found
    assert run.ledger["infrastructure"] == len(lost)
    assert run.ledger["unstarted"] == 0
    return lost


def assert_one_row_each(session: Session, project: EvalProject, runs: list[StoredRun]) -> None:
    """Check that each case has one row in JUnit, which says what the run does."""
    rows = Counter(junit_cases(project.root / "junit.xml").values())
    verdicts = Counter(
        {"passed": "passed", "incomplete": "error"}[verdict]
        for run in runs
        for verdict in run.verdicts.values()
    )
    assert rows == verdicts
    assert "INTERNALERROR" not in session.text
    assert f"{verdicts['passed']} passed, {verdicts['error']} incomplete" in session.out


@pytest.mark.parametrize("dist", DISTS)
def test_an_attempt_that_ends_its_worker_in_one_file(project: EvalProject, dist: str) -> None:
    eval_of(project, "one", *several("a", 3), "kill", *several("b", 5), trials=2)
    session = project.run(
        "--mst", "-n2", "--dist", dist, "--mst-concurrency", "4", "--junitxml=junit.xml"
    )
    assert session.code == 10, session.text
    run = session.run
    lost = lost_in(run, Made.in_(project))
    assert ("kill", 0) in lost
    assert len(lost) <= 2  # as many as a worker has under way
    assert_one_row_each(session, project, [run])


@pytest.mark.parametrize("dist", DISTS)
def test_attempts_that_end_workers_in_several_files(project: EvalProject, dist: str) -> None:
    project.write("conftest.py", CONFTEST)
    eval_of(project, "first", *several("a", 4))
    eval_of(project, "second", *several("b", 2), "kill", *several("c", 2))
    project.test_file(
        """
        def mst_case(text):
            return pytest.mark.mst(input=text, config="first.eval.json")

        @pytest.mark.xdist_group("exits")
        @mst_case("test_exits")
        def test_exits(trial): assert trial.answer == "ok"

        @pytest.mark.xdist_group("exits")
        @pytest.mark.parametrize("n", range(4))
        @mst_case("test_lives")
        def test_lives(trial, n): assert trial.answer == "ok"
        """
    )
    session = project.run(
        "--mst", "-n2", "--dist", dist, "--mst-concurrency", "4", "--junitxml=junit.xml"
    )
    assert session.code == 10, session.text
    made = Made.in_(project)
    runs = {name: session.run_of(name) for name in ("first", "second", "test_evals")}
    lost = [lost_in(run, made) for run in runs.values()]
    assert ("kill", 0) in lost[1]
    assert ("test_exits", 0) in lost[2]
    assert sum(map(len, lost)) <= 4
    assert_one_row_each(session, project, list(runs.values()))


def test_cases_that_are_stolen_are_not_made_twice(project: EvalProject) -> None:
    quick = [case(f"quick-{n}", call("find", case=f"quick-{n}"), answer("ok")) for n in range(30)]
    slow = [
        case(f"slow-{n}", call("find", case=f"slow-{n}"), {"sleep": 0.1}, answer("ok"))
        for n in range(30)
    ]
    project.eval(*quick, *slow)
    session = project.run("--mst", "-n2", "--dist", "worksteal", "--mst-concurrency", "16")
    assert session.code == 0, session.text
    made = Counter(line["arguments"]["case"] for line in project.desk_lines if "call" in line)
    assert [name for name, times in made.items() if times > 1] == []
    assert len(made) == session.run.ledger["graded"] == 60


def test_workers_that_may_not_be_replaced_leave_the_rest_unstarted(project: EvalProject) -> None:
    eval_of(project, "one", "kill", *several("a", 20))
    session = project.run(
        "--mst", "-n2", "--max-worker-restart=0", "--mst-concurrency", "2", "--junitxml=junit.xml"
    )
    assert session.code == 10, session.text
    run = session.run
    ledger = run.ledger
    assert ledger["planned"] == 21
    assert ledger["infrastructure"] == 1
    assert run.ending("kill")["broke"] == "collection"
    assert ledger["unstarted"] > 0
    assert f"unstarted {ledger['unstarted']}" in session.out
    unstarted = [one["id"] for one in run.results["cases"] if one["trials"][0]["ending"] is None]
    assert not set(unstarted) & {case for case, _ in Made.in_(project).begun}
    assert all(run.verdicts[one] == "incomplete" for one in unstarted)
    assert "INTERNALERROR" not in session.text


def test_workers_that_end_before_they_have_collected_are_not_replaced_for_ever(
    project: EvalProject,
) -> None:
    eval_of(project, "one", "a")
    project.write(
        "conftest.py",
        """
        import os

        def pytest_collection_modifyitems(config):
            if hasattr(config, "workerinput"):
                os._exit(9)
        """,
    )
    session = project.run("--mst", "--tx", "1*popen", "--dist", "load")
    assert session.code not in (0, 2), session.text
    assert session.count("node down") == 5
    assert "INTERNALERROR" not in session.text


@pytest.mark.parametrize(
    ("args", "found", "way_out"),
    [
        (("-n2", "--dist", "each"), "--dist each", "--dist load"),
        (("-p", "xdist.looponfail", "-f"), "--looponfail", "--lf"),
        (("-d", "--tx", "ssh=somewhere"), "--tx ssh=somewhere", "-n NUM"),
    ],
)
def test_ways_to_distribute_that_would_break_the_promise_are_refused(
    project: EvalProject, args: tuple[str, ...], found: str, way_out: str
) -> None:
    eval_of(project, "one", "a")
    session = project.run("--mst", *args)
    assert session.code == 4, session.text
    (line,) = (line for line in session.err.splitlines() if line.startswith("ERROR"))
    assert found in line
    assert way_out in line
    assert "Traceback" not in session.text
    assert session.folders == ()
    assert project.desk_lines == []


def options(**more: Any) -> pytest.Config:
    """Return a configuration with xdist's options as they are before xdist looks at them."""
    stated: dict[str, Any] = {"numprocesses": None, "dist": "no", "distload": False, "tx": []}
    stated |= {"looponfail": False, "maxworkerrestart": None} | more
    return SimpleNamespace(option=SimpleNamespace(**stated))  # type: ignore[return-value]  # all that is asked for


@pytest.mark.parametrize(
    "more",
    [
        {"dist": "each", "numprocesses": "auto"},
        {"dist": "each", "tx": ["popen", "popen"]},
        {"dist": "load", "tx": ["3*popen//chdir=elsewhere"]},
        {"distload": True, "tx": ["popen", "popen//via=there"]},
        {"distload": True, "tx": ["socket=192.168.1.102:8888"]},
    ],
)
def test_workers_elsewhere_and_attempts_by_each_of_them_are_refused(more: dict[str, Any]) -> None:
    with pytest.raises(pytest.UsageError, match="with --mst"):
        check_distribution(options(**more))


@pytest.mark.parametrize(
    ("more", "restarts"),
    [
        ({}, None),
        ({"dist": "each", "numprocesses": 0}, None),
        ({"tx": ["ssh=somewhere"]}, None),
        ({"dist": "loadgroup", "numprocesses": 4}, None),
        ({"dist": "load", "tx": ["2*popen", "popen//python=python3.12"]}, "12"),
        ({"distload": True, "tx": ["popen"], "maxworkerrestart": "1"}, "1"),
    ],
)
def test_other_ways_are_left_to_xdist_with_a_bound_on_restarts(
    more: dict[str, Any], restarts: str | None
) -> None:
    config = options(**more)
    check_distribution(config)
    assert config.option.maxworkerrestart == restarts


class Node:
    """A worker as schedulers see it."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="gw")
        self.given: list[int] = []
        self.asked_back: list[int] = []
        self.alive = True
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self._send()
        self.given += indices

    def send_steal(self, indices: list[int]) -> None:
        self._send()
        self.asked_back = indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def _send(self) -> None:
        if not self.alive:
            msg = "cannot send (already closed?)"
            raise OSError(msg)


@pytest.fixture
def two_nodes() -> tuple[Node, Node]:
    return Node(), Node()


def scheduled(dist: str, nodes: tuple[Node, ...], items: list[str]) -> tuple[Any, Fates]:
    """Return a scheduler whose workers have collected, and what it asks about items."""
    options = SimpleNamespace(loadscopereorder=True)
    values = {"tx": ["popen"] * len(nodes), "dist": dist, "maxschedchunk": None}
    plugins = pytest.PytestPluginManager()
    config = SimpleNamespace(
        getvalue=values.get, getoption=values.get, option=options, pluginmanager=plugins
    )
    made: Any = scheduler(config, Producer("test", enabled=False))  # type: ignore[arg-type]  # what it asks for is there
    for node in nodes:
        made.add_node(node)
        made.add_node_collection(node, items)
    fates = plugins.get_plugin("mst-fates")
    assert isinstance(fates, Fates)
    return made, fates


@pytest.mark.parametrize("dist", DISTS)
def test_work_for_a_worker_that_has_just_died_goes_to_another(
    two_nodes: tuple[Node, Node], dist: str
) -> None:
    dead, other = two_nodes
    items = [f"test_{n}.py::test" for n in range(12)]
    made, _ = scheduled(dist, two_nodes, items)
    dead.alive = False
    made.schedule()  # raises where the death of one is not foreseen
    assert made.remove_node(dead) is None
    if other.asked_back:  # before that, to have the dead one do it
        other.given = [one for one in other.given if one not in other.asked_back]
        made.remove_pending_tests_from_node(other, other.asked_back)
    while not made.tests_finished:
        index = next(one for one in other.given if one not in done(made, other, items))
        made.mark_test_complete(other, index, 0.1)
    assert dead.given == []
    assert sorted(other.given) == list(range(12))


def done(made: Any, node: Node, items: list[str]) -> set[int]:
    """Return which of the items that a worker was given it has run."""
    if hasattr(made, "node2pending"):
        return set(node.given) - set(made.node2pending[node])
    scopes = made.assigned_work[node].values()
    return {items.index(one) for scope in scopes for one, ended in scope.items() if ended}


def test_stealing_from_a_worker_that_has_just_died(two_nodes: tuple[Node, Node]) -> None:
    dead, other = two_nodes
    made, _ = scheduled("worksteal", two_nodes, [f"test_{n}.py::test" for n in range(12)])
    made.schedule()
    dead.alive = False
    for index in list(other.given):
        made.mark_test_complete(other, index)  # in the end it would steal
    assert made.steal_requested_from_node is None
    assert made.remove_node(dead) is None
    assert sorted(other.given) == list(range(12))


@pytest.mark.parametrize("dist", DISTS)
@pytest.mark.parametrize(
    ("heard", "lost"),
    [((), False), (("logstart",), True), (("logstart", "logfinish"), False)],
    ids=["waits", "under way", "reported"],
)
def test_an_item_is_lost_with_its_worker_only_while_it_is_under_way(
    two_nodes: tuple[Node, Node], dist: str, heard: tuple[str, ...], lost: bool
) -> None:
    made, fates = scheduled(dist, two_nodes, [f"{name}.py::test_{name}" for name in "01234567"])
    first, _ = two_nodes
    made.schedule()
    assert made.collection is not None
    nodeid = made.collection[first.given[0]]
    if "logstart" in heard:
        fates.pytest_runtest_logstart(nodeid)
    if "logfinish" in heard:
        fates.pytest_runtest_logfinish(nodeid)
    assert made.remove_node(first) == (nodeid if lost else None)


def test_a_case_of_an_eval_file_is_run_once_more_and_then_lost() -> None:
    fates = Fates()
    nodeid = "evals/desk.eval.yaml::case::default"
    fates.pytest_runtest_logstart(nodeid)
    assert [fates.of(nodeid) for _ in range(3)] == [Fate.WAITS, Fate.LOST, Fate.LOST]
