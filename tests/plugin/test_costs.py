"""What models cost: in the closing block, in the stored run, and as a limit of a session."""

from __future__ import annotations

import pytest

from tests.model_provider.asked import Asked
from tests.model_provider.server import ModelProvider
from tests.model_provider.steps import Step, Tool, say, use
from tests.plugin.eval_project import EvalProject, StoredRun, answer, case, says
from tests.plugin.judge_models import graded

PRICING = {
    "claude-loopback": {"input": 100_000, "output": 0},
    "gpt-loopback": {"input": 50_000, "output": 0},
}
"""One dollar for ten tokens of input, which is what the loopback provider counts for a request."""
ASKS = {"input": "Say ok", "assertions": says("ok"), "client": "mst"}


def test_what_clients_and_judges_cost_is_said_and_stored_apart(project: EvalProject) -> None:
    judge = {"type": "rubric", "model": "gpt-loopback"}

    def script(asked: Asked) -> Step:
        if asked.model == "gpt-loopback":
            return graded(1)
        return say("ok")

    project.eval(
        {"id": "asks", **ASKS}, model="claude-loopback", judges=[judge], pricing=PRICING, trials=2
    )
    with ModelProvider(script) as provider:
        project.environ |= provider.environment
        session = project.run("--mst")
    assert "cost $" in session.text, session.text
    assert "clients $2.00" in session.text
    summary = session.run.summary
    assert summary["costUsd"] == pytest.approx(2 + summary["judgeCostUsd"])
    assert summary["variants"][0]["costUsd"] == summary["costUsd"]
    usage = session.run.trace_file("asks")["trace"]["usage"]
    assert (usage["costUsd"], usage["costSource"]) == (1.0, "pricing")


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_session_that_has_spent_what_it_may_begins_no_other_attempt(
    project: EvalProject, workers: tuple[str, ...]
) -> None:
    cases = [{"id": f"c{number}", **ASKS} for number in range(8)]
    project.eval(*cases, model="claude-loopback", pricing=PRICING)
    with ModelProvider([say("ok")], forever=True) as provider:
        project.environ |= provider.environment
        session = project.run("--mst", "--mst-max-cost", "3", "--mst-concurrency", "2", *workers)
        first = session.run
        made = first.ledger["graded"]
        assert session.code == 10, session.text
        assert 3 <= made <= 6
        assert first.ledger["unstarted"] == 8 - made
        assert "--mst-max-cost is $3" in session.text
        finished = project.run("--mst", "--mst-resume")
    assert finished.code == 0, finished.text
    last = StoredRun(first.folder)
    assert last.ledger["graded"] == 8
    assert len(provider.asked) == 8
    assert last.summary["costUsd"] == pytest.approx(8.0)


def test_an_amount_that_is_none_is_refused(project: EvalProject) -> None:
    project.eval(case("c", answer("ok"), assertions=says("ok")))
    for wrong in ("0", "-1", "much", "nan"):
        session = project.run("--mst", f"--mst-max-cost={wrong}")
        assert session.code == 4
        assert "an amount in USD above 0" in session.text


def test_where_no_model_is_asked_nothing_is_said_of_costs(project: EvalProject) -> None:
    project.eval(case("c", answer("ok"), assertions=says("ok")))
    session = project.run("--mst", "--mst-max-cost", "1")
    assert session.code == 0, session.text
    assert "cost" not in session.text.replace("--mst-max-cost", "")
    assert "costUsd" not in session.run.summary


def test_a_key_of_a_provider_is_in_no_file_and_no_output(project: EvalProject) -> None:
    key = "sk-very-secret-value-0001"

    def script(asked: Asked) -> Step:
        if asked.turn == 0:
            return use(Tool("post", {"channel": "#team", "text": f"the key is {key}"}))
        return say(f"ok, and the key is {key}")

    project.eval({"id": "asks", **ASKS}, model="claude-loopback")
    with ModelProvider(script) as provider:
        project.environ |= provider.environment | {"ANTHROPIC_API_KEY": key}
        session = project.run("--mst")
    assert session.run.ledger["graded"] == 1, session.text
    assert key not in session.text
    files = [path for path in project.root.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if key.encode() in path.read_bytes()]
