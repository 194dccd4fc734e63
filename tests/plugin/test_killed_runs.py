"""A session that is killed at any moment loses what was under way, and its run can be finished."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.plugin.eval_project import EvalProject, Json, StoredRun, answer, call, case
from tests.plugin.resumed import Files

CASES, TRIALS = 20, 3
WAIT_S = 60.0


def sixty(project: EvalProject) -> None:
    """Write an eval with 60 attempts: some fail, some break for good, some write."""

    def one(number: int) -> Json:
        steps = [call("find", case=number), call("post", text=f"{number}"), {"sleep": 0.02}]
        if number == 7:
            steps.append({"fail": {"broke": "setup", "reason": "grant it"}})
        return case(f"c-{number}", *steps, answer("no" if number == 11 else "ok"))

    project.eval(*map(one, range(CASES)), trials=TRIALS)


def results_of(run: StoredRun) -> Any:
    """Return a run's results less what is another's in each run: ids and times."""
    text = json.dumps([run.results, run.summary["ledger"], run.summary["cases"]])
    for one in run.results["cases"]:
        for trial in one["trials"]:
            text = text.replace(trial["locator"], "@")
            text = text.replace("mst" + trial["locator"][1:], "mst")
    parts = json.loads(text.replace(run.plan["runId"], "run"))
    for one in parts[0]["cases"]:
        one["reasons"] = []  # which attempt is named first is the order they ended in
        for trial in one["trials"]:
            trial.pop("replaced", None)
    return parts


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    project = EvalProject(tmp_path_factory.mktemp("undisturbed"))
    sixty(project)
    session = project.run("--mst")
    assert session.code == 1, session.text
    assert session.run.ledger["infrastructure"] == TRIALS
    return results_of(session.run)


def journal(project: EvalProject) -> list[Json]:
    """Return the whole lines of the only run's journal; none before it has begun."""
    return [
        json.loads(line)
        for path in project.root.glob(".mst-results/*/runs/*/journal.jsonl")
        for line in path.read_bytes().split(b"\n")[:-1]
    ]


def begun_in(lines: Sequence[Json]) -> Counter[str]:
    """Tell how often each attempt began, by the name of its file."""
    return Counter(
        f"traces/default/{line['caseId']}/{line['trial']}.json"
        for line in lines
        if line["kind"] == "begun"
    )


@dataclass
class Killed:
    """What a run had on disk when its session was killed, over several sessions."""

    project: EvalProject
    there: Files = field(default_factory=dict)
    """Attempts' own files, of those that will not be collected again."""
    begun: dict[str, int] = field(default_factory=dict)
    """How often each of those had begun, by the file's name."""

    def session(self, *options: str, ended: int) -> None:
        """Run a session and kill it once so many attempts have ended in it."""
        before = sum(line["kind"] == "ended" for line in journal(self.project))
        with self.project.started(*options) as running:
            give_up_at = time.monotonic() + WAIT_S
            while sum(line["kind"] == "ended" for line in journal(self.project)) < before + ended:
                assert running.process.poll() is None, (self.project.root / "out.txt").read_text()
                assert time.monotonic() < give_up_at
                time.sleep(0.005)
            running.kill()
        [folder] = self.project._folders()
        for path in folder.glob("traces/*/*/*.json"):
            ending = json.loads(path.read_bytes())["ending"]
            if ending["kind"] == "trial" or not ending["retryable"]:
                name = str(path.relative_to(folder))
                found = (path.read_bytes(), path.stat().st_mtime_ns)
                assert self.there.setdefault(name, found) == found, name
                begun = begun_in(journal(self.project))[name]
                assert self.begun.setdefault(name, begun) == begun, name

    def finished(self, *options: str) -> StoredRun:
        """Resume the run to its end; what was there is not collected again."""
        [folder] = self.project._folders()
        session = self.project.run("--mst", "--mst-resume", *options)
        assert session.code == 1, session.text
        assert session.folders == ()
        run = StoredRun(folder)
        assert self.begun.items() <= begun_in(run.journal).items()
        for name, (content, _) in self.there.items():
            before, path = json.loads(content), folder / name
            now = json.loads(path.read_bytes())
            assert now == before, name
            scores = folder.glob(f"scores/*/default/{now['caseId']}/{now['trial']}.json")
            scored = {json.loads(path.read_bytes())["grader"] for path in scores}
            assert scored == set(now.get("graders", ())), name
        return run


@pytest.mark.parametrize("ended", [0, 1, 23, 56])
def test_a_killed_run_is_finished_as_if_nothing_had_been(
    project: EvalProject, undisturbed: Any, ended: int
) -> None:
    sixty(project)
    killed = Killed(project)
    killed.session("--mst", ended=ended) if ended else killed_at_once(killed)
    assert results_of(killed.finished()) == undisturbed


def killed_at_once(killed: Killed) -> None:
    """Kill a session as soon as its plan is there, before an attempt has ended."""
    with killed.project.started("--mst") as running:
        give_up_at = time.monotonic() + WAIT_S
        while not list(killed.project.root.glob(".mst-results/*/runs/*/run.json")):
            assert running.process.poll() is None
            assert time.monotonic() < give_up_at
            time.sleep(0.001)
        running.kill()


def test_a_resumption_that_is_killed_loses_nothing_either(
    project: EvalProject, undisturbed: Any
) -> None:
    sixty(project)
    killed = Killed(project)
    killed.session("--mst", ended=15)
    killed.session("--mst", "--mst-resume", ended=10)
    killed.session("--mst", "--mst-resume", "-n2", ended=12)
    run = killed.finished()
    assert results_of(run) == undisturbed
    assert len(run.plan["resumptions"]) == 3


def test_a_run_of_two_workers_that_is_killed_is_finished_by_two(
    project: EvalProject, undisturbed: Any
) -> None:
    sixty(project)
    killed = Killed(project)
    killed.session("--mst", "-n2", ended=20)
    assert results_of(killed.finished("-n2")) == undisturbed
