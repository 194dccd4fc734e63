"""Why a model stopped, and what an error of its API's is, as the APIs say it in passing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_mst.providers.answer_reader import AnswerReader
from pytest_mst.providers.exchange import Exchange
from pytest_mst.providers.failure import FailureKind


def read(*messages: Mapping[str, Any], is_stream: bool, status: int = 200) -> Exchange:
    exchange = Exchange(0, "POST", "/x", model_call=True, status=status)
    reader = AnswerReader(exchange, is_stream=is_stream)
    for message in messages:
        text = json.dumps(message)
        reader.feed(f"data: {text}\n\n".encode() if is_stream else text.encode())
    reader.end()
    return exchange


WHOLE: Mapping[str, Mapping[str, Any]] = {
    "end_turn": {"type": "message", "stop_reason": "end_turn", "usage": {}},
    "length": {"choices": [{"index": 0, "finish_reason": "length"}]},
    "max_output_tokens": {
        "object": "response",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    },
    "completed": {"object": "response", "status": "completed", "incomplete_details": None},
    "SAFETY": {"candidates": [{"finishReason": "SAFETY"}]},
    "PROHIBITED_CONTENT": {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
}
STREAMS: Mapping[str, list[Mapping[str, Any]]] = {
    "refusal": [
        {"type": "message_start", "message": {"stop_reason": None}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "no"}},
        {"type": "message_delta", "delta": {"stop_reason": "refusal"}},
        {"type": "message_stop"},
    ],
    "content_filter": [
        {"choices": [{"delta": {"content": "n"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "content_filter"}]},
        {"choices": [], "usage": {"prompt_tokens": 1}},
    ],
    "max_output_tokens": [
        {"type": "response.created", "response": {"object": "response", "status": "in_progress"}},
        {"type": "response.incomplete", "response": WHOLE["max_output_tokens"]},
    ],
    "MAX_TOKENS": [
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
        {"candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}]},
    ],
}


@pytest.mark.parametrize("finish", WHOLE)
def test_an_answer_says_why_the_model_stopped(finish: str) -> None:
    assert read(WHOLE[finish], is_stream=False).finish == finish


@pytest.mark.parametrize("finish", STREAMS)
def test_a_stream_says_why_the_model_stopped(finish: str) -> None:
    assert read(*STREAMS[finish], is_stream=True).finish == finish


def test_a_stream_that_broke_off_does_not_say_it() -> None:
    assert read(STREAMS["MAX_TOKENS"][0], is_stream=True).finish is None


def test_a_key_that_gemini_refuses_is_known_by_the_reason_of_its_400() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    error = {"code": 400, "message": "words", "status": "INVALID_ARGUMENT", "details": details}
    assert read({"error": error}, is_stream=False, status=400).kind is FailureKind.AUTH
    plain = {**error, "details": [None, {"@type": "another"}]}
    assert read({"error": plain}, is_stream=False, status=400).kind is FailureKind.REJECTED


@pytest.mark.parametrize(
    ("delay", "expected"), [("17s", 17.0), ("0.5s", 0.5), ("soon", None), ("-1s", None), (7, 7.0)]
)
def test_how_long_gemini_wants_to_be_left_alone(delay: object, expected: float | None) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}
    busy = read({"error": error}, is_stream=False, status=429)
    assert (busy.kind, busy.retry_after_s) == (FailureKind.RATE_LIMIT, expected)
