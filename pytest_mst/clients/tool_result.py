"""A tool's result as a model is shown it: what its API can take stays what it is."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_mst.providers.endpoint import Api

_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_FILES: Mapping[Api, frozenset[str]] = {
    "anthropic": _IMAGES | {"application/pdf"},
    "openai": _IMAGES | {"application/pdf", "audio/wav", "audio/mpeg"},
    "openai-responses": _IMAGES | {"application/pdf"},
    "google": _IMAGES
    | {"application/pdf", "audio/wav", "audio/mpeg", "audio/ogg", "audio/flac", "audio/aac"},
}
"""The kinds of files that each API takes as what a tool returned."""


def encodable(text: str) -> str:
    """Return a text as it can be sent: lone surrogates, which no request can hold, are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shown_to_model(result: Mapping[str, Any], api: Api) -> Any:
    """Return a `tools/call` result as the content of a tool's answer.

    Text stays text; images, audio and documents become files. What no API takes is said in words,
    so that the model knows that it is there. Structured content that the text does not have
    already follows as JSON.

    Args:
        result: as the server sent it.
        api: the model's.

    Returns:
        A text, or a list of texts and files.

    """
    content = result.get("content")
    blocks = content if isinstance(content, Sequence) and not isinstance(content, str) else ()
    shown = [part for block in blocks for part in _block(block, _FILES[api])]
    structured = result.get("structuredContent")
    if structured is not None and not _says(shown, structured):
        shown.append(json.dumps(structured, ensure_ascii=False))
    texts = [part for part in shown if isinstance(part, str)]
    if len(texts) == len(shown):
        return encodable("\n".join(texts))
    return [encodable(part) if isinstance(part, str) else part for part in shown]


def _block(block: Any, taken: frozenset[str]) -> Iterator[Any]:
    if not isinstance(block, Mapping):
        return
    match block.get("type"):
        case "text":
            yield str(block.get("text", ""))
        case "image" | "audio":
            yield _file(block.get("data"), str(block.get("mimeType", "")), block, taken)
        case "resource" if isinstance(block.get("resource"), Mapping):
            yield _resource(block["resource"], taken)
        case _:
            yield json.dumps(block, ensure_ascii=False)


def _resource(resource: Mapping[str, Any], taken: frozenset[str]) -> Any:
    uri = str(resource.get("uri", ""))
    if isinstance(resource.get("text"), str):
        return f"{uri}\n{resource['text']}"
    return _file(resource.get("blob"), str(resource.get("mimeType", "")), {"uri": uri}, taken)


def _file(data: object, media_type: str, about: Mapping[str, Any], taken: frozenset[str]) -> Any:
    """Return a file of a kind that the model's API takes, else what there is to say of it."""
    try:
        content = base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except (binascii.Error, ValueError):
        content = None
    if content is not None and media_type in taken:
        from pydantic_ai.messages import BinaryContent

        return BinaryContent(content, media_type=media_type)
    size = "that cannot be read" if content is None else f"of {len(content)} bytes"
    named = f" {about['uri']}" if about.get("uri") else ""
    return f"[a file{named} {size}, {media_type or 'of an unknown kind'}, is not shown]"


def _says(shown: Sequence[Any], structured: object) -> bool:
    """Tell whether a text among what is shown is the structured content already."""
    for part in shown:
        if isinstance(part, str):
            try:
                if json.loads(part) == structured:
                    return True
            except (ValueError, RecursionError):
                continue
    return False
