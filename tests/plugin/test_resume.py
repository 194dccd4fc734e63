"""A run that is taken up again: what is there is kept, what is not is made, and it is said."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.plugin.eval_project import EvalProject, Session, StoredRun
from tests.plugin.resumed import (
    Files,
    begun,
    changed_files,
    client_inputs,
    python_project,
    set_state,
)

SIX = """
    def mst_case(text, **more):
        return pytest.mark.mst(input=text, config="desk.json", **more)

    @mst_case("a")
    def test_a(trial): assert trial.answer == "ok"

    @mst_case("b")
    def test_b(trial): assert trial.answer == "ok"

    @mst_case("busy one")
    def test_busy(trial): assert trial.answer == "ok"

    @mst_case("busy two")
    def test_busier(trial): assert trial.answer == "ok"

    @mst_case("denied")
    def test_denied(trial): assert trial.answer == "ok"

    @mst_case("ungraded")
    def test_ungraded(trial, judged_by):
        assert trial.answer == "ok"
        if "mended" not in judged_by:
            raise KeyError("grader")
"""


@dataclass
class Story:
    """A run of six that is taken up three times, and what there was after each session."""

    project: EvalProject
    sessions: dict[str, Session] = field(default_factory=dict)
    runs: dict[str, StoredRun] = field(default_factory=dict)
    files: dict[str, Files] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)

    def tell(self, name: str, *options: str) -> Session:
        session = self.project.run(*options)
        self.sessions[name] = session
        folders = session.folders or self.sessions["first"].folders
        self.runs[name] = StoredRun(folders[0])
        self.files[name] = self.project.attempts(self.runs[name])
        self.inputs[name] = client_inputs(self.project)
        return session


@pytest.fixture(scope="module", params=[(), ("-n2",)], ids=["serial", "two workers"])
def six(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Story:
    workers: tuple[str, ...] = request.param
    story = Story(python_project(tmp_path_factory.mktemp("six"), SIX))
    first = story.tell("first", "--mst", *workers)
    set_state(story.project, "mended")
    resumed = story.tell("resumed", *first.finish_with, *workers)
    set_state(story.project, "mended", "fixed")
    fixed = story.tell("fixed", *resumed.finish_with, *workers)
    assert "finish it with" not in fixed.out, fixed.text
    return story


def test_a_first_run_with_every_reason_to_be_taken_up_says_so(six: Story) -> None:
    assert six.sessions["first"].code == 10, six.sessions["first"].text
    assert six.runs["first"].ledger == {
        "planned": 6,
        "graded": 2,
        "ungraded": 1,
        "infrastructure": 3,
        "unstarted": 0,
    }
    assert len(six.inputs["first"]) == 6
    assert "--mst-fixed" not in six.sessions["first"].finish_with


def test_a_run_collects_what_a_retry_can_help_and_grades_what_was_not_graded(six: Story) -> None:
    session, run = six.sessions["resumed"], six.runs["resumed"]
    assert session.code == 10, session.text
    assert session.taken_up == [(3, 2, 1, 1)]
    assert six.inputs["resumed"] == ["busy one", "busy two"]
    assert run.ledger == {
        "planned": 6,
        "graded": 5,
        "ungraded": 0,
        "infrastructure": 1,
        "unstarted": 0,
    }
    assert begun(run) == {
        **dict.fromkeys(("test_a", "test_b", "test_denied", "test_ungraded"), 1),
        **dict.fromkeys(("test_busy", "test_busier"), 2),
    }


def test_what_is_kept_has_the_same_bytes_and_times(six: Story) -> None:
    changed = changed_files(six.files["first"], six.files["resumed"])
    cases = {name.split("/")[-2] for name in changed}
    assert cases == {"test_busy", "test_busier", "test_ungraded"}
    ungraded = "traces/default/test_ungraded/0.json"
    before, after = (json.loads(six.files[at][ungraded][0]) for at in ("first", "resumed"))
    for one in (before, after):
        one.pop("gradingError", None)
        one.pop("graderFailures", None)
    assert before == after  # its ending, trace and times are what they were


def test_what_nothing_but_a_fix_can_help_is_listed_with_what_to_fix(six: Story) -> None:
    [line] = [one for one in six.sessions["resumed"].out.splitlines() if one.startswith("kept ")]
    locator = six.runs["resumed"].trial("test_denied")["locator"]
    fix = f"setup: grant the permission first (test_denied {locator})"
    assert line.endswith(f"cannot be helped 1: {fix}")
    assert "--mst-fixed" in six.sessions["resumed"].finish_with


def test_what_was_fixed_is_collected_too_and_then_nothing_is_left(six: Story) -> None:
    session, run = six.sessions["fixed"], six.runs["fixed"]
    assert session.code == 0, session.text
    assert session.taken_up == [(5, 1, 0, 0)]
    assert six.inputs["fixed"] == ["denied"]
    assert changed_files(six.files["resumed"], six.files["fixed"]) == {
        "traces/default/test_denied/0.json",
        "scores/body/default/test_denied/0.json",
    }
    assert set(run.verdicts.values()) == {"passed"}
    assert (run.folder.parents[1] / "latest.json").is_file()


def test_failures_that_were_replaced_stay_countable(six: Story) -> None:
    run = six.runs["fixed"]
    for name in ("test_busy", "test_busier"):
        assert [one["broke"] for one in run.trial(name)["replaced"]] == ["provider"]
    assert [one["broke"] for one in run.trial("test_denied")["replaced"]] == ["setup"]
    assert "replaced" not in run.trial("test_a")
    assert run.summary["replaced"] == {"provider": 2, "setup": 1}
    assert six.sessions["fixed"].has(
        "replaced 3 earlier goes: 2 provider, 1 setup (kept in superseded/)"
    )
    assert [one["kind"] for one in run.plan["resumptions"]] == ["resume"] * 2


def test_every_case_has_a_row_in_every_session(six: Story) -> None:
    assert "2 passed, 4 incomplete" in six.sessions["first"].out
    assert "5 passed, 1 incomplete" in six.sessions["resumed"].out
    assert "6 passed" in six.sessions["fixed"].out


def test_each_of_several_earlier_goes_is_kept_and_shown(tmp_path: Path) -> None:
    project = python_project(
        tmp_path,
        """
        @pytest.mark.mst(input="busy", config="desk.json")
        def test_busy(trial): assert trial.answer == "ok"
        """,
    )
    set_state(project, "first")
    session = project.run("--mst")
    folder = session.run.folder
    set_state(project, "second")
    again = project.run(*session.finish_with)
    assert again.taken_up == [(0, 1, 0, 0)]
    assert "replaced 1 earlier go: 1 provider (kept in superseded/)" in again.out
    set_state(project, "mended")
    last = project.run(*again.finish_with)
    assert (last.code, last.taken_up) == (0, [(0, 1, 0, 0)])
    trial = StoredRun(folder).trial("test_busy")
    reasons = [one["reason"] for one in trial["replaced"]]
    assert reasons == ["a bad hour: first", "a bad hour: second"]
    assert "replaced 2 earlier goes: 2 provider (kept in superseded/)" in last.out
    shown = subprocess.run(
        [sys.executable, "-m", "pytest_mst", "show", trial["locator"]],
        cwd=project.root,
        env=project.environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert shown.index("a bad hour: first") < shown.index("a bad hour: second")


@pytest.mark.parametrize("dist", ["load"])
def test_a_worker_that_dies_in_a_resumption_makes_nothing_twice(tmp_path: Path, dist: str) -> None:
    project = python_project(
        tmp_path,
        """
        @pytest.mark.parametrize("n", range(10))
        @pytest.mark.mst(input="busy", config="desk.json")
        def test_busy(trial, n): assert trial.answer == "ok"

        @pytest.mark.mst(input="busy exits", config="desk.json")
        def test_exits(trial): assert trial.answer == "ok"

        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.mst(input="busy", config="desk.json")
        def test_later(trial, n): assert trial.answer == "ok"
        """,
    )
    run = project.run("--mst").run
    assert run.ledger["infrastructure"] == 15
    set_state(project, "mended", "deadly")
    workers = ("-n2", "--dist", dist, "--mst-concurrency", "6")
    session = project.run("--mst", "--mst-resume", *workers)
    assert session.code == 10, session.text
    assert session.taken_up == [(0, 15, 0, 0)]
    after = StoredRun(run.folder)
    assert set(begun(after).values()) == {2}, session.text
    assert after.ledger["unstarted"] == 0
    assert after.ledger["ungraded"] <= 2  # whose bodies the workers died in
    for case in after.results["cases"]:
        [trial] = case["trials"]
        assert [one["broke"] for one in trial["replaced"]] == ["provider"], case["id"]
        if trial["ending"]["kind"] == "infrastructure":
            assert trial["ending"]["broke"] == "collection"
    assert after.verdicts["test_exits"] == "incomplete"
    assert 1 <= after.ledger["infrastructure"] <= 6
    set_state(project, "mended")
    last = project.run(*session.finish_with)
    assert (last.code, StoredRun(run.folder).ledger["graded"]) == (0, 15), last.text
