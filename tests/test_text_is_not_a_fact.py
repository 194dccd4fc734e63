"""Nobody decides by the words of an error: endings, scores and reasons are told by types.

Text for people changes when somebody improves it, and says whatever a model, a server or a user
put into it. Whoever reads how something ended asks the ending.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pytest_mst

PACKAGE = Path(pytest_mst.__file__).parent
WORDS = frozenset(
    {
        "args",
        "client_error",
        "detail",
        "grading_error",
        "longrepr",
        "longreprtext",
        "message",
        "msg",
        "problem",
        "reason",
        "stderr",
        "strerror",
    }
)
"""Attributes, and keys of stored objects, that hold what an error says to people."""
STORED_WORDS = frozenset({"clientError", "detail", "error", "gradingError", "message", "reason"})
"""The keys of stored files that hold such text."""
ERROR_NAMES = ("err", "error", "exc", "exception", "problem", "failure", "raised", "warning")
"""How variables that hold an exception are called, whole or as the last word."""
TEXT_METHODS = frozenset(
    {"startswith", "endswith", "find", "rfind", "index", "rindex", "count", "partition",
     "rpartition", "removeprefix", "removesuffix", "__contains__"}
)  # fmt: skip
PASS_THROUGH = frozenset({"lower", "upper", "casefold", "strip", "lstrip", "rstrip", "splitlines"})
"""Methods whose result says what the text did."""
PATTERN_FUNCTIONS = frozenset(
    {"search", "match", "fullmatch", "findall", "finditer", "fnmatch", "fnmatchcase", "split"}
)


@dataclass(frozen=True)
class Offence:
    """A place that decides by the words of an error."""

    line: int
    source: str


def offences(source: str) -> list[Offence]:
    """Return the places in a module's source that decide by the words of an error."""
    found = [Offence(node.lineno, ast.unparse(node)) for node in _decisions(ast.parse(source))]
    return sorted(set(found), key=lambda one: one.line)


def _decisions(tree: ast.AST) -> Iterator[ast.expr | ast.Match]:
    for scope in _scopes(tree):
        yield from _decisions_in(scope, frozenset(_texts_of_errors(scope)))


def _scopes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a module without its functions, and each function: names mean one thing in each."""
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, those of the functions in it left out."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _nodes(child)


def _decisions_in(scope: ast.AST, tainted: frozenset[str]) -> Iterator[ast.expr | ast.Match]:
    for node in _nodes(scope):
        match node:
            case ast.Compare() if _compares_words(node, tainted):
                yield node
            case ast.Call() if _matches_words(node, tainted):
                yield node
            case ast.Match(subject=subject) if _is_text_of_error(subject, tainted):
                if any(_is_pattern_of_text(case.pattern) for case in node.cases):
                    yield node.subject


def _texts_of_errors(scope: ast.AST) -> Iterator[str]:
    """Yield the names that are given an error's text, such as `text = str(error)`."""
    for node in _nodes(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_text_of_error(value):
                yield name
            case ast.NamedExpr(target=ast.Name(id=name), value=value) if _is_text_of_error(value):
                yield name


def _compares_words(node: ast.Compare, tainted: frozenset[str]) -> bool:
    """Tell whether a comparison asks what an error's text says, not whether there is one."""
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(operator, ast.Is | ast.IsNot):
            continue
        pair = (left, right)
        if not any(_is_text_of_error(side, tainted) for side in pair):
            continue
        if isinstance(operator, ast.In | ast.NotIn):
            if _is_text_of_error(right, tainted) or _is_table(right):
                return True
            continue
        other = right if _is_text_of_error(left, tainted) else left
        if not _is_nothing(other) and not _is_text_of_error(other, tainted):
            return True
    return False


def _is_table(node: ast.expr) -> bool:
    """Tell whether a collection is fixed; one that grows only tells what was there before."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case _:
            return isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Set | ast.Dict)


def _is_nothing(node: ast.expr) -> bool:
    """Tell whether a value is `None` or the empty text: asked whether anything was said."""
    return isinstance(node, ast.Constant) and node.value in (None, "")


def _matches_words(node: ast.Call, tainted: frozenset[str]) -> bool:
    """Tell whether a call looks for something in an error's text."""
    match node.func:
        case ast.Attribute(value=value, attr=name) if name in TEXT_METHODS:
            return _is_text_of_error(value, tainted) and bool(node.args)
        case ast.Attribute(attr=name) | ast.Name(id=name) if name in PATTERN_FUNCTIONS:
            return any(_is_text_of_error(argument, tainted) for argument in node.args)
        case _:
            return False


def _is_text_of_error(node: ast.expr, tainted: frozenset[str] = frozenset()) -> bool:
    """Tell whether an expression is what an error says, or a part of it."""
    match node:
        case ast.Name(id=name):
            return name in tainted
        case ast.Attribute(value=value, attr="args"):
            return _is_error(value)
        case ast.Attribute(attr=name):
            return name in WORDS
        case ast.Subscript(value=value, slice=ast.Constant(value=str() as key)):
            return key in STORED_WORDS or _is_text_of_error(value, tainted)
        case ast.Subscript(value=value):
            return _is_text_of_error(value, tainted)
        case ast.Call():
            return _returns_text_of_error(node, tainted)
        case ast.JoinedStr(values=values):
            return any(
                isinstance(one, ast.FormattedValue)
                and (_is_error(one.value) or _is_text_of_error(one.value, tainted))
                for one in values
            )
        case ast.BoolOp(values=values):
            return any(_is_text_of_error(one, tainted) for one in values)
        case _:
            return False


def _returns_text_of_error(node: ast.Call, tainted: frozenset[str]) -> bool:
    """Tell whether a call returns what an error says."""
    match node:
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as key), *_]):
            return key in STORED_WORDS
        case ast.Call(func=ast.Name(id="str" | "repr" | "format" | "named"), args=[value, *_]):
            return _is_error(value) or _is_text_of_error(value, tainted)
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in PASS_THROUGH:
            return _is_text_of_error(value, tainted)
        case _:
            return False


