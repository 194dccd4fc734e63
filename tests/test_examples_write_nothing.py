"""The servers of the example evals, made to write down what they carry out, as others here do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.plugin.eval_project import EvalProject

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "example_evals"
DRY = ["team-chat.eval.yaml", "team-chat-simulated.eval.yaml", "test_notes.py"]
WITNESS = f"""
import functools
import sys

sys.path.append({str(ROOT)!r})
from tests.witness import executed

add_tool = server.tool


def tool(**given):
    hints = given.get("annotations")
    reads = hints is not None and hints.read_only_hint

    def add(do):
        @functools.wraps(do)
        def done(*args, **kwargs):
            if not reads:
                executed(do.__name__)
            return do(*args, **kwargs)

        return add_tool(**given)(done)

    return add


server.tool = tool
"""


@pytest.fixture
def examples(tmp_path: Path) -> EvalProject:
    """The example evals in a folder of their own, with witnesses."""
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    for name in ("team_chat.py", "notes.py"):
        path = tmp_path / "servers" / name
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        [at] = [n for n, line in enumerate(lines) if line.startswith("server = MCPServer(")]
        path.write_text("".join([*lines[: at + 1], WITNESS, *lines[at + 1 :]]), encoding="utf-8")
    return EvalProject(tmp_path)


def test_no_write_of_an_example_is_carried_out(examples: EvalProject) -> None:
    session = examples.run("--mst", *DRY)
    assert session.code == 0, session.text
    recorded = [one.parents[1].name for one in session.folders if (one / "writes").is_dir()]
    assert len(recorded) == len(session.folders) == len(DRY)


@pytest.mark.lets_writes_through("post_message")
def test_the_witnesses_of_the_examples_speak_up(examples: EvalProject) -> None:
    path = examples.root / "team-chat.eval.yaml"
    text = path.read_text(encoding="utf-8")
    assert "\nwrites: planned\n" in text
    path.write_text(text.replace("\nwrites: planned\n", "\nwrites: {chat: unguarded}\n"))
    session = examples.run("--mst", path.name, "-k", "post-summary")
    assert session.run.writes("post-summary")[0]["unclassified"] is True
