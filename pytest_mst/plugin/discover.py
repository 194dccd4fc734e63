"""Which eval configs a session selects, known before anything is collected.

The load check has to come first, so the folders that pytest will walk are walked here, by the
same settings (`norecursedirs`, `--ignore`, `--ignore-glob`). Eval configs that a marked test
names are read from the text of the test file, since importing it is collection's job.
"""

from __future__ import annotations

import ast
import fnmatch
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_mst.plugin.options import EVAL_SUFFIXES


@dataclass(frozen=True, slots=True)
class Selected:
    """The eval configs of a session."""

    evals: tuple[Path, ...]
    """Files that are collected as evals."""
    named: tuple[Path, ...]
    """Files that marked tests name as their config, and that exist."""
    looked_in: tuple[Path, ...]


def is_eval_file(path: Path) -> bool:
    """Tell whether a file is an eval config by its name."""
    return path.name.endswith(EVAL_SUFFIXES)


def is_met_in_loop(path: Path) -> bool:
    """Tell whether a link on the way to a file leads back to a folder above itself."""
    folders = [os.path.realpath(folder) for folder in path.parents]
    return len(set(folders)) < len(folders)


def selected_evals(config: pytest.Config) -> Selected:
    """Find the eval configs that the session's arguments select."""
    starts = starts_of(config)
    evals: dict[Path, None] = {}
    named: dict[Path, None] = {}
    patterns = config.getini("python_files")
    for start in starts:
        given = start.is_file()
        for path in [start] if given else _walk(start, _Ignored(config)):
            if is_eval_file(path):
                evals[path] = None
            elif path.suffix == ".py" and (
                given or any(fnmatch.fnmatch(path.name, pattern) for pattern in patterns)
            ):
                named.update(dict.fromkeys(_named_configs(path)))
    return Selected(tuple(evals), tuple(path for path in named if path not in evals), starts)


def starts_of(config: pytest.Config) -> tuple[Path, ...]:
    """Return the files and folders that the session's arguments name."""
    base = config.invocation_params.dir
    paths = [base / str(arg).split("::", 1)[0] for arg in config.args]
    return tuple(dict.fromkeys(Path(os.path.normpath(path)) for path in paths))


class _Ignored:
    """The folders and files that pytest would not go into."""

    def __init__(self, config: pytest.Config) -> None:
        base = config.invocation_params.dir
        self._folders = list(config.getini("norecursedirs"))
        self._paths = {
            Path(os.path.normpath(base / path)) for path in config.getoption("ignore") or ()
        }
        self._globs = [str(base / glob) for glob in config.getoption("ignore_glob") or ()]

    def folder(self, path: Path) -> bool:
        if any(fnmatch.fnmatch(path.name, pattern) for pattern in self._folders):
            return True
        return self.path(path) or (path / "pyvenv.cfg").is_file()

    def path(self, path: Path) -> bool:
        return path in self._paths or any(fnmatch.fnmatch(str(path), one) for one in self._globs)


def _walk(start: Path, ignored: _Ignored) -> Iterator[Path]:
    above: dict[str, set[str]] = {}
    for folder, folders, files in os.walk(start, followlinks=True):
        here = Path(folder)
        seen = above.pop(folder, set()) | {os.path.realpath(folder)}
        folders[:] = sorted(
            name
            for name in folders
            if not ignored.folder(here / name) and os.path.realpath(here / name) not in seen
        )
        above.update({os.path.join(folder, name): seen for name in folders})  # noqa: PTH118
        for name in sorted(files):
            path = here / name
            if (name.endswith((".py", *EVAL_SUFFIXES))) and not ignored.path(path):
                yield path


def _named_configs(path: Path) -> Iterator[Path]:
    """Yield the configs that `@pytest.mark.mst(config="...")` names in a test file."""
    try:
        source = path.read_bytes()
        if b"mark.mst" not in source:
            return
        tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return  # collecting the file will say so
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "mst"
        ):
            for keyword in node.keywords:
                if (
                    keyword.arg == "config"
                    and isinstance(keyword.value, ast.Constant)
                    and isinstance(keyword.value.value, str)
                ):
                    found = config_path(path, keyword.value.value)
                    if found.is_file():
                        yield found


def config_path(test_file: Path, given: str) -> Path:
    """Return the config that a marker names: relative to the test file."""
    return Path(os.path.normpath(test_file.parent / given))
