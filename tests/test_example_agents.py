"""The example agents, each run as its reader runs it, on a model provider on loopback."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.model_provider import Fail, ModelProvider, Step, Tool, say, use
from tests.npm import NotThereError
from tests.pip import environment
from tests.plugin.eval_project import EvalProject, Session

EXAMPLES = Path(__file__).parents[1] / "example_agents"
PACKAGES = {
    "openai-agents": ("openai-agents==0.24.0",),
    "langchain": ("langchain==1.5.2", "langchain-openai==1.7.4", "langchain-mcp-adapters==0.3.2"),
}
INSTALLED_WITHIN_S = 300.0
FIND = use(Tool("find_notes", {"word": "offsite"}))
DELETE = use(Tool("delete_note", {"title": "offsite"}))
BUSY = Fail(429, "rate", retry_after_s=0.05)

Run = Callable[..., tuple[Session, ModelProvider]]

pytestmark = pytest.mark.timeout(400)  # the first test of an environment installs it


@pytest.fixture(params=["pydantic-ai", "openai-agents", "langchain"])
def agent(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The name of an agent whose packages are in place, in a copy of the folder."""
    name: str = request.param
    ignored = shutil.ignore_patterns("__pycache__", ".mst-results", "venvs")
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True, ignore=ignored)
    if name in PACKAGES:
        cache = getattr(request.config, "cache", None)
        kept = cache.mkdir("agents-from-pip") if cache is not None else None
        root: Path = kept or tmp_path_factory.getbasetemp().parent / "agents-from-pip"
        try:
            made = environment(root / name, PACKAGES[name], within_s=INSTALLED_WITHIN_S)
        except NotThereError as error:
            pytest.skip(str(error))
        (tmp_path / "venvs").mkdir()
        (tmp_path / "venvs" / name).symlink_to(made)
    else:
        pytest.importorskip("pydantic_ai")
    return name


@pytest.fixture
def run(agent: str, tmp_path: Path) -> Run:
    """Runs the agent's eval while a model provider plays a script."""

    def run(script: Sequence[Step], *, forever: bool = False) -> tuple[Session, ModelProvider]:
        project = EvalProject(tmp_path)
        with ModelProvider(script, forever=forever, any_request=False) as provider:
            project.environ |= provider.environment
            session = project.run("--mst", f"{agent}.eval.yaml", within_s=90)
        return session, provider

    return run


def calls_of(trace: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["server"], one["name"]) for one in trace["events"]]


def test_an_agent_acts_on_the_servers_and_answers(agent: str, run: Run) -> None:
    session, provider = run([FIND, DELETE, say("I have deleted it.")])
    assert session.code == 0, session.text
    trace = session.run.trace_file("delete")["trace"]
    assert trace["answer"] == "I have deleted it."
    assert calls_of(trace) == [("notes", "find_notes"), ("notes", "delete_note")]
    assert trace["evidence"] == ("structured" if agent == "langchain" else "observed")
    assert [one["tool"] for one in session.run.writes("delete")] == ["delete_note"]
    assert "Lisbon" in provider.asked[1].text


def test_a_model_that_is_too_busy_is_a_failure_of_the_provider_and_the_record_stays(
    agent: str, run: Run
) -> None:
    session, provider = run([DELETE, BUSY], forever=True)
    assert session.code == 10, session.text
    ending = session.run.ending("delete")
    assert (ending["broke"], ending["retryable"]) == ("provider", True)
    assert "rate limit (HTTP 429)" in ending["reason"]
    assert [one["tool"] for one in session.run.writes("delete")] == ["delete_note"]
    assert len(provider.asked) > 1


def test_a_key_that_is_refused_stops_the_variant(agent: str, run: Run) -> None:
    session, _ = run([Fail(401, "auth")], forever=True)
    ending = session.run.ending("delete")
    assert (ending["broke"], ending["retryable"]) == ("provider", False)
    assert ending["scope"] == "variant"
