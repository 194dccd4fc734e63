"""What tests of runs that are taken up again share."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.plugin.eval_project import EvalProject, StoredRun

Files = dict[str, tuple[bytes, int]]
"""Files by name, each with its content and its time."""

CONFTEST = """
    import json
    import os
    from pathlib import Path

    import pytest

    from pytest_mst import InfrastructureError

    HERE = Path(__file__).parent

    def state():
        file = HERE / "state"
        return file.read_text() if file.exists() else ""

    async def agent(request):
        request.trace.evidence = "structured"  # it asks no server, and says so itself
        line = json.dumps({"call": "find", "arguments": {"input": request.input}})
        descriptor = os.open(HERE / "desk.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(descriptor, f"{line}\\n".encode())
        os.close(descriptor)
        if "exits" in request.input and "deadly" in state():
            os._exit(9)
        if request.input.startswith("busy") and "mended" not in state():
            raise InfrastructureError("provider", f"a bad hour: {state()}", retryable=True)
        if request.input.startswith("denied") and "fixed" not in state():
            raise InfrastructureError("setup", "grant the permission first", retryable=False)
        await request.tools.call_tool("desk", "find", {})
        return "ok"

    @pytest.fixture(scope="session")
    def mst_client():
        return agent

    @pytest.fixture(scope="session")
    def judged_by():
        return state()
"""
"""A client and a grader that do as a file beside them says."""


def python_project(root: Path, source: str) -> EvalProject:
    """Make a project whose test file gives inputs to that client."""
    project = EvalProject(root)
    project.write("conftest.py", CONFTEST)
    project.eval(file="desk.json")
    project.test_file(source)
    return project


def set_state(project: EvalProject, *words: str) -> None:
    """Say how that client and grader behave from now on."""
    project.write("state", " ".join(words))


def client_inputs(project: EvalProject) -> list[str]:
    """Return the inputs that the client was given, since this was last asked, in any order."""
    given = [line.get("arguments", {}) for line in project.desk_lines]
    project.desk_log.unlink(missing_ok=True)
    return sorted(one["input"] for one in given if "input" in one)


def begun(run: StoredRun) -> Counter[str]:
    """Tell how often the attempts at each case began."""
    return Counter(line["caseId"] for line in run.journal if line["kind"] == "begun")


def changed_files(before: Files, after: Files) -> set[str]:
    """Return the names of files that are not as they were."""
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
