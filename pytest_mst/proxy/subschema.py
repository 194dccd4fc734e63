"""Parts of a JSON Schema: following references inside it, and holding two parts at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

_LARGER_COUNTS = {"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"}
_SMALLER_COUNTS = {"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"}


class UnresolvedReferenceError(Exception):
    """A reference leads out of the schema's own document, or nowhere."""


def resolved(root: Any, reference: str) -> Any:
    """Follow a reference into the schema's own document; nothing is ever fetched.

    Raises:
        UnresolvedReferenceError: the reference leads elsewhere, or nowhere.

    """
    if not reference.startswith("#"):
        raise UnresolvedReferenceError(reference)
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return _anchored(root, reference[1:])
    node = root
    for part in unquote(reference[2:]).split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, Mapping) and key in node:
            node = node[key]
        else:
            raise UnresolvedReferenceError(reference)
    return node


def _anchored(root: Any, anchor: str) -> Any:
    parts = [root]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            if part.get("$anchor") == anchor:
                return part
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)
    raise UnresolvedReferenceError(anchor)


def merged(left: Any, right: Any) -> Any:
    """Give one schema that asks what both ask, as far as one can; the result is to be checked."""
    if left is False or right is False:
        return False
    if left is True or not left:
        return right
    if right is True or not right:
        return left
    whole = dict(left)
    for name, value in right.items():
        whole[name] = _both(name, whole[name], value) if name in whole else value
    return whole


def _both(name: str, left: Any, right: Any) -> Any:
    if left == right:
        return left
    if name in {"properties", "patternProperties", "$defs", "definitions"}:
        shared = {key: merged(left[key], right[key]) for key in left.keys() & right.keys()}
        return {**left, **right, **shared}
    if name == "required":
        return [*left, *(one for one in right if one not in left)]
    if name in {"items", "additionalProperties", "contains"} and not isinstance(left, list):
        return merged(left, right)
    if name in {"allOf", "anyOf", "oneOf"}:
        return [*left, *right] if name == "allOf" else right
    if name == "enum":
        return [one for one in right if one in left]
    if name == "type":
        return _shared_types(left, right)
    if name in _LARGER_COUNTS:
        return max(left, right)
    if name in _SMALLER_COUNTS:
        return min(left, right)
    return right


def _shared_types(left: Any, right: Any) -> Any:
    ours = {left} if isinstance(left, str) else set(left)
    theirs = [right] if isinstance(right, str) else list(right)
    if "number" in ours:
        ours.add("integer")
    if "number" in theirs and "integer" in ours:
        theirs.append("integer")
    return [name for name in theirs if name in ours]
