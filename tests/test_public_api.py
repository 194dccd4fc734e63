"""The public names, and what importing the package costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_mst

HEAVY = ("mcp", "pydantic", "anyio", "jsonschema", "yaml", "pytest")
SHOW_IMPORTS = "import sys, json; import pytest_mst; print(json.dumps(sorted(sys.modules)))"


def test_every_public_name_can_be_imported_when_it_is_first_used() -> None:
    assert set(pytest_mst.__all__) == set(pytest_mst._HOMES)
    assert list(pytest_mst.__all__) == sorted(set(pytest_mst.__all__))


@pytest.mark.parametrize("name", pytest_mst.__all__)
def test_a_public_name_is_what_its_home_defines_under_that_name(name: str) -> None:
    found = getattr(pytest_mst, name)
    assert found.__name__ == name
    assert found.__module__ == pytest_mst._HOMES[name]
    assert found.__doc__


def test_type_checkers_see_each_name_come_from_the_same_home() -> None:
    tree = ast.parse(Path(str(pytest_mst.__file__)).read_text("utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pytest_mst.")
        for alias in node.names
    }
    assert seen == pytest_mst._HOMES


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'pytest_mst' has no attribute 'Nonsense'"):
        _ = pytest_mst.Nonsense


def test_importing_the_package_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS], capture_output=True, check=True, timeout=30
    )
    imported = json.loads(done.stdout)
    roots = {name.partition(".")[0] for name in imported}
    assert not roots & set(HEAVY)
    assert [name for name in imported if name.startswith("pytest_mst")] == ["pytest_mst"]
