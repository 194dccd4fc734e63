"""Reads an API's answer as it passes by: what it used, and an error inside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_mst.domain.usage import Usage
from pytest_mst.providers.exchange import Exchange, error_in, parsed, read_error

_BODY_LIMIT_BYTES = 16 * 1024 * 1024
"""Of a line, or of a whole answer; what is longer is passed on and not read."""


class AnswerReader:
    """Takes an answer in pieces and keeps counts only."""

    def __init__(self, exchange: Exchange, *, is_stream: bool) -> None:
        """Take an answer that has not begun.

        Args:
            exchange: what is found is noted there.
            is_stream: whether it is a stream of server-sent events.

        """
        self._exchange = exchange
        self._is_stream = is_stream
        self._left = b""
        self._skips = False
        self._counts: dict[str, int] = {}

    def feed(self, piece: bytes) -> None:
        """Take one more piece."""
        if self._skips:
            return
        self._left += piece
        if self._is_stream:
            *lines, self._left = self._left.split(b"\n")
            for line in lines:
                self._line(line)
        self._skips = len(self._left) > _BODY_LIMIT_BYTES
        if self._skips:
            self._left = b""

    def end(self) -> None:
        """Take note that there is no more."""
        if self._skips:
            return
        if self._is_stream:
            self._line(self._left)
        else:
            self._message(parsed(self._left))
        self._left = b""

    def _line(self, line: bytes) -> None:
        field, _, data = line.strip().partition(b":")
        if field == b"data":
            self._message(parsed(data))

    def _message(self, message: Any) -> None:
        if isinstance(message, list) and message:  # Gemini: the parts of a stream, or an error
            message = message[-1] if error_in(message) is None else message[0]
        if not isinstance(message, Mapping):
            return
        inner = message.get("response")  # OpenAI Responses, in a stream
        body = inner if isinstance(inner, Mapping) else message
        if error_in(body) is not None:
            read_error(self._exchange, body)
        begun = message.get("message")  # Anthropic, the first event of a stream
        for one in (begun if isinstance(begun, Mapping) else {}, body):
            self._count(one.get("usage") or one.get("usageMetadata"))
        self._exchange.finish = _finish(body) or self._exchange.finish

    def _count(self, usage: object) -> None:
        if not isinstance(usage, Mapping):
            return
        found = {name: _number(usage, keys) for name, keys in _COUNTS.items()}
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
        if isinstance(details, Mapping):
            found["cached"] = _number(details, ("cached_tokens",))
        self._counts.update({name: one for name, one in found.items() if one is not None})
        self._exchange.usage = self._usage()

    def _usage(self) -> Usage:
        counts = self._counts
        apart = (counts.get("read"), counts.get("written"))  # Anthropic counts them beside input
        beside = sum(one for one in apart if one is not None)
        given, said = counts.get("input"), counts.get("output")
        if said is not None:
            said += counts.get("thought", 0)
        return Usage(
            requests=1,
            input_tokens=None if given is None else given + beside,
            output_tokens=said,
            cache_read_tokens=counts.get("read", counts.get("cached")),
            cache_write_tokens=counts.get("written"),
        )


_COUNTS: Mapping[str, tuple[str, ...]] = {
    "input": ("input_tokens", "prompt_tokens", "promptTokenCount"),
    "output": ("output_tokens", "completion_tokens", "candidatesTokenCount"),
    "thought": ("thoughtsTokenCount",),
    "read": ("cache_read_input_tokens",),
    "written": ("cache_creation_input_tokens",),
    "cached": ("cachedContentTokenCount",),
}
"""What the APIs call their counts: Anthropic Messages and OpenAI Responses, OpenAI Chat, Gemini."""


def _finish(body: Mapping[str, Any]) -> str | None:
    """Return why the model stopped, where this part of its answer says it."""
    last = _first(body.get("choices")) or _first(body.get("candidates")) or body
    delta = body.get("delta")  # Anthropic, near the end of a stream
    cut = body.get("incomplete_details")  # OpenAI Responses
    blocked = body.get("promptFeedback")  # Gemini, in place of an answer
    told = (
        last.get("finish_reason"),  # OpenAI Chat
        last.get("finishReason"),  # Gemini
        body.get("stop_reason"),  # Anthropic
        delta.get("stop_reason") if isinstance(delta, Mapping) else None,
        cut.get("reason") if isinstance(cut, Mapping) else None,
        blocked.get("blockReason") if isinstance(blocked, Mapping) else None,
        body.get("status") if body.get("object") == "response" else None,
    )
    return next((one for one in told if isinstance(one, str)), None)


def _first(value: object) -> Mapping[str, Any] | None:
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, Mapping) else None


def _number(usage: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        value = usage.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
