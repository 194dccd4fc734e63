"""One eval, run in every way there is, comes to the same."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Session,
    StoredRun,
    answer,
    call,
    case,
    claim,
    hidden,
    junit_cases,
    write,
)

OK = answer("ok")
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "serial": ((), ("mst", "xdist")),
    "no xdist": ((), ("mst", "no:xdist")),
    "one at a time": (("--mst-concurrency", "1"), ("mst", "xdist")),
    "32 at a time": (("--mst-concurrency", "32"), ("mst", "xdist")),
    "2 processes": (("-n", "2"), ("mst", "xdist")),
}
VOLATILE = {
    *("runId", "createdAt", "finishedAt", "timestamp", "startedAt", "durationMs", "locator"),
    *("trialId", "time", "at", "path", "worker", "detail"),
}
TESTS = """
@pytest.mark.mst(input="Do it", config="desk.eval.json", trials=3)
@pytest.mark.writes(server="desk", tool="post")
@pytest.mark.parametrize("word", ["a", "b"])
def test_posts(trial, word):
    assert trial.writes.one("post").arguments["word"] == "a", word
    assert trial.number < 2 or word == "b"

@pytest.mark.mst(config="desk.eval.json")
def test_by_hand(dry_run_proxy, write_record):
    dry_run_proxy.call("desk", "tag", {"name": "x"})
    write_record.one("tag")
"""


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Session, EvalProject]]:
    """One eval and one test file, run in each way."""
    done = {}
    for way, (args, plugins) in WAYS.items():
        project = EvalProject(tmp_path_factory.mktemp("same"))
        project.eval(
            case("passes", call("find"), OK, trials=5),
            case("posts", call("post", to="#a"), OK, expected={"writes": [write("post")]}),
            case("fails", answer("no"), trials=3),
            case("lies", claim("post"), OK, trials=2, expected={"writes": []}),
            case("hides", hidden("post"), OK, trials=2, expected={"writes": []}),
            case("breaks", {"fail": {"broke": "provider", "reason": "busy"}}, trials=2),
            case("tolerates", options={}, trials=4, passThreshold=0.5),
            case("skipped", OK, skip="not now"),
            client="scripted",
            clientOptions={},
        )
        path = project.root / "desk.eval.json"
        config = json.loads(path.read_text())
        config["cases"][6]["clientOptions"] = {"scripts": [[OK], [answer("no")]]}
        config["clientOptions"] = {"script": [call("post", word="a"), OK]}
        for one in config["cases"]:
            if "scripts" in one["clientOptions"]:
                one["clientOptions"]["script"] = None
        path.write_text(json.dumps(config))
        project.test_file(TESTS)
        session = project.run("--mst", "--junitxml=junit.xml", *args, plugins=plugins)
        done[way] = (session, project)
    return done


def test_the_exit_code_is_the_same(sessions: dict[str, tuple[Session, EvalProject]]) -> None:
    assert {way: session.code for way, (session, _) in sessions.items()} == dict.fromkeys(WAYS, 1)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "serial"])
@pytest.mark.parametrize("name", ["desk", "test_evals"])
def test_the_stored_run_is_the_same(
    sessions: dict[str, tuple[Session, EvalProject]], way: str, name: str
) -> None:
    expected = _comparable(sessions["serial"][0].run_of(name))
    assert _comparable(sessions[way][0].run_of(name)) == expected


@pytest.mark.parametrize("way", list(WAYS))
def test_the_server_gets_the_same_calls(
    sessions: dict[str, tuple[Session, EvalProject]], way: str
) -> None:
    assert sessions[way][1].desk_calls == ["find"] * 5


@pytest.mark.parametrize("way", list(WAYS))
def test_junit_has_each_case_once(
    sessions: dict[str, tuple[Session, EvalProject]], way: str
) -> None:
    _, project = sessions[way]
    found = junit_cases(project.root / "junit.xml")
    assert {re.split(r"[.:]+", name)[-2]: how for name, how in found.items() if "desk" in name} == {
        "passes": "passed",
        "posts": "passed",
        "fails": "failure",
        "lies": "failure",
        "hides": "failure",
        "breaks": "error",
        "tolerates": "passed",
        "skipped": "skipped",
    }
    python = {name.partition("::")[2]: how for name, how in found.items() if "desk" not in name}
    assert python == {
        "test_posts[a]": "failure",
        "test_posts[b]": "passed",
        "test_by_hand": "passed",
    }


@pytest.mark.parametrize("way", list(WAYS))
def test_the_closing_block_is_the_same(
    sessions: dict[str, tuple[Session, EvalProject]], way: str
) -> None:
    out = sessions[way][0].out
    assert "planned 19 = graded 17 + ungraded 0 + infrastructure 2 + unstarted 0" in out
    assert "pass rate 50% (3 of 6 complete cases; 1 incomplete left out)" in out
    assert out.count("run 20") == 2


def _comparable(run: StoredRun) -> dict[str, Any]:
    """Return everything a run has on disk, less what differs from run to run."""
    files = {name: _less(content) for name, content in run.files.items()}
    files["journal.jsonl"] = sorted(
        json.dumps(line, sort_keys=True) for line in files["journal.jsonl"]
    )
    return files


def _less(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _less(value) for name, value in content.items() if name not in VOLATILE}
    if isinstance(content, list):
        return [_less(value) for value in content]
    return re.sub(r"@[a-z2-9]{8}", "@", content) if isinstance(content, str) else content
