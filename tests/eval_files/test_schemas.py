from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pytest_mst.__main__ import main
from pytest_mst.domain.case import Dataset
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.model import UserModel
from pytest_mst.eval_files.schemas import schema_text, schemas
from pytest_mst.eval_files.source import SUFFIXES, read_document
from tests.eval_files.evals import DATA

ROOT = Path(__file__).parents[2]

KINDS: dict[str, type[UserModel]] = {"eval-config": EvalConfig, "dataset": Dataset}

EXAMPLES = {
    "whole-format.eval.yaml": "eval-config",
    "whole-format.eval.json": "eval-config",
    "whole-format.dataset.yaml": "dataset",
    "whole-format.dataset.json": "dataset",
    "legacy-dataset.json": "dataset",
}


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(schemas()[f"{kind}.schema.json"])


def example(name: str) -> Any:
    return read_document(DATA / name, name).value


def test_the_schemas_on_disk_are_those_of_the_models() -> None:
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("schemas/*.json")}
    assert on_disk == {name: schema_text(content) for name, content in schemas().items()}, (
        "run: python -m pytest_mst schema --write schemas"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_one_of_draft_2020_12(kind: str) -> None:
    content = schemas()[f"{kind}.schema.json"]
    Draft202012Validator.check_schema(content)
    assert content["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert "$id" not in content
    assert content["title"]
    assert content["description"]


def test_the_docstring_of_a_field_is_its_description() -> None:
    properties = schemas()["dataset.schema.json"]["$defs"]["Case"]["properties"]
    assert properties["skip"]["description"].startswith("Why the case is not run.")
    servers = schemas()["eval-config.schema.json"]["$defs"]["StdioServer"]["properties"]
    assert servers["command"]["description"] == "`python` is the running interpreter."
    assert servers["callTimeoutMs"]["description"] == "For each tool call."


@pytest.mark.parametrize(("name", "kind"), EXAMPLES.items())
def test_the_whole_format_fits_schema_and_model_alike(name: str, kind: str) -> None:
    value = example(name)
    validator(kind).validate(value)
    KINDS[kind].model_validate(value)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return every object in which keys of our own are written."""
    if any(
        free in path for free in ("arguments", "clientOptions", "replies", "metadata", "judges")
    ):
        return []
    if isinstance(value, list):
        return [one for i, held in enumerate(value) for one in places(held, (*path, i))]
    if not isinstance(value, dict):
        return []
    below = [one for key, held in value.items() for one in places(held, (*path, key))]
    is_free = path[-1:] in {
        *(("expected",), ("criteria",), ("passesJudge",), ("slots",), ("env",), ("headers",)),
        *(("servers",), ("writes",), ("pricing",), ("dispatchers",)),
    } or (len(path) > 1 and path[-2] == "outcome")
    return below if is_free else [path, *below]


@pytest.mark.parametrize(("name", "kind"), EXAMPLES.items())
def test_a_misspelt_key_fits_neither_schema_nor_model(name: str, kind: str) -> None:
    found = places(example(name))
    assert len(found) > 4
    for path in found:
        value = example(name)
        here = value
        for step in path:
            here = here[step]
        here["misspelt"] = 1
        assert not validator(kind).is_valid(value), path
        with pytest.raises(ValueError, match="misspelt"):
            KINDS[kind].model_validate(value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"trials": "3"},
        {"trials": 0},
        {"trials": 1.5},
        {"name": " "},
        {"passThreshold": 2},
        {"servers": {"": {"transport": "stdio", "command": "x"}}},
        {"servers": {"chat": {"transport": "stdio"}}},
        {"servers": {"chat": {"transport": "sse", "command": "x"}}},
        {"servers": {"chat": {"transport": "stdio", "command": "x", "protocol": "new"}}},
        {"writes": "live"},
        {"writes": {"chat": "read-only"}},
        {"datasets": [3]},
        {"cases": [{"id": "a", "input": "x", "expected": {"writes": None}}]},
        {"cases": [{"id": "a", "input": "x", "assertions": {"containsText": ""}}]},
        {"cases": [{"id": "a\u0000", "input": "x"}]},
        {"cases": [{"id": "a"}]},
    ],
)
def test_what_the_model_refuses_the_schema_refuses(wrong: dict[str, Any]) -> None:
    value = {"name": "team", **wrong}
    with pytest.raises(ValueError, match="validation error"):
        EvalConfig.model_validate(value)
    assert not validator("eval-config").is_valid(value)


def test_a_whole_number_with_a_fraction_of_nothing_fits_both() -> None:
    value = {"name": "team", "trials": 3.0}
    validator("eval-config").validate(value)
    assert EvalConfig.model_validate(value).trials == 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_prints_a_schema(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    assert json.loads(capsys.readouterr().out) == schemas()[f"{kind}.schema.json"]


def test_the_command_writes_all_schemas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "schemas"
    assert main(["schema", "--write", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == set(schemas())
    assert capsys.readouterr().out.splitlines() == [str(folder / name) for name in schemas()]


def test_the_command_says_which_schemas_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "datasets"]) == 4
    assert capsys.readouterr().err == (
        "schema: there is no 'datasets'; there are: eval-config, dataset\n"
    )


def test_the_command_says_where_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    assert main(["schema", "--write", str(in_the_way)]) == 4
    assert capsys.readouterr().err.startswith(f"{in_the_way}: cannot be written: ")


@pytest.mark.parametrize("arguments", [[], ["schema"], ["schema", "dataset", "--write", "x"]])
def test_a_command_that_is_not_whole_is_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m pytest_mst" in capsys.readouterr().err


def test_the_package_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "pytest_mst", "schema", "dataset"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["title"] == "Dataset"


def test_the_evals_and_datasets_shipped_as_examples_fit_their_schemas() -> None:
    checked = []
    for path in sorted((ROOT / "example_evals").rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        content = read_document(path, str(path.relative_to(ROOT))).value
        is_eval = path.stem.endswith(".eval")
        if is_eval or (isinstance(content, dict) and "cases" in content):
            validator("eval-config" if is_eval else "dataset").validate(content)
            checked.append(path.name)
    assert checked
