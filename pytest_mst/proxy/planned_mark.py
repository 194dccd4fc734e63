"""The mark by which a server says that it stopped a write itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def is_marked(result: Mapping[str, Any], key: str) -> bool:
    """Tell whether a result is marked as a write that the server stopped.

    The mark is a key, with any value but `false` and null, at the top level of the structured
    content, or of an object that is, as JSON, the whole text of a content item. An error can be
    marked too.

    Args:
        result: of a `tools/call`, as the server sent it.
        key: the eval config's `plannedWriteKey`.

    """
    structured = result.get("structuredContent")
    if isinstance(structured, Mapping) and _says_so(structured.get(key)):
        return True
    return any(_is_marked_text(text, key) for text in _texts(result.get("content")))


def _texts(content: object) -> Iterator[str]:
    for item in content if isinstance(content, list) else []:
        if isinstance(item, Mapping) and item.get("type") == "text":
            text = item.get("text")
            if isinstance(text, str):
                yield text


def _is_marked_text(text: str, key: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        value = json.loads(text, object_pairs_hook=_Members, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    # written twice, the key marks where either of the two does: readers do not agree on which
    # counts, and a write that nobody records would be the worse mistake
    return any(name == key and _says_so(value) for name, value in value)


class _Members(list[tuple[str, Any]]):
    """The members of a JSON object, each as often as it is written."""


def _says_so(value: object) -> bool:
    return value is not None and value is not False
