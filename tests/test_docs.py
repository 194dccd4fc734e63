"""What the documentation shows is true: every block is run or loaded."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from pytest_mst.eval_files.load import load_eval
from tests.docs_models import reply
from tests.docs_pages import PAGES, ROOT, Block, blocks_of, mismatch
from tests.model_provider import ModelProvider
from tests.plugin.eval_project import EvalProject

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
CHECKED_LANGUAGES = ("yaml", "json", "python", "console", "toml", "ini")
PLAIN_LANGUAGES = ("text",)
SMALL_EVAL = {
    "name": "small",
    "servers": {"notes": {"transport": "stdio", "command": "python", "args": ["notes.py"]}},
    "cases": [{"id": "hello", "input": "Hello", "assertions": {"containsText": "Hello"}}],
}


def named(directive: str) -> list[object]:
    """Return the blocks of a directive, each under the name of its place."""
    return [
        pytest.param(block, id=f"{block.page}:{block.line}")
        for block in BLOCKS
        if block.directive.partition(":")[0] == directive
    ]


@pytest.fixture
def project(tmp_path: Path) -> EvalProject:
    """The reader's folder: the page's own files, and the evals that this repository tests with."""
    shutil.copytree(ROOT / "tests" / "examples" / "evals", tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "example_evals" / "servers", tmp_path / "servers")
    for block in BLOCKS:
        kind, _, name = block.directive.partition(": ")
        if kind == "file":
            (tmp_path / name).write_text(block.text, encoding="utf-8")
    return EvalProject(tmp_path)


def test_every_block_is_checked_in_some_way() -> None:
    directives = ("file", "run", "run with a model", "make evals", "part", "commands")
    unchecked = [
        f"{block.page}:{block.line}: {block.language} {block.directive!r}"
        for block in BLOCKS
        if block.language not in PLAIN_LANGUAGES
        and (
            block.language not in CHECKED_LANGUAGES
            or block.directive.partition(":")[0] not in directives
        )
    ]
    assert unchecked == []


def test_every_eval_that_is_shown_as_a_file_is_run() -> None:
    run = {word for block in BLOCKS for command in block.commands for word in shlex.split(command)}
    files = [
        block.directive.partition(": ")[2]
        for block in BLOCKS
        if block.directive.startswith("file: ")
    ]
    evals = [name for name in files if ".eval." in name or name.startswith("test_")]
    assert evals
    assert [name for name in evals if name not in run] == []


@pytest.mark.parametrize("block", named("run"))
def test_a_shown_run_is_what_is_seen(project: EvalProject, block: Block) -> None:
    assert block.commands
    for command, output in block.steps:
        program, *arguments = shlex.split(command)
        assert program == "pytest"
        session = project.run(*arguments)
        assert mismatch(output, session.text) is None


@pytest.mark.parametrize("block", named("run with a model"))
def test_a_shown_run_with_a_model_is_what_is_seen(project: EvalProject, block: Block) -> None:
    with ModelProvider(reply) as provider:
        project.environ |= provider.environment
        for command, output in block.steps:
            program, *arguments = shlex.split(command)
            assert program == "pytest"
            assert mismatch(output, project.run(*arguments).text) is None


@pytest.mark.parametrize("block", named("part"))
def test_a_part_of_an_eval_config_loads(tmp_path: Path, block: Block) -> None:
    path = tmp_path / "small.eval.yaml"
    path.write_text(yaml.safe_dump(SMALL_EVAL | yaml.safe_load(block.text)), encoding="utf-8")
    assert load_eval(path, environ=os.environ).cases


@pytest.mark.parametrize("block", named("commands"))
def test_a_command_names_what_is_there(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert block.commands
    for command in block.commands:
        program, *words = shlex.split(command, comments=True)
        if program == "make":
            assert {word for word in words if "=" not in word} <= targets, command
            continue
        paths = [word.partition("::")[0] for word in words if "/" in word]
        assert all((ROOT / path).exists() for path in paths), command


def test_the_readme_names_every_option_and_no_other(project: EvalProject) -> None:
    option = re.compile(r"(?<![-\w])--mst(?:-[a-z]+)*")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert set(option.findall(readme)) == set(option.findall(project.run("--help").out))


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES)
def test_a_link_leads_somewhere(page: str) -> None:
    here = ROOT / page
    for target in re.findall(r"\]\(([^)\s]+)\)", here.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (here.parent / file).resolve() if file else here
        assert there.exists(), target
        assert not anchor or anchor in anchors_of(there), target