def _is_error(node: ast.expr) -> bool:
    """Tell whether an expression is an exception, by the name it goes by."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lower().rpartition("_")[2] in ERROR_NAMES or name == "e"
        case ast.Subscript(value=value):
            return _is_error(value)
        case _:
            return False


def _is_pattern_of_text(pattern: ast.pattern) -> bool:
    """Tell whether a pattern asks what a text says."""
    match pattern:
        case ast.MatchValue(value=ast.Constant(value=str() as value)):
            return value != ""
        case ast.MatchOr(patterns=patterns):
            return any(_is_pattern_of_text(one) for one in patterns)
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _is_pattern_of_text(inner)
        case _:
            return False


MODULES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_decides_nothing_by_the_words_of_an_error(module: str) -> None:
    found = offences((PACKAGE / module).read_text(encoding="utf-8"))
    assert found == [], f"{module}: ask the ending, or the error's type and fields"


@pytest.mark.parametrize(
    "source",
    [
        "if '429' in str(error): retry()",
        "if 'rate limit' in str(error).lower(): retry()",
        "if error.args[0] == 'timeout': retry()",
        "if ending.reason == 'the run was stopped': pass",
        "if 'network' not in ending.detail: pass",
        "if ending.reason.startswith('context'): pass",
        "if (row.ending.client_error or '').endswith('exceeded'): pass",
        "if report.longreprtext.find('Timeout') >= 0: pass",
        "if re.search('4[0-9]+', str(exc)): pass",
        "if PATTERN.match(failure.detail): pass",
        "if record.grading_error == 'judge unavailable': pass",
        "text = str(error)\nif 'refused' in text: pass",
        "text = f'{error}'\nwhile text.startswith('cannot'): pass",
        "if (said := str(problem)) and said.count('quota'): pass",
        "match ending.reason:\n    case 'gone' | 'lost': pass",
        "match str(error):\n    case 'gone': pass",
        "if stored['error'] == 'timeout': pass",
        "if 'overloaded' in stored.get('error', ''): pass",
        "if error.reason in RETRYABLE_REASONS: pass",
        "kind = KINDS['x'] if error.message.casefold() == 'x' else None",
        "if error.strerror == 'No space left on device': pass",
        "if call.excinfo.value.args[0].message.startswith('x'): pass",
        "if fnmatch(str(self.error), '*rate*'): pass",
    ],
)
def test_a_decision_by_words_is_found(source: str) -> None:
    assert len(offences(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "if isinstance(error, ConnectionError): pass",
        "if error.errno == errno.ENOSPC: pass",
        "if error.code in (429, 503): pass",
        "if ending.broke is Broke.NETWORK: pass",
        "if ending.reason is None: pass",
        "if ending.client_error: pass",
        "if ending.detail != '': pass",
        "line = f'{ending.broke}: {ending.reason}'",
        "reason = str(error).strip().split('\\n', 1)[0]",
        "raise StoreError(path, str(error)) from error",
        "if answer.startswith('ok'): pass",
        "if '429' in answer: pass",
        "if re.search(pattern, trace.answer): pass",
        "if name in self.errors: pass",
        "if ending.reason not in seen: pass",
        "if len(error.args) == 2: pass",
        "match ending.broke:\n    case Broke.NETWORK: pass",
        "match ending:\n    case Trial(client_error=None): pass",
        "shown = reason[:200]",
        "if option in config.args: pass",
        "if one.reason != other.reason: pass",
    ],
)
def test_what_asks_types_and_fields_is_left_alone(source: str) -> None:
    assert offences(source) == []
