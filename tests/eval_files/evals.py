"""Evals on disk for tests, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_mst.domain.errors import EvalFileError, EvalFileErrors
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.eval_files.load import load_eval

DATA = Path(__file__).parent / "data"

CHAT = "chat: {transport: stdio, command: python}"
CASE = "{id: a, input: Say hello, assertions: {containsText: hello}}"


def write(folder: Path, text: str, name: str = "team.eval.yaml") -> Path:
    """Write a file of an eval, its text dedented."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def load(path: Path, environ: Mapping[str, str] | None = None) -> LoadedEval:
    """Load an eval; files are shown by their names."""
    return load_eval(path, environ=environ or {}, shown=lambda one: one.name)


def problems(path: Path, environ: Mapping[str, str] | None = None) -> list[EvalFileError]:
    """Return all that is wrong with an eval that must not load."""
    with pytest.raises(EvalFileErrors) as refused:
        load(path, environ)
    return list(refused.value.errors)


def only_problem(path: Path, environ: Mapping[str, str] | None = None) -> EvalFileError:
    """Return the one thing that is wrong with an eval."""
    found = problems(path, environ)
    assert len(found) == 1, "\n".join(map(str, found))
    return found[0]
