"""Python source that has a say in an attempt, in a form that only its meaning changes."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.target import definitions_of
from pytest_mst.domain.eval_config import EvalConfig, Variant
from pytest_mst.domain.json_value import canonical_json
from pytest_mst.plugin.pytest_private import fixture_functions, parameters_of

_PATH_CHARS = 200
"""Longer texts are no paths that anybody would write into a program."""
_INPUTS = frozenset(
    (".j2", ".jinja", ".jinja2", ".json", ".md", ".prompt", ".toml", ".txt", ".yaml", ".yml")
)
"""How files are named that a client may be told things by; others it may write itself."""
_SET_UP = {"client", "model", "client_options", "input_template"}
"""What of an eval config and of a variant has a say in what a client does, beside servers."""


def body_source(item: pytest.Function) -> str:
    """Return the source of a test body and of what it names, and what it is parametrized with.

    Comments, formatting and decorators are not in it: among the decorators are markers, whose
    input, deadline and tags are no part of the body.
    """
    return "\n".join([reached_text(item.obj, item.config.rootpath), *_parameters(item)])


def target_source(
    item: pytest.Function,
    overriding: dict[str, Any],
    prepared: PreparedEval | None,
    variant: Variant,
) -> str:
    """Return what is known, before it is made, of a target that the case's own fixtures make.

    That is their source, that of the fixtures that they ask for and of what these name, what they
    are parametrized with, and the eval config that the case names.
    """
    functions, root = fixture_functions(item, overriding), item.config.rootpath
    sources = [f"{name}: {reached_text(one, root)}" for name, one in sorted(functions.items())]
    config = [_set_up(prepared.loaded.config, variant)] if prepared is not None else []
    return "\n".join([variant.name, *sources, *_parameters(item), *config])


def reached_text(start: Callable[..., Any], root: Path) -> str:
    """Return the source of a function and of the project's own code that it names, and so on.

    Functions and classes of the same file are followed one by one; of another file of the project
    the whole is taken, with what it imports. Constants are taken by their value, and texts of the
    project that are named by their path (`prompt.md`) by their content. What is installed, and
    what is reached in other ways, is not in it.

    Args:
        start: the function.
        root: the folder of the project.

    """
    texts: dict[str, str] = {}
    pending: list[Any] = [inspect.unwrap(start)]
    while pending:
        one = pending.pop()
        name = f"{one.__module__}.{one.__qualname__}"
        if name in texts:
            continue
        texts[name] = source_text(one)
        named = dict(_globals_named(one))
        texts.update(_files_named([*_constants_of(one), *named.values()], _file_of(one), root))
        if inspect.isclass(one):
            named.update({base.__qualname__: base for base in one.__mro__[1:]})
        for known_as, value in named.items():
            home = value if inspect.ismodule(value) else inspect.getmodule(_kind(value))
            if _is_plain(value):
                texts[f"{one.__module__}:{known_as}"] = json.dumps(_plain(value), sort_keys=True)
            elif home is None or not _is_own(home, root):
                continue
            elif home.__name__ == one.__module__:
                pending.append(_kind(value))
            else:
                _add_module(home, root, texts)
    return "\n".join(f"{name}: {text}" for name, text in sorted(texts.items()))


def _kind(value: object) -> Any:
    """Return the function or class that a global is, or that it is an object of."""
    return value if inspect.isfunction(value) or inspect.isclass(value) else type(value)


def _globals_named(one: Any) -> Iterator[tuple[str, object]]:
    """Yield the globals that a function, or the methods of a class, name."""
    for function in _functions_of(one):
        for code in _codes(function.__code__):
            for name in code.co_names:
                if name in function.__globals__:
                    yield name, function.__globals__[name]


def _constants_of(one: Any) -> Iterator[object]:
    """Yield what a function, or the methods of a class, hold as constants."""
    for function in _functions_of(one):
        for code in _codes(function.__code__):
            yield from code.co_consts


def _add_module(module: ModuleType, root: Path, texts: dict[str, str]) -> None:
    """Take a whole file of the project, and those that it imports."""
    path = _file_of(module)
    if module.__name__ in texts or path is None:
        return
    tree = _file_tree(str(path))
    texts[module.__name__] = _written(tree)
    held = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    texts.update(_files_named([*held, *vars(module).values()], path, root))
    for name in _imports(tree, module.__package__ or ""):
        imported = sys.modules.get(name)
        if imported is not None and _is_own(imported, root):
            _add_module(imported, root, texts)


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield the full names of the modules that a file may import."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (one.name for one in node.names)
            case ast.ImportFrom():
                above = package.split(".")[: 1 - node.level or None] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                yield base
                yield from (f"{base}.{one.name}" for one in node.names)
            case _:
                pass


def _files_named(
    values: Iterable[object], beside: Path | None, root: Path
) -> Iterator[tuple[str, str]]:
    """Yield the files of the project that texts and paths name, each by a hash of its content.

    Args:
        values: what may be such a text or path.
        beside: the file that names them: a path may be from its folder.
        root: the folder of the project, from which a path may be, too.

    """
    for value in values:
        text = str(value) if isinstance(value, str | Path) else ""
        if not 0 < len(text) <= _PATH_CHARS or not text.isprintable():
            continue
        for folder in dict.fromkeys([root, *([beside.parent] if beside is not None else [])]):
            with suppress(OSError, ValueError):  # not a path, or not one of a file
                path = folder / text
                if path.suffix in _INPUTS and path.is_file() and path.is_relative_to(root):
                    yield f"file {path.relative_to(root)}", _content(path)


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _functions_of(one: Any) -> Iterator[Any]:
    functions = [one] if inspect.isfunction(one) else [*vars(one).values()]
    for function in functions:
        unwrapped = inspect.unwrap(function) if callable(function) else function
        if inspect.isfunction(unwrapped):
            yield unwrapped


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield compiled code and what is nested in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | tuple | dict | set)


def _file_of(value: Any) -> Path | None:
    """Return the file that a module is, or that a function or class is in."""
    module = value if inspect.ismodule(value) else inspect.getmodule(value)
    path = getattr(module, "__file__", None)
    return Path(path) if path is not None else None


def _is_own(module: ModuleType, root: Path) -> bool:
    path = _file_of(module)
    return path is not None and path.is_relative_to(root) and "site-packages" not in path.parts


@lru_cache(maxsize=256)
def _file_tree(path: str) -> ast.AST:
    try:
        return ast.parse(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


@lru_cache(maxsize=4096)
def source_text(function: Callable[..., Any]) -> str:
    """Return the source of a function, less comments, formatting and decorators."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        code = getattr(inspect.unwrap(function), "__code__", None)
        return type(function).__name__ if code is None else _compiled(code)
    for node in tree.body:  # of what is in it, decorators are a part
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.decorator_list = []
    return _written(tree)


