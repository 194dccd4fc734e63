"""Names of variants, cases and graders: as parts of paths, and as parts of pytest's node ids."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

PATH_LIMIT_BYTES = 100
"""The longest name of one folder; file systems take 255, and paths have several."""
NODE_LIMIT_CHARS = 200
"""The longest part of a node id, which pytest also puts in the environment."""

_HASH_DIGITS = 12
_KEPT_IN_PATHS = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_-])?")
_KEPT_IN_NODES = re.compile(r"[A-Za-z0-9_.-]+")
_ALTERED = re.compile(r"[^A-Za-z0-9_.-]")
_LOOKS_HASHED = re.compile(rf"-[0-9a-f]{{{_HASH_DIGITS}}}\Z", re.IGNORECASE)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
"""Names that Windows keeps for devices, with any extension."""


@lru_cache(maxsize=4096)
def safe_name(text: str) -> str:
    """Return a name for a folder that stands for this text and for no other.

    A text of lower-case letters, digits, `_`, `.` and `-` stays as it is. Any other gets a hash
    of the text at its end, so that names differ also where file systems ignore case. The name
    is no device name, begins with neither `.` nor `-`, does not end with `.`, and has at most
    `PATH_LIMIT_BYTES` bytes, all of them ASCII.
    """
    if (
        _KEPT_IN_PATHS.fullmatch(text)
        and len(text) <= PATH_LIMIT_BYTES
        and not _LOOKS_HASHED.search(text)
        and not _DEVICE.match(text)
    ):
        return text
    stem = _ALTERED.sub("_", text[:PATH_LIMIT_BYTES])
    if stem[:1] in (".", "-"):
        stem = "_" + stem[1:]
    if _DEVICE.match(stem):
        stem = "_" + stem
    return _with_hash(stem, text, PATH_LIMIT_BYTES)


@lru_cache(maxsize=4096)
def node_name(text: str) -> str:
    """Return a part of a node id that stands for this text and for no other.

    Letters keep their case; a text with other characters than `[A-Za-z0-9_.-]`, or longer than
    `NODE_LIMIT_CHARS`, gets a hash of the text at its end.
    """
    if (
        _KEPT_IN_NODES.fullmatch(text)
        and len(text) <= NODE_LIMIT_CHARS
        and not _LOOKS_HASHED.search(text)
    ):
        return text
    return _with_hash(_ALTERED.sub("_", text[:NODE_LIMIT_CHARS]), text, NODE_LIMIT_CHARS)


def _with_hash(stem: str, text: str, limit: int) -> str:
    """End a name with the text's hash.

    A text that itself ends like this is never kept as it is, so that it cannot be taken for
    another's name.
    """
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_DIGITS]
    return f"{stem[: limit - _HASH_DIGITS - 1] or '_'}-{digest}"
