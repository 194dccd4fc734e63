"""One request as the loopback provider takes it in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Api: TypeAlias = Literal["anthropic", "chat", "responses", "gemini"]


@dataclass(frozen=True)
class Asked:
    """A request to a model."""

    at_s: float
    """Since the provider began."""
    number: int
    """0-based, among the requests to a model."""
    path: str
    api: Api
    model: str
    stream: bool
    tools: tuple[str, ...]
    """The names of what is offered."""
    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[Any]:
        """What was said so far, in the API's own form."""
        for key in ("messages", "input", "contents"):
            if isinstance(self.body.get(key), list):
                return list(self.body[key])
        return []

    @property
    def text(self) -> str:
        """The whole body, for tests that look for a word in it."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def turn(self) -> int:
        """How many answers of the model the request has, which tells how far an attempt is."""
        return sum(_is_of_the_model(one) for one in self.messages)


def _is_of_the_model(message: Any) -> bool:
    if not isinstance(message, Mapping):
        return False
    return message.get("role") in ("assistant", "model") or message.get("type") == "function_call"


def api_of(path: str) -> Api | None:
    """Tell which API a path is of; `None`: of none that is played here."""
    if path.endswith("/messages"):
        return "anthropic"
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/responses"):
        return "responses"
    return "gemini" if "enerateContent" in path else None


def asked(
    *, at_s: float, number: int, path: str, api: Api, raw: bytes, headers: Mapping[str, str]
) -> Asked:
    """Read a request."""
    body = json.loads(raw or b"{}")
    model = str(body.get("model", ""))
    stream = bool(body.get("stream"))
    if api == "gemini":
        model = path.rpartition("/models/")[2].partition(":")[0]
        stream = "stream" in path
    tools = tuple(_offered(api, body.get("tools") or []))
    return Asked(at_s, number, path, api, model, stream, tools, body, headers)


def _offered(api: Api, tools: list[Any]) -> list[str]:
    names: list[str] = []
    for one in tools:
        match api:
            case "anthropic":
                names.append(one.get("name", ""))
            case "chat":
                names.append(one.get("function", {}).get("name", ""))
            case "responses" if one.get("type") == "namespace":
                names += [f"{one.get('name')}::{inner.get('name')}" for inner in one["tools"]]
            case "responses":
                names.append(one.get("name") or one.get("type", ""))
            case "gemini":
                declared = one.get("functionDeclarations") or one.get("function_declarations") or []
                names += [inner.get("name", "") for inner in declared]
    return names
