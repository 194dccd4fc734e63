"""How evals end that do not pass: each as the README shows it."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import EvalProject


def test_a_failing_eval_says_what_was_expected_and_what_came_nearest(showcase: EvalProject) -> None:
    session = showcase.run("--mst", "failing.eval.yaml")
    assert session.code == 1
    assert session.has(
        "planned 8 = graded 8 + ungraded 0 + infrastructure 0 + unstarted 0",
        "pass rate 25% (1 of 4 complete cases; 0 incomplete left out), lowest evidence: requested",
    )
    assert session.run.verdicts == {
        "posts-in-the-wrong-channel": "failed",
        "posts-what-it-was-to-draft": "failed",
        "right-two-times-of-three": "failed",
        "right-often-enough": "passed",
    }
    (reason,) = session.run.case("posts-in-the-wrong-channel")["reasons"]
    assert 'at arguments.channel expected string "#team", found string "#releases"' in reason
    assert session.run.case("right-often-enough")["passRate"] == pytest.approx(2 / 3)


def test_a_client_that_lies_about_a_write_fails(showcase: EvalProject) -> None:
    session = showcase.run("--mst", "dishonest.eval.yaml")
    assert session.code == 1
    trial = session.run.trial("says-it-posted")
    assert session.run.writes("says-it-posted") == []
    assert [write["tool"] for write in trial["unrecordedWrites"]] == ["post_message"]
    assert {
        grader.partition("-")[0]: score["pass"] for grader, score in trial["scores"].items()
    } == {
        "containsText": True,
        "toolsTriggered": True,
        "writes": False,
    }


def test_a_client_that_hides_a_write_fails(showcase: EvalProject) -> None:
    run = showcase.run("--mst", "dishonest.eval.yaml").run
    trial = run.trial("keeps-quiet-about-a-channel")
    (entry,) = run.writes("keeps-quiet-about-a-channel")
    assert (entry["tool"], entry["mode"]) == ("create_channel", "simulated")
    assert [write["tool"] for write in trial["unreportedWrites"]] == ["create_channel"]
    assert trial["verdict"] == "failed"


def test_what_breaks_around_an_attempt_is_never_the_clients_failure(showcase: EvalProject) -> None:
    names = ("broken", "hanging", "no-server")
    session = showcase.run("--mst", *(f"{name}.eval.yaml" for name in names))
    assert session.code == 10
    runs = {name: session.run_of(name) for name in names}
    assert runs["broken"].ledger == {
        "planned": 7,
        "graded": 2,
        "ungraded": 0,
        "infrastructure": 5,
        "unstarted": 0,
    }
    assert runs["broken"].verdicts.pop("sound") == "passed"
    endings = {
        case["id"]: (case["verdict"], ending["broke"], ending["retryable"])
        for run in runs.values()
        for case in run.results["cases"]
        for ending in [case["trials"][0]["ending"]]
        if ending["kind"] == "infrastructure"
    }
    assert endings == {
        "client-app": ("incomplete", "client-app", True),
        "workspace": ("incomplete", "workspace", True),
        "network": ("incomplete", "network", True),
        "provider": ("incomplete", "provider", False),
        "collection": ("incomplete", "collection", True),
        "deadline": ("incomplete", "deadline", True),
        "setup": ("incomplete", "setup", True),
    }


def test_without_its_judge_a_trial_stays_ungraded_unless_code_fails_it(
    showcase: EvalProject,
) -> None:
    session = showcase.run("--mst", "ungraded.eval.yaml")
    assert session.code == 1
    assert session.run.verdicts == {
        "no-judge-here": "incomplete",
        "decided-without-it": "failed",
    }
    assert session.run.trial("no-judge-here")["verdict"] == "ungraded"
    assert session.has("planned 2 = graded 1 + ungraded 1 + infrastructure 0 + unstarted 0")


def test_a_run_that_is_stopped_keeps_what_was_cut_short_and_what_never_began(
    showcase: EvalProject,
) -> None:
    session = showcase.run("--mst", "interrupted.py", "--mst-concurrency", "1")
    assert session.code == 2
    assert session.has("planned 3 = graded 0 + ungraded 0 + infrastructure 1 + unstarted 2")
    cut_short, *never_began = session.run.case("test_hello")["trials"]
    assert (cut_short["ending"]["broke"], cut_short["ending"]["retryable"]) == ("collection", True)
    assert [trial["ending"] for trial in never_began] == [None, None]


@pytest.mark.parametrize(
    ("name", "line", "way_out"),
    [
        pytest.param("refused", "refused.eval.yaml:5 (writes):", "add `chat: planned`", id="mode"),
        pytest.param("misspelt", "misspelt.eval.yaml:2 (tirals):", '"trials"?', id="key"),
    ],
)
def test_what_is_refused_is_one_message_and_nothing_runs(
    showcase: EvalProject, name: str, line: str, way_out: str
) -> None:
    session = showcase.run("--mst", f"{name}.eval.yaml")
    assert session.code == 4
    assert line in session.err
    assert way_out in session.err
    assert "Traceback" not in session.text
    assert session.folders == ()
