"""Words that sound like trouble, wherever an attempt may hold them, change no ending."""

from __future__ import annotations

import pytest

from tests.plugin.eval_project import (
    EvalProject,
    Json,
    StoredRun,
    answer,
    call,
    case,
    desk,
    says,
)

WORDS = "429 Too Many Requests: rate limit, network timeout, context length exceeded"
NUMBERS: Json = {"timeout": 5, "max_tokens": 16384, "bytes": 42913, "id": "x-4290-413"}
PLACES = ("answer", "result", "error result", "arguments", "input", "stderr", "refusal")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    """One run with a case for each place, and each of them failed once more by its grader."""
    project = EvalProject(tmp_path_factory.mktemp("words"))
    ok = answer("ok")
    steps = {
        "answer": (call("find"), answer(f"ok {WORDS}")),
        "result": (call("find", query=WORDS), answer("ok {{last.text}}")),
        "error result": (call("fail", why=WORDS), ok),
        "arguments": (call("find", **NUMBERS), ok),
        "input": (call("find"), ok),
        "stderr": (call("moan", words=WORDS), ok),
        "refusal": (call("reject", why=WORDS), ok),
    }
    cases = []
    for place in PLACES:
        one = case(place, *steps[place], trials=2)
        wrong = case(f"{place} wrong", *steps[place], assertions=says("something else"))
        for each in (one, wrong):
            if place == "input":
                each["input"] = f"Say why this came: {WORDS}"
        cases += [one, wrong]
    project.eval(*cases, servers={"desk": desk()})
    session = project.run("--mst", plugins=("mst",))
    assert session.code == 1, session.text
    assert session.run.ledger == {
        "planned": 3 * len(PLACES),
        "graded": 3 * len(PLACES),
        "ungraded": 0,
        "infrastructure": 0,
        "unstarted": 0,
    }
    return session.run


@pytest.mark.parametrize("place", PLACES)
def test_words_in_a_place_leave_a_trial_what_it_is(run: StoredRun, place: str) -> None:
    stored = {one["caseId"]: one for name, one in run.files.items() if name.startswith("traces/")}
    for name, verdict in ((place, "passed"), (f"{place} wrong", "failed")):
        assert run.case(name)["verdict"] == verdict
        for trial in run.case(name)["trials"]:
            assert trial["ending"] == {"kind": "trial"}
        assert stored[name]["infrastructureError"] is False
        assert "error" not in stored[name]
        assert stored[name].get("tries", []) == []


def test_the_words_were_where_they_are_said_to_be(run: StoredRun) -> None:
    stored = {
        one["caseId"]: one["trace"] for name, one in run.files.items() if name.startswith("traces/")
    }
    assert WORDS in stored["answer"]["answer"]
    assert WORDS in str(stored["result"]["events"][0]["output"])
    assert stored["error result"]["events"][0]["isError"] is True
    assert stored["arguments"]["events"][0]["arguments"] == NUMBERS
    assert stored["stderr"]["events"][0]["arguments"] == {"words": WORDS}
    assert "moaned" in str(stored["stderr"]["events"][0]["output"])
