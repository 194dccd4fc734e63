"""A tool's result as a model is shown it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from pydantic_ai.messages import BinaryContent

from pytest_mst.clients.tool_result import shown_to_model as shown_by_api
from pytest_mst.providers.endpoint import APIS, Api


def shown_to_model(result: dict[str, Any], api: Api = "google") -> Any:
    return shown_by_api(result, api)


PNG = base64.b64encode(b"\x89PNG").decode()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def test_text_stays_text() -> None:
    assert shown_to_model({"content": [text("a"), text("b")]}) == "a\nb"
    assert shown_to_model({"content": []}) == ""
    assert shown_to_model({}) == ""


def test_images_audio_and_documents_stay_what_they_are() -> None:
    pdf = {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": PNG}
    shown = shown_to_model(
        {
            "content": [
                text("see"),
                {"type": "image", "data": PNG, "mimeType": "image/png"},
                {"type": "audio", "data": PNG, "mimeType": "audio/wav"},
                {"type": "resource", "resource": pdf},
            ]
        }
    )
    assert shown[0] == "see"
    assert [one.media_type for one in shown[1:]] == ["image/png", "audio/wav", "application/pdf"]
    assert all(isinstance(one, BinaryContent) and one.data == b"\x89PNG" for one in shown[1:])


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "words"}},
            "file:///a.txt\nwords",
        ),
        (
            {"type": "resource", "resource": {"uri": "x:/a", "mimeType": "a/b", "blob": PNG}},
            "[a file x:/a of 4 bytes, a/b, is not shown]",
        ),
        (
            {"type": "image", "data": "***", "mimeType": "image/png"},
            "[a file that cannot be read, image/png, is not shown]",
        ),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a"},
            '{"type": "resource_link", "uri": "file:///a", "name": "a"}',
        ),
    ],
)
def test_what_no_api_takes_is_said_in_words(block: dict[str, Any], said: str) -> None:
    assert shown_to_model({"content": [block]}) == said


def test_structured_content_follows_where_no_text_has_it_already() -> None:
    data = {"id": 1}
    both = {"content": [text('{"id": 1}')], "structuredContent": data}
    assert shown_to_model(both) == '{"id": 1}'
    other = {"content": [text("one item")], "structuredContent": data}
    assert shown_to_model(other) == 'one item\n{"id": 1}'


@pytest.mark.parametrize("api", APIS)
def test_what_an_api_does_not_take_is_said_in_words_and_no_error(api: Api) -> None:
    kinds = ("audio/flac", "image/svg+xml", "audio/wav")
    blocks = [{"type": "audio", "data": PNG, "mimeType": kind} for kind in kinds]
    shown = shown_to_model({"content": blocks}, api)
    parts = shown if isinstance(shown, list) else shown.split("\n")
    assert len(parts) == 3
    assert "image/svg+xml, is not shown" in str(parts[1])
    if api in ("anthropic", "openai-responses"):
        assert all(isinstance(one, str) for one in parts)


def test_a_lone_surrogate_is_escaped() -> None:
    assert shown_to_model({"content": [text("a \ud800 b")]}) == "a \\ud800 b"
