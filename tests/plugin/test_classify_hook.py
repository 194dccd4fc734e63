"""The hook that says what a failure means."""

from __future__ import annotations

import json
from typing import Any

from tests.plugin.eval_project import EvalProject, answer, call, case
from tests.plugin.test_stop_errors import states, stops

OK = answer("ok")
HOOK = """
import json, threading
from pytest_mst import FailureClass

def pytest_mst_classify_failure(phase, text, exception):
    main = threading.current_thread() is threading.main_thread()
    with open({log!r}, "a") as file:
        asked = [phase, text, type(exception).__name__, main]
        file.write(json.dumps(asked) + "\\n")
    if "unpaid" in text:
        return {{"retryable": False, "reason": "pay the bill"}}
    if "unplugged" in text:
        return FailureClass(scope="variant")
    if "puzzle" in text:
        raise RuntimeError("no idea")
    if "riddle" in text:
        return {{"scope": "world"}}
    if "narrow" in text:
        return {{"scope": "trial"}}
"""


def fails(reason: str, **more: Any) -> dict[str, Any]:
    return {"fail": {"broke": "provider", "reason": reason, **more}}


def hook(project: EvalProject, folder: str = "") -> None:
    project.write(f"{folder}conftest.py", HOOK.format(log=str(project.root / "asked.jsonl")))


def asked(project: EvalProject) -> list[list[Any]]:
    path = project.root / "asked.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_answers_change_failures_and_nothing_else(project: EvalProject) -> None:
    hook(project)
    project.eval(
        case("fine", call("fail"), OK),
        case("errors", {"error": "unpaid"}),
        case("limit", call("find"), OK, {"stop": "turns"}),
        case("unpaid", fails("unpaid")),
        case("plain", fails("busy")),
        case("puzzle", fails("a puzzle")),
        case("riddle", fails("a riddle")),
        case("narrow", fails("narrow, so they say", scope="run")),
        case("later", OK),
    )
    session = project.run("--mst", "--mst-concurrency", "1")
    assert session.code == 1, session.text  # the client that errored
    assert "INTERNALERROR" not in session.text
    run = session.run
    texts = [text for _, text, _, _ in asked(project)]
    assert texts == ["unpaid", "busy", "a puzzle", "a riddle", "narrow, so they say"]
    assert {one[2] for one in asked(project)} == {"InfrastructureError"}
    assert {(one[0], one[3]) for one in asked(project)} == {("client", False)}
    for trial in ("fine", "errors", "limit", "later"):
        assert run.ending(trial)["kind"] == "trial"
    said = {"kind": "infrastructure", "broke": "provider", "scope": "trial", "retryable": True}
    assert run.ending("unpaid") == {**said, "reason": "pay the bill", "retryable": False}
    assert "pay the bill" in session.out
    assert run.ending("plain") == {**said, "reason": "busy"}
    assert run.ending("narrow") == {**said, "reason": "narrow, so they say"}
    no_use = "(pytest_mst_classify_failure was of no use: "
    puzzle = run.ending("puzzle")
    assert "RuntimeError: no idea" in puzzle.pop("detail")
    assert puzzle == {**said, "reason": f"a puzzle {no_use}RuntimeError: no idea)"}
    riddle = run.ending("riddle")
    assert "ValueError" in riddle.pop("detail")
    assert riddle["reason"].startswith(f"a riddle {no_use}ValueError: scope is 'world'; valid: ")
    assert f"a riddle {no_use}" in session.out
    assert "stops" not in run.plan


def test_an_answer_can_widen_a_failure_to_a_gate_in_every_process(project: EvalProject) -> None:
    hook(project)
    client = {"clientOptions": {"script": [fails("unplugged")]}}
    bare = [{"id": f"c{n}", "input": "x", "assertions": {"containsText": "ok"}} for n in range(6)]
    project.eval(
        *bare, variants=[{"name": "a", **client}, {"name": "b", "clientOptions": {"script": [OK]}}]
    )
    session = project.run("--mst", "-n", "2", "--mst-concurrency", "2")
    assert session.code == 10, session.text
    run = session.run
    by_variant = {one["name"]: one["ledger"] for one in run.summary["variants"]}
    assert by_variant["b"]["graded"] == 6
    assert 1 <= by_variant["a"]["infrastructure"] <= 2  # each process may have had one under way
    assert by_variant["a"]["unstarted"] >= 4
    assert stops(run) == [("variant", "a", "unplugged")]
    assert session.out.count("stopped: variant a: unplugged (@") == 1


def test_failures_of_fixtures_and_bodies_are_asked_about_too(project: EvalProject) -> None:
    hook(project)
    project.eval(case("unused", OK))
    project.test_file(
        """
        CASE = pytest.mark.mst(input="x", config="desk.eval.json")

        @pytest.fixture
        def base():
            raise KeyError("no base, unpaid")

        @CASE
        async def test_fixture(base, mst):
            pass

        @CASE
        async def test_body(mst):
            raise KeyError("no body")

        @CASE
        async def test_later_fixture(mst, base):
            pass

        @CASE
        async def test_widens(mst):
            raise KeyError("unplugged")

        @CASE
        async def test_last(mst):
            pass
        """
    )
    session = project.run("--mst", "test_evals.py")
    assert session.code == 10, session.text
    run = session.run
    assert [(phase, error) for phase, _, error, _ in asked(project)] == [
        ("setup", "KeyError"),
        ("body", "KeyError"),
        ("setup", "KeyError"),
        ("body", "KeyError"),
    ]
    assert not any(on_main_thread for *_, on_main_thread in asked(project))
    assert run.ending("test_fixture")["reason"] == "pay the bill"
    assert run.ending("test_widens")["scope"] == "variant"
    assert states(run)["last-default"] == "-"


def test_a_conftest_is_asked_about_what_lies_below_it(project: EvalProject) -> None:
    hook(project, "below/")
    project.eval(case("one", fails("unpaid")), name="below", file="below/below.eval.json")
    project.eval(case("one", fails("unpaid")), name="beside", file="beside/beside.eval.json")
    session = project.run("--mst")
    assert session.run_of("below").ending("one")["reason"] == "pay the bill"
    assert session.run_of("beside").ending("one")["reason"] == "unpaid"
    assert len(asked(project)) == 1


def test_without_mst_a_conftest_may_have_the_hook(project: EvalProject) -> None:
    hook(project)
    project.write("test_ordinary.py", "def test_ordinary(): pass\n")
    session = project.run("test_ordinary.py")
    assert session.code == 0, session.text
    assert asked(project) == []
