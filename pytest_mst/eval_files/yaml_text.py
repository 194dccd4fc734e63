"""YAML text as a document, with JSON's types only.

A plain scalar is `null`, `true`, `false` or a JSON number without an exponent; nothing at all
after a key is null. Everything else is the text as it was written: `no`, `on`, `~`, `True`,
`2026-01-01`, `02142`, `1e3`, `0x10`, `1_000`, `12:30`, `.inf`. Keys are always text. Tags are
refused, since each is a way to ask for another type. Merge keys (`<<`) are read; a key written
beside one overrides it.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import yaml
from yaml import MappingNode, Node, ScalarNode, SequenceNode

from pytest_mst.domain.errors import EvalFileError, EvalFileErrors, Place
from pytest_mst.domain.json_value import JsonValue
from pytest_mst.eval_files.document import Document, KeyPath, path_text
from pytest_mst.eval_files.nesting import MAX_DEPTH, too_deep
from pytest_mst.eval_files.number import UnfitNumberError, fraction, whole_number
from pytest_mst.eval_files.quoted import quoted
from pytest_mst.eval_files.repeated_key import repeated_key

MAX_COPIED = 1_000_000
"""How many values a file may have through aliases, beyond those that are written in it."""

_PLAIN = "?"
_QUOTED = "!"
_UNTAGGED = (_PLAIN, _QUOTED)
"""The tags of scalars that have none (YAML 1.2, section 3.3.2: non-specific tags)."""

_MERGE = "<<"
_WORDS: dict[str, bool | None] = {"null": None, "true": True, "false": False, "": None}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?")

_Entries: TypeAlias = dict[str, tuple[Node, Node]]


class _Loader(yaml.CBaseLoader):
    """Composes nodes and leaves the meaning of their scalars to us."""

    def resolve(self, kind: type[Node], value: object, implicit: Any) -> str:
        """Tell apart only plain scalars and others; called for each node without a tag."""
        del value
        return _QUOTED if kind is ScalarNode and not implicit[0] else _PLAIN


def read_yaml(text: str, file: str) -> Document:
    """Read YAML.

    Args:
        text: the content of the file.
        file: the file as the user would write it.

    Raises:
        EvalFileErrors: it is not YAML, holds more than one document, or is not to be trusted
            with the memory it would take.

    """
    root = _composed(text, file)
    if root is None:
        raise EvalFileErrors([EvalFileError(Place(file, 1), "the file is empty")])
    reader = _Reader(file)
    value = reader.value(root)
    return Document(file, value, _YamlLines(root, reader), reader.problems)


def _composed(text: str, file: str) -> Node | None:
    loader = _Loader(text)
    try:
        node: Node | None = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # An unexpected end is reported one line below the last.
        line = min(mark.line, text.count("\n")) + 1 if mark else None
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise EvalFileErrors([EvalFileError(Place(file, line), f"not YAML: {what}")]) from error
    except yaml.reader.ReaderError as error:
        line = text.encode()[: error.position].count(b"\n") + 1
        problem = f"not YAML: {error.reason}"
        raise EvalFileErrors([EvalFileError(Place(file, line), problem)]) from error
    finally:
        loader.dispose()
    return node


class _Reader:
    """Turns nodes into values; each alias gets a value of its own."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._path: list[str | int] = []
        self._problems: dict[int, EvalFileError] = {}
        self._entries: dict[int, _Entries] = {}
        self._seen: set[int] = set()
        self._copied = 0

    @property
    def problems(self) -> tuple[EvalFileError, ...]:
        """What is wrong with the nodes that were read, each told once."""
        return tuple(self._problems.values())

    def value(self, node: Node, depth: int = 0) -> JsonValue:
        """Build the value of a node, `depth` levels down."""
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        self._bound(node, depth)
        path = self._path
        if isinstance(node, MappingNode):
            held: dict[str, JsonValue] = {}
            for key, (_, child) in self.entries(node, depth).items():
                path.append(key)
                held[key] = self.value(child, depth + 1)
                path.pop()
            return held
        self._refuse_tag(node)
        items: list[JsonValue] = []
        for position, child in enumerate(node.value):
            path.append(position)
            items.append(self.value(child, depth + 1))
            path.pop()
        return items

    def entries(self, node: MappingNode, depth: int = 0) -> _Entries:
        """Return key and value nodes by key; merged mappings lie under what is written here."""
        known = self._entries.get(id(node))
        if known is not None:
            return known
        self._refuse_tag(node)
        own: _Entries = {}
        # Known from here on, so that a mapping merged into itself ends.
        self._entries[id(node)] = own
        sources: list[MappingNode] = []
        merge: Node | None = None
        for key_node, held in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, "a key must be a text, not a list or an object")
                continue
            self._refuse_tag(key_node)
            key = key_node.value
            if key == _MERGE and key_node.tag == _PLAIN:
                if merge is not None:
                    self._repeated(key_node, merge)
                merge = key_node
                sources += self._merged(held)
            elif key in own:
                self._repeated(key_node, own[key][0])
            else:
                own[key] = (key_node, held)
        if not sources:
            return own
        laid: _Entries = {}
        for source in sources:
            self._bound(source, depth + 1)
            for key, entry in self.entries(source, depth + 1).items():
                laid.setdefault(key, entry)
        self._entries[id(node)] = {**laid, **own}
        return self._entries[id(node)]

    def _merged(self, node: Node) -> list[MappingNode]:
        sources = node.value if isinstance(node, SequenceNode) else [node]
        for source in sources:
            if not isinstance(source, MappingNode):
                self._problem(source, "<< takes an object or a list of objects")
        return [source for source in sources if isinstance(source, MappingNode)]

    def _scalar(self, node: ScalarNode) -> JsonValue:
        text: str = node.value
        if node.tag != _PLAIN:
            self._refuse_tag(node)
            return text
        if text in _WORDS:
            return _WORDS[text]
        if text[0] not in "-0123456789":
            return text
        match = _NUMBER.fullmatch(text)
        if match is None:
            return text
        try:
            return fraction(text) if match[1] else whole_number(text)
        except UnfitNumberError as error:
            self._problem(node, error.problem)
            return None

    def _bound(self, node: Node, depth: int) -> None:
        """Stop before aliases multiply or lead into themselves.

        Raises:
            EvalFileErrors: the file goes too deep or becomes too large.

        """
        if depth >= MAX_DEPTH:
            error = EvalFileError(Place(self._file, _line(node)), too_deep())
            raise EvalFileErrors([error])
        if id(node) not in self._seen:
            self._seen.add(id(node))
            return
        self._copied += 1 + len(node.value)
        if self._copied > MAX_COPIED:
            problem = f"aliases stand for more than {MAX_COPIED:,} values"
            raise EvalFileErrors([self._error(node, problem)])

    def _refuse_tag(self, node: Node) -> None:
        if node.tag not in _UNTAGGED:
            tag = quoted(node.tag.replace("tag:yaml.org,2002:", "!!"))
            problem = f"tags such as {tag} are not read"
            self._problem(node, problem, "quotes make a text of anything")

    def _repeated(self, node: ScalarNode, first: Node) -> None:
        self._problems[id(node)] = repeated_key(
            self._file, tuple(self._path), node.value, first_line=_line(first), line=_line(node)
        )

    def _problem(self, node: Node, problem: str, remedy: str | None = None) -> None:
        self._problems[id(node)] = self._error(node, problem, remedy)

    def _error(self, node: Node, problem: str, remedy: str | None = None) -> EvalFileError:
        place = Place(self._file, _line(node), path_text(tuple(self._path)))
        return EvalFileError(place, problem, remedy)


class _YamlLines:
    """The lines of nodes."""

    def __init__(self, root: Node, reader: _Reader) -> None:
        self._root = root
        self._reader = reader

    def line_of(self, path: KeyPath) -> int:
        """Return the 1-based line of a key or list item, or of the nearest one above it."""
        written = node = self._root
        for step in path:
            if isinstance(node, MappingNode) and isinstance(step, str):
                entry = self._reader.entries(node).get(step)
                if entry is None:
                    break
                written, node = entry
            elif isinstance(node, SequenceNode) and isinstance(step, int):
                if step >= len(node.value):
                    break
                written = node = node.value[step]
            else:
                break
        return _line(written)


def _line(node: Node) -> int:
    """Return the 1-based line in which a node begins."""
    line: int = node.start_mark.line
    return line + 1
