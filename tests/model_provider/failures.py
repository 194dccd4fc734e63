"""The bodies of HTTP errors, as each API writes them."""

from __future__ import annotations

from typing import Any

from tests.model_provider.asked import Api
from tests.model_provider.steps import Fail

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GEMINI = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
_OPENAI_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
_CONTEXT = {
    "anthropic": "prompt is too long: 250000 tokens > 200000 maximum",
    "openai": "This model's maximum context length is 128000 tokens. However, your messages"
    " resulted in 250000 tokens. Please reduce the length of the messages.",
    "gemini": "The input token count (1200000) exceeds the maximum number of tokens allowed"
    " (1048576).",
}


def body_of(api: Api, step: Fail) -> dict[str, Any]:
    """Return the body of an error."""
    match api:
        case "anthropic":
            return _anthropic(step)
        case "gemini":
            return _gemini(step)
        case _:
            return _openai(step)


def _anthropic(step: Fail) -> dict[str, Any]:
    kind, message = _ANTHROPIC.get(step.status, "api_error"), step.message or "fake error"
    if step.kind == "billing":
        kind = "billing_error" if step.status == 402 else "invalid_request_error"
        message = "Your credit balance is too low to access the Anthropic API."
    elif step.kind == "context":
        message = step.message or _CONTEXT["anthropic"]
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def _gemini(step: Fail) -> dict[str, Any]:
    message = step.message or (_CONTEXT["gemini"] if step.kind == "context" else "fake error")
    status = _GEMINI.get(step.status, "INTERNAL")
    return {"error": {"code": step.status, "message": message, "status": status}}


def _openai(step: Fail) -> dict[str, Any]:
    code, kind = _OPENAI_CODES.get(step.status), "invalid_request_error"
    message = step.message or "fake error"
    if step.status >= 500:
        kind = "server_error"
    if step.kind == "billing":
        code = kind = "insufficient_quota"
        message = step.message or "You exceeded your current quota."
    elif step.kind == "context":
        code = None if step.message else "context_length_exceeded"
        message = step.message or _CONTEXT["openai"]
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
