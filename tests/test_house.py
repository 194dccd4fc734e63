"""The rules of the house that no linter knows: sizes, names, and where all errors are caught."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULE_LINES = 500
FUNCTION_LINES = 60
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
"""Names that say nothing of what is in a module."""
CATCHES_ALL = {
    "pytest_mst/attempt/classify.py": {"classified"},
    "pytest_mst/attempt/collect.py": {"_act", "ending_of"},
    "pytest_mst/attempt/function_judge.py": {"_called"},
    "pytest_mst/attempt/judging.py": {"ask"},
    "pytest_mst/plugin/crew.py": {"_one"},
    "pytest_mst/proxy/relay_front.py": {"_let_in"},
    "pytest_mst/proxy/upstream.py": {"serve"},
}
"""Around one attempt, around one judge of it, and at the proxy's request boundary: where whatever
is raised ends that one attempt, grade or connection, and nothing else."""
PRIVATE_PYTEST = "pytest_mst/plugin/pytest_private.py"

MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("pytest_mst", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
PACKAGE = [module for module in MODULES if module.startswith("pytest_mst/")]


@cache
def tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_bytes(), module)


def functions(module: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_there_is_something_to_check() -> None:
    assert len(PACKAGE) > 50
    assert len(MODULES) > len(PACKAGE)


def test_modules_are_short() -> None:
    long = {
        module: length
        for module in MODULES
        if (length := len((ROOT / module).read_bytes().splitlines())) > MODULE_LINES
    }
    assert not long, f"longer than {MODULE_LINES} lines"


def test_functions_are_short() -> None:
    long = {
        f"{module}:{one.lineno} {one.name}": length
        for module in MODULES
        for one in functions(module)
        if (length := (one.end_lineno or one.lineno) - one.lineno + 1) > FUNCTION_LINES
    }
    assert not long, f"longer than {FUNCTION_LINES} lines"


def test_modules_are_named_for_what_is_in_them() -> None:
    assert not [module for module in MODULES if EMPTY_NAMES & {*Path(module).with_suffix("").parts}]


def test_everything_is_caught_only_around_an_attempt_and_at_the_proxys_boundary() -> None:
    found = {module: set(swallowing(module)) for module in PACKAGE}
    assert {module: names for module, names in found.items() if names} == CATCHES_ALL


def test_private_names_of_pytest_are_imported_in_one_module() -> None:
    importing = [
        module
        for module in MODULES
        if any(name.partition(".")[0] == "_pytest" for name in imported(module))
    ]
    assert importing == [PRIVATE_PYTEST]


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("try: x\nexcept: y", True),
        ("try: x\nexcept Exception: y", True),
        ("try: x\nexcept (ValueError, BaseException) as e: y", True),
        ("try: x\nexcept builtins.Exception: raise ValueError", True),
        ("try: x\nexcept Exception:\n  if y: raise", True),
        ("with suppress(Exception): x", True),
        ("with contextlib.suppress(KeyError, BaseException): x", True),
        ("try: x\nexcept BaseException:\n  y\n  raise", False),
        ("try: x\nexcept ValueError: y", False),
        ("with suppress(OSError): x", False),
    ],
)
def test_the_search_for_what_catches_everything_finds_it(code: str, *, found: bool) -> None:
    nodes = list(ast.walk(ast.parse(code)))
    assert any(is_swallowing(node) for node in nodes) is found


def swallowing(module: str) -> Iterator[str]:
    """Name the functions that keep whatever is raised to themselves."""
    outside = set(ast.walk(tree(module)))
    for function in functions(module):
        inside = set(ast.walk(function))
        outside -= inside
        nested = {node for one in functions_in(function) for node in ast.walk(one)}
        if any(is_swallowing(node) for node in inside - nested):
            yield function.name
    if any(is_swallowing(node) for node in outside):
        yield module


def functions_in(function: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if node is not function and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_swallowing(node: ast.AST) -> bool:
    """Tell whether a handler catches everything and does not end by raising it again."""
    match node:
        case ast.ExceptHandler(type=caught, body=[*_, last]):
            raises_again = isinstance(last, ast.Raise) and last.exc is None
            return not raises_again and (caught is None or is_broad(caught))
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=caught):
            return any(is_broad(one) for one in caught)
        case _:
            return False


def is_broad(caught: ast.expr) -> bool:
    match caught:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in ("Exception", "BaseException")
        case ast.Tuple(elts=several):
            return any(is_broad(one) for one in several)
        case _:
            return False


def imported(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name
            case _:
                pass
