"""The tools of all servers as a model is offered them, under names that its API takes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

NAME_LIMIT = 64
"""Characters; the shortest limit of the APIs (OpenAI, Gemini)."""
_NOT_TAKEN = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARS = 6
_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool as a model is offered it."""

    name: str
    """What the model calls it."""
    server: str
    tool: str
    """As its server names it."""
    description: str
    schema: Mapping[str, Any]
    """The tool's `inputSchema`, as the server sent it."""


def offered_tools(
    servers: Iterable[tuple[str, Iterable[Mapping[str, Any]]]],
) -> dict[str, OfferedTool]:
    """Return the tools by the names that a model is to use.

    A tool keeps its name where no other server has one of that name and the APIs take it; else
    its server's label comes before it. What they do not take is replaced.

    Args:
        servers: labels, each with the tools as its server lists them.

    """
    listed = [(label, tool) for label, tools in servers for tool in tools]
    times = Counter(str(tool.get("name")) for _, tool in listed)
    offered: dict[str, OfferedTool] = {}
    for label, tool in listed:
        own = str(tool.get("name"))
        wished = own if times[own] == 1 else f"{label}__{own}"
        name = _taken_by_apis(wished, f"{label}\0{own}", offered)
        said = tool.get("description") or tool.get("title") or ""
        schema = tool.get("inputSchema")
        offered[name] = OfferedTool(
            name=name,
            server=label,
            tool=own,
            description=str(said),
            schema=schema if isinstance(schema, Mapping) else _ANY_OBJECT,
        )
    return offered


def _taken_by_apis(wished: str, of: str, taken: Mapping[str, object]) -> str:
    name = _NOT_TAKEN.sub("_", wished)
    if not name[:1].isalpha() and not name.startswith("_"):
        name = f"_{name}"  # Gemini's names begin with a letter or this
    if name != wished or len(name) > NAME_LIMIT or name in taken:
        digest = hashlib.sha256(of.encode("utf-8", "backslashreplace")).hexdigest()
        name = f"{name[: NAME_LIMIT - _DIGEST_CHARS - 1]}_{digest[:_DIGEST_CHARS]}"
    return name