def _compiled(code: CodeType) -> str:
    """Write what there is of a function whose source is not to be had."""
    held = [_compiled(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, held))


def _written(node: object) -> str:
    """Write a syntax tree, less what is empty: `ast.dump` differs between versions of Python."""
    match node:
        case ast.AST():
            fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None]
            held = [f"{name}={_written(value)}" for name, value in fields if value != []]
            return f"{type(node).__name__}({', '.join(held)})"
        case list():
            return f"[{', '.join(map(_written, node))}]"
        case _:
            return repr(node)


def _parameters(item: pytest.Item) -> Iterable[str]:
    """Write what an item is parametrized with."""
    for name, value in sorted(parameters_of(item).items()):
        yield f"{name}={json.dumps(_plain(value), sort_keys=True)}"


def _plain(value: object) -> object:
    """Return a value as JSON that is the same in every process; of what is none, its type."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple():
            return [_plain(one) for one in value]
        case set() | frozenset():
            return sorted(json.dumps(_plain(one), sort_keys=True) for one in value)
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case _:
            return f"a {type(value).__module__}.{type(value).__qualname__}"


def _set_up(config: EvalConfig, variant: Variant) -> str:
    dumped = [
        one.model_dump(by_alias=True, exclude_defaults=True, include=_SET_UP)
        for one in (config, variant)
    ]
    return canonical_json([definitions_of(config, variant), *dumped])
