"""Python source as identities hold it: only its meaning changes it."""

from __future__ import annotations

import importlib
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_mst.plugin.source import _file_tree, reached_text, source_text


def one(trial: Any) -> None:
    assert trial.answer == "ok", f"not {trial.answer!r}"


def body() -> Callable[..., Any]:
    def one(
        trial: Any,
    ) -> None:
        # why it is so

        assert trial.answer == "ok", f"not {trial.answer!r}"

    return one


def decorated() -> Callable[..., Any]:
    @pytest.mark.skip
    @pytest.mark.timeout(5)
    def one(trial: Any) -> None:
        assert trial.answer == "ok", f"not {trial.answer!r}"

    return cast("Callable[..., Any]", one)


def test_comments_formatting_place_and_decorators_are_not_in_it() -> None:
    assert source_text(one) == source_text(body()) == source_text(decorated())


def test_anything_else_is() -> None:
    def another(trial: Any) -> None:
        assert trial.answer == "ok", f"not {trial.answer!r}"

    def same() -> Callable[..., Any]:
        def one(trial: Any) -> None:
            assert trial.answer == "OK", f"not {trial.answer!r}"

        return one

    async def waits(trial: Any) -> None:
        assert trial.answer == "ok", f"not {trial.answer!r}"

    assert len({source_text(each) for each in (one, another, same(), waits)}) == 4


def test_none_is_told_from_nothing() -> None:
    def returning() -> list[Callable[..., Any]]:
        def f() -> None:
            return

        held = [f]

        def f() -> None:  # type: ignore[no-redef]  # the same name is the point
            return None

        return [*held, f]

    assert len(set(map(source_text, returning()))) == 2


def test_it_is_the_same_in_every_version_of_python() -> None:
    def f(a: int = 1, *, b: None = None) -> str:
        return f"{a}{[b for _ in ()]}"

    assert source_text(f) == (
        "Module(body=[FunctionDef(name='f', args=arguments(args=[arg(arg='a', "
        "annotation=Name(id='int', ctx=Load()))], kwonlyargs=[arg(arg='b', "
        "annotation=Constant())], kw_defaults=[Constant()], defaults=[Constant(value=1)]), "
        "body=[Return(value=JoinedStr(values=[FormattedValue(value=Name(id='a', ctx=Load()), "
        "conversion=-1), FormattedValue(value=ListComp(elt=Name(id='b', ctx=Load()), "
        "generators=[comprehension(target=Name(id='_', ctx=Store()), iter=Tuple(ctx=Load()), "
        "is_async=0)]), conversion=-1)]))], returns=Name(id='str', ctx=Load()))])"
    )


@pytest.mark.parametrize(
    ("text", "other"),
    [("a", "b"), ("'a'", "'b'"), ("a(lambda: 'a')", "a(lambda: 'b')"), ("a()", "a.b()")],
)
def test_what_has_no_source_is_told_by_what_there_is_of_it(text: str, other: str) -> None:
    first, same, second = (eval(f"lambda: {one}") for one in (text, text, other))
    assert source_text(first) == source_text(same) != source_text(second)


def test_what_is_not_written_in_python_has_no_source_either() -> None:
    assert source_text(len) == "builtin_function_or_method"


AGENTS = """
    import functools
    from pathlib import Path

    import installed
    from helper import help_out

    PROMPT = "be kind"
    NOTES = Path(__file__).with_name("notes.txt")

    def model(name):
        def wrap(function):
            @functools.wraps(function)
            async def wrapped(request):
                return await function(request) + name
            return wrapped
        return wrap

    class Base:
        def think(self):
            return "v1"

    class Agent(Base):
        async def run(self, request):
            return inner(request)

    def inner(request):
        return PROMPT

    def unused():
        return 1

    AGENT = Agent()

    def mst_client():
        @model("large")
        async def agent(request):
            help_out()
            NOTES.read_text() + Path("inner/system.md").read_text()
            installed.anything()
            return await AGENT.run(request)
        return agent

    def mst_config():
        return "small.yaml"
"""


MODULES = ("agents", "helper", "prompts", "installed")


class Project:
    """Modules in a folder, imported anew each time that they are looked at."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root / "project"
        self.files = {
            "agents.py": textwrap.dedent(AGENTS),
            "helper.py": "from prompts import MORE\n\ndef help_out():\n    return 1\n",
            "prompts.py": "MORE = 'please'\n",
            "notes.txt": "first\n",
            "inner/system.md": "You help.\n",
            "small.yaml": "name: small\n",
        }
        elsewhere = root / "site-packages"
        self.installed = elsewhere / "installed.py"
        self.root.mkdir()
        elsewhere.mkdir()
        self.installed.write_text("def anything():\n    return 1\n", encoding="utf-8")
        monkeypatch.setattr(sys, "path", [str(self.root), str(elsewhere), *sys.path])
        monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def text(self, function: str, **changed: tuple[str, str]) -> str:
        """Return what is reached from a function, with one text in a file put for another."""
        for name, content in self.files.items():
            old, new = changed.get(Path(name).stem, ("", ""))
            assert old in content
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_text(content.replace(old, new, 1), encoding="utf-8")
        for name in MODULES:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        linecache.clearcache()
        _file_tree.cache_clear()
        module = importlib.import_module("agents")
        return reached_text(getattr(module, function), self.root)


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    yield Project(tmp_path, monkeypatch)
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("agents", "be kind", "be quick"),
        ("agents", "return inner(request)", "return None"),
        ("agents", "return PROMPT", "return PROMPT + PROMPT"),
        ("agents", '"large"', '"small"'),
        ("agents", '"v1"', '"v2"'),
        ("helper", "return 1", "return 2"),
        ("prompts", "please", "now"),
        ("notes", "first", "second"),
        ("system", "help", "do"),
    ],
    ids=[
        "a constant",
        "a method",
        "a function",
        "a decorator further in",
        "a base class",
        "another file of the project",
        "what that imports",
        "a file that a constant names",
        "a file that is named by its path",
    ],
)
def test_what_a_function_of_the_project_reaches_is_in_it(
    modules: Project, file: str, old: str, new: str
) -> None:
    assert modules.text("mst_client", **{file: (old, new)}) != modules.text("mst_client")


def test_what_it_does_not_reach_and_what_is_installed_is_not_in_it(modules: Project) -> None:
    before = modules.text("mst_client")
    unused = ("def unused():\n    return 1", "def unused():\n    return 2")
    assert modules.text("mst_client", agents=unused) == before
    modules.installed.write_text("def anything():\n    return 2\n", encoding="utf-8")
    assert modules.text("mst_client") == before


def test_a_config_that_is_named_by_its_path_is_in_it(modules: Project) -> None:
    before = modules.text("mst_config")
    assert modules.text("mst_config", small=("small", "other")) != before
    assert modules.text("mst_client") == modules.text("mst_client", small=("small", "other"))
