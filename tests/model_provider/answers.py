"""Answers in the form of each API: one body, or the events of a stream."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.model_provider.asked import Api, Asked
from tests.model_provider.steps import Answer, OutputLimit, Refuse, Structured, Tool

Event: TypeAlias = tuple[str | None, Any]
"""The name of a server-sent event, if it has one, and its data."""

_ids = itertools.count(1)


@dataclass(frozen=True)
class Reply:
    """What is sent, whichever way was asked for."""

    body: dict[str, Any]
    events: list[Event]


@dataclass(frozen=True)
class _Said:
    """An answer with the calls as they are sent."""

    text: str
    calls: tuple[tuple[str, Mapping[str, Any] | str, str], ...]
    """Name, arguments, id."""
    stop: str | None
    usage: tuple[int, int]
    error: str | None = None


def reply_to(asked: Asked, step: Answer | Structured | Refuse | OutputLimit) -> Reply:
    """Write an answer down."""
    return _WRITERS[asked.api](asked, _said(asked, step))


_REFUSED: Mapping[Api, str] = {
    "anthropic": "refusal",
    "chat": "content_filter",
    "responses": "content_filter",
    "gemini": "SAFETY",
}
_LIMIT: Mapping[Api, str] = {
    "anthropic": "max_tokens",
    "chat": "length",
    "responses": "max_output_tokens",
    "gemini": "MAX_TOKENS",
}


def _said(asked: Asked, step: Answer | Structured | Refuse | OutputLimit) -> _Said:
    number = next(_ids)
    match step:
        case Answer():
            calls = tuple(
                (_picked(tool, asked.tools), tool.arguments, f"call_{number}_{at}")
                for at, tool in enumerate(step.tools)
            )
            return _Said(step.text, calls, step.stop, step.usage, step.stream_error)
        case Structured():
            if asked.tools:
                calls = ((asked.tools[-1], step.content, f"call_{number}_0"),)
                return _Said("", calls, None, step.usage)
            return _Said(json.dumps(step.content), (), None, step.usage)
        case Refuse():
            return _Said(step.text, (), _REFUSED[asked.api], (10, 5))
        case OutputLimit():
            return _Said(step.text, (), _LIMIT[asked.api], (10, 5))


def _picked(tool: Tool, offered: Sequence[str]) -> str:
    if tool.name == "@any":
        return offered[0] if offered else "none"
    exact = [one for one in offered if one == tool.name]
    return (exact or [one for one in offered if one.endswith(tool.name)] or [tool.name])[0]


def _arguments(given: Mapping[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _pieces(text: str) -> list[str]:
    return [text[at : at + 12] for at in range(0, len(text), 12)]


def _anthropic(asked: Asked, said: _Said) -> Reply:
    usage = {
        "input_tokens": said.usage[0],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": said.usage[1],
    }
    blocks: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{id_}", "name": name, "input": given}
        for name, given, id_ in said.calls
    ]
    stop = said.stop or ("tool_use" if said.calls else "end_turn")
    body = {
        "id": f"msg_{next(_ids)}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }
    begun = {**body, "content": [], "stop_reason": None}
    events: list[Event] = [("message_start", {"type": "message_start", "message": begun})]
    if said.error:
        error = {"type": said.error, "message": "Overloaded"}
        return Reply(body, [*events, ("error", {"type": "error", "error": error})])
    for at, block in enumerate(blocks):
        events += _anthropic_block(at, block)
    delta = {"stop_reason": stop, "stop_sequence": None}
    events.append(
        ("message_delta", {"type": "message_delta", "delta": delta, "usage": usage}),
    )
    return Reply(body, [*events, ("message_stop", {"type": "message_stop"})])


def _anthropic_block(at: int, block: dict[str, Any]) -> list[Event]:
    empty: dict[str, Any]
    if block["type"] == "text":
        empty = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": block["text"]}]
    else:
        empty = {**block, "input": {}}
        deltas = [
            {"type": "input_json_delta", "partial_json": one}
            for one in _pieces(_arguments(block["input"]))
        ]
    kind = "content_block_delta"
    begin = {"type": "content_block_start", "index": at, "content_block": empty}
    return [
        ("content_block_start", begin),
        *((kind, {"type": kind, "index": at, "delta": one}) for one in deltas),
        ("content_block_stop", {"type": "content_block_stop", "index": at}),
    ]


def _chat(asked: Asked, said: _Said) -> Reply:
    head = {"id": f"chatcmpl-{next(_ids)}", "created": 1_700_000_000, "model": asked.model}
    usage = {
        "prompt_tokens": said.usage[0],
        "completion_tokens": said.usage[1],
        "total_tokens": sum(said.usage),
    }
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": _arguments(given)}}
        for name, given, id_ in said.calls
    ]
    stop = said.stop or ("tool_calls" if calls else "stop")
    message = {"role": "assistant", "content": said.text or None}
    choice = {
        "index": 0,
        "message": {**message, **({"tool_calls": calls} if calls else {})},
        "finish_reason": stop,
        "logprobs": None,
    }
    body = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> Event:
        one = {"index": 0, "delta": delta, "finish_reason": finish}
        return (None, {**head, "object": "chat.completion.chunk", "choices": [one]})

    events: list[Event] = [chunk({"role": "assistant", "content": ""})]
    if said.error:
        error = {"message": "fake error", "type": said.error, "code": said.error}
        return Reply(body, [*events, (None, {"error": error})])
    if said.text:
        events.append(chunk({"content": said.text}))
    for at, call in enumerate(calls):
        function: Any = call["function"]
        start = {**call, "index": at, "function": {"name": function["name"], "arguments": ""}}
        events.append(chunk({"tool_calls": [start]}))
        events += [
            chunk({"tool_calls": [{"index": at, "function": {"arguments": one}}]})
            for one in _pieces(function["arguments"])
        ]
    ended = {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    return Reply(body, [*events, chunk({}, stop), (None, ended), (None, "[DONE]")])


def _responses(asked: Asked, said: _Said) -> Reply:
    id_ = f"resp_{next(_ids)}"
    items = _response_items(id_, said)
    body = {
        "id": id_,
        "object": "response",
        "created_at": 1_700_000_000,
        "model": asked.model,
        "status": "incomplete" if said.stop else "completed",
        "output": items,
        "usage": {
            "input_tokens": said.usage[0],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said.usage[1],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sum(said.usage),
        },
        "error": None,
        "incomplete_details": {"reason": said.stop} if said.stop else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "instructions": None,
        "metadata": {},
        "temperature": 1,
        "top_p": 1,
    }
    numbers = itertools.count()

    def event(kind: str, **more: Any) -> Event:
        return (kind, {"type": kind, "sequence_number": next(numbers), **more})

    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    events = [event("response.created", response={**begun, "incomplete_details": None})]
    if said.error:
        failed = {"code": said.error, "message": f"fake {said.error}"}
        broken = {**begun, "status": "failed", "error": failed}
        return Reply(body, [*events, event("response.failed", response=broken)])
    for at, item in enumerate(items):
        events += _response_item_events(event, at, item)
    last = "response.incomplete" if said.stop else "response.completed"
    return Reply(body, [*events, event(last, response=body)])


def _response_items(id_: str, said: _Said) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if said.text:
        content = [{"type": "output_text", "text": said.text, "annotations": []}]
        message = {"type": "message", "id": f"msg_{id_}", "role": "assistant"}
        items.append({**message, "status": "completed", "content": content})
    for name, given, call_id in said.calls:
        item = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": _arguments(given),
            "status": "completed",
        }
        if "::" in name:
            item["namespace"], item["name"] = name.split("::", 1)
        items.append(item)
    return items


def _response_item_events(
    event: Callable[..., Event], at: int, item: dict[str, Any]
) -> list[Event]:
    where = {"output_index": at, "item_id": item["id"]}
    begun = {**item, "status": "in_progress"}
    if item["type"] == "message":
        text = item["content"][0]["text"]
        part = {"type": "output_text", "text": "", "annotations": []}
        inner = [
            event("response.content_part.added", **where, content_index=0, part=part),
            event("response.output_text.delta", **where, content_index=0, delta=text, logprobs=[]),
            event("response.output_text.done", **where, content_index=0, text=text, logprobs=[]),
            event(
                "response.content_part.done",
                **where,
                content_index=0,
                part=item["content"][0],
            ),
        ]
        begun["content"] = []
    else:
        given, begun["arguments"] = item["arguments"], ""
        kind = "response.function_call_arguments"
        inner = [
            event(f"{kind}.delta", **where, delta=given),
            event(f"{kind}.done", **where, arguments=given, name=item["name"]),
        ]
    return [
        event("response.output_item.added", output_index=at, item=begun),
        *inner,
        event("response.output_item.done", output_index=at, item=item),
    ]


def _gemini(asked: Asked, said: _Said) -> Reply:
    parts: list[dict[str, Any]] = [{"text": said.text}] if said.text else []
    parts += [
        {"functionCall": {"name": name, "args": given, "id": id_}}
        for name, given, id_ in said.calls
    ]
    usage = {
        "promptTokenCount": said.usage[0],
        "candidatesTokenCount": said.usage[1],
        "totalTokenCount": sum(said.usage),
    }
    stop = said.stop or "STOP"

    def chunk(some: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
        content = {"role": "model", "parts": some}
        one: dict[str, Any] = {"content": content, "index": 0}
        if finish:
            one["finishReason"] = finish
        return {"candidates": [one], "usageMetadata": usage, "modelVersion": asked.model}

    if said.error:
        error = {"code": 429, "status": said.error, "message": "fake error"}
        return Reply({"error": error}, [(None, {"error": error})])
    events: list[Event] = [(None, chunk([part])) for part in parts]
    return Reply(chunk(parts, stop), [*events, (None, chunk([{"text": ""}], stop))])


_WRITERS: Mapping[Api, Callable[[Asked, _Said], Reply]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "responses": _responses,
    "gemini": _gemini,
}
