"""Files that are no files, and folders that cannot be: refused before anything waits for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_mst.domain.errors import Place
from tests.eval_files.evals import CASE, only_problem, write


@pytest.mark.parametrize("name", ["cases.json", "cases.yaml"])
def test_a_dataset_that_is_a_pipe_is_refused_and_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    error = only_problem(write(tmp_path, f"name: team\ndatasets: [{name}]"))
    assert error.place.file == name
    assert "is no ordinary file" in error.problem


def test_an_eval_that_is_a_pipe_is_refused_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "team.eval.yaml")
    error = only_problem(tmp_path / "team.eval.yaml")
    assert "is no ordinary file" in error.problem


def test_a_results_folder_that_no_system_could_make_is_refused_with_its_line(
    tmp_path: Path,
) -> None:
    text = f'name: team\ncases: [{CASE}]\nresults:\n  store:\n    dir: "a\\0b"\n'
    error = only_problem(write(tmp_path, text))
    assert error.place == Place("team.eval.yaml", 5, "results.store.dir")
