"""What the plugin costs where it is installed and not used."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.plugin.eval_project import EvalProject

LISTING = """
import json, sys
import pytest
code = pytest.main(sys.argv[1:])
print("MODULES " + json.dumps([int(code), sorted(sys.modules)]))
"""
OURS = {
    "pytest_mst",
    "pytest_mst.plugin",
    "pytest_mst.plugin.fixtures",
    "pytest_mst.plugin.hookspecs",
    "pytest_mst.plugin.keys",
    "pytest_mst.plugin.options",
}


def imported(project: EvalProject, *args: str) -> set[str]:
    """Return the modules that a session has imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", LISTING, "-q", *args],
        cwd=project.root,
        env=project.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("MODULES "))
    code, modules = json.loads(line.removeprefix("MODULES "))
    assert code == 0
    return set(modules)


def test_without_mst_the_plugin_imports_exactly_its_entry_modules(project: EvalProject) -> None:
    project.write("test_ordinary.py", "def test_ordinary(): pass\n")
    without = imported(project)
    added = imported(project, "-p", "mst") - without
    assert added == OURS
