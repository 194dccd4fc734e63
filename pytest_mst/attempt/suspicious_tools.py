"""Tools whose hint says that they only read, and whose name or arguments say otherwise. Pure.

A hint is the server's word, and servers are wrong about it: a block of annotations that is shared
by all tools, a tool with one argument that says what to do. Nothing is stopped for it; people are
told, and can name such tools in `alwaysWriteTools`, or in `readOnlyTools` where they do only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_mst.domain.write import ServerTools


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


WRITING = _words(
    """
    add append apply approve archive assign ban cancel cleanup clear close commit copy create
    delete deploy destroy disable drop edit enable erase exec execute fork grant import insert
    install invite kill merge modify move overwrite patch pay post publish purge push put refund
    register reject remove rename replace reply reset restart restore revoke rollback run save
    scale schedule send set submit terminate transfer truncate uninstall unset update upgrade
    upload upsert write
    """
)
"""Verbs of what changes something."""
READING = _words(
    """
    can check count describe download explain fetch find get has is lookup peek read retrieve show
    validate
    """
)
"""Verbs after which the other words of a name say what is read: `get_post`. Not those that are
as often what is written: `list_delete`, `view_create`, `search_and_replace`."""
JOINING = frozenset({"and", "or"})
"""After these a name has another verb: `get_or_create`."""
CHOOSING = frozenset({"action", "command", "method", "op", "operation", "verb"})
"""Arguments that say what the call does, where their values are listed."""
RUNNING = frozenset({"cypher", "shell", "sql"})
"""Arguments that are a program to run: what it does is in the call, not in the tool."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST = 3
"""How many values of an argument are named."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A tool that is let through as a read, and may be a write."""

    tool: str
    because: str
    """What says otherwise, in a few words; empty where the tool's name does."""


def suspicious_reads(tools: ServerTools) -> tuple[Suspicion, ...]:
    """Return the tools that are reads by their hints only and look like writes.

    Args:
        tools: of one server, with the eval config's own word on them, which is taken as it is.

    """
    return tuple(
        Suspicion(name, because)
        for name, tool in tools.tools.items()
        if tools.is_read(name) and name not in tools.read_only_tools
        for because in _reasons(name, tool)
    )


def says_write(name: str) -> bool:
    """Tell whether a name in snake, camel or kebab case has a word for changing something."""
    reading = False
    for word in _WORD.findall(name):
        match word.lower():
            case joining if joining in JOINING:
                reading = False
            case verb if verb in READING:
                reading = True
            case verb if verb in WRITING and not reading:
                return True
    return False


def _reasons(name: str, tool: Mapping[str, object]) -> Iterator[str]:
    """Give the first thing that speaks against a tool's hint, if anything does."""
    if says_write(name):
        yield ""
        return
    schema = tool.get("inputSchema")
    if not isinstance(schema, Mapping):
        return
    for argument, given in _arguments(schema):
        if argument.lower() in CHOOSING:
            writing = [value for value in _values(given, schema) if says_write(value)]
            if writing:
                more = ", …" if len(writing) > _LONGEST else ""
                yield f"{argument}: {', '.join(writing[:_LONGEST])}{more}"
                return
        elif argument.lower() in RUNNING and "string" in _types(given):
            yield f"runs the {argument} it is given"
            return


def _arguments(root: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the arguments of a schema with their own schemas, those inside of others too."""
    seen: set[int] = set()
    waiting: list[object] = [root]
    while waiting:
        for one in _alternatives(waiting.pop(), root, seen):
            properties = one.get("properties")
            for name, given in properties.items() if isinstance(properties, Mapping) else ():
                if isinstance(given, Mapping):
                    yield str(name), given
                    waiting.append(given)
            waiting.append(one.get("items"))


def _values(schema: object, root: Mapping[str, object]) -> Iterator[str]:
    """Yield the texts that a schema lists as its values."""
    for one in _alternatives(schema, root, set()):
        listed = one.get("enum")
        values = [*listed] if isinstance(listed, Sequence) and not isinstance(listed, str) else []
        yield from (value for value in (*values, one.get("const")) if isinstance(value, str))


def _types(schema: Mapping[str, object]) -> tuple[object, ...]:
    stated = schema.get("type")
    return tuple(stated) if isinstance(stated, list) else (stated,)


def _alternatives(
    schema: object, root: Mapping[str, object], seen: set[int]
) -> Iterator[Mapping[str, object]]:
    """Yield a schema with all that it is combined of, references within the tool followed.

    Args:
        schema: any part of a tool's `inputSchema`.
        root: the whole of it.
        seen: the ids of the parts there were already, which may lead to one another in a circle.

    """
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        reference = one.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            waiting.append(_at(root, reference))
        for key in ("anyOf", "oneOf", "allOf"):
            parts = one.get(key)
            waiting.extend(parts if isinstance(parts, list) else ())


def _at(root: Mapping[str, object], reference: str) -> object:
    found: object = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
