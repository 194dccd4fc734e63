"""What a client says to a server, and everything that it hears back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from tests.proxy.wire.line import MODERN, Line, Members, members, written_anew

Era = Literal["modern", "legacy"]

LEGACY = "2025-11-25"
CLIENT = {"name": "raw", "version": "1"}
ANSWERED_WITHIN_S = 20.0
UNASKED_FOR = "what no request asked for"
"""The name of the part of a conversation that is no answer."""


@dataclass(frozen=True)
class Ask:
    """A request; `what` names it among the others."""

    what: str
    method: str
    params: Mapping[str, Any] | None = None
    until: str = ""
    """What its answer is to contain; it is asked again until it does."""

    @property
    def tool(self) -> object:
        """The tool that is called; `None` where none is."""
        if self.method != "tools/call":
            return None
        return (self.params or {}).get("name")


@dataclass
class Heard:
    """What a client heard: the answer to each request, and in order whatever else came."""

    keeps_bytes: bool
    answers: dict[str, Members] = field(default_factory=dict)
    unasked: list[Members] = field(default_factory=list)

    def parts(self, *, anew: bool) -> dict[str, str]:
        """Give each answer as one text, and what no request asked for as one for each method.

        Ids are left out: that an answer has its request's is checked when it comes, and those of
        a server's own requests are each connection's own. So is the order of the members of the
        message itself, which servers and the SDK choose differently.

        Args:
            anew: have the members written anew, to compare with objects that were never text.

        """
        texts = {what: _text(answer, anew=anew) for what, answer in self.answers.items()}
        by_method: dict[str, list[str]] = {}
        for one in self.unasked:
            by_method.setdefault(json.loads(one["method"]), []).append(_text(one, anew=anew))
        for method, told in by_method.items():
            texts[f"{UNASKED_FOR}: {method}"] = "\n".join(told)
        return texts


def _text(message: Members, *, anew: bool) -> str:
    return "\n".join(
        f"{name}: {written_anew(text) if anew else text}"
        for name, text in sorted(message.items())
        if name != "id"
    )


def ids() -> Iterator[str | int]:
    """Give ids of all kinds: 0, text, text that looks like a number, big numbers."""
    for number in itertools.count():
        yield from (number, f"id-{number}", str(number), 2**40 + number)


class Conversation:
    """One client on one connection."""

    def __init__(
        self, line: Line, era: Era, answers: Mapping[str, Any], capabilities: Mapping[str, Any]
    ) -> None:
        self._line = line
        self._era = era
        self._answers = answers
        self._capabilities = capabilities
        self.heard = Heard(line.keeps_bytes)

    async def hold(self, asked: Sequence[Ask]) -> Heard:
        """Meet the server, ask everything, one after the other."""
        keys = ids()
        for one in (self._hello(), *asked):
            with anyio.fail_after(ANSWERED_WITHIN_S):
                answer = await self._ask(next(keys), one)
                while one.until not in answer.get("result", ""):
                    answer = await self._ask(next(keys), one)
            self.heard.answers[one.what] = answer
            if one.method == "initialize":
                await self._line.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self.heard

    def _hello(self) -> Ask:
        if self._era == "modern":
            return Ask("hello", "server/discover", {})
        hello = {
            "protocolVersion": LEGACY,
            "capabilities": self._capabilities,
            "clientInfo": CLIENT,
        }
        return Ask("hello", "initialize", hello)

    async def _ask(self, key: str | int, asked: Ask) -> Members:
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": key, "method": asked.method}
        if asked.params is not None or self._era == "modern":
            message["params"] = self._enveloped(asked.params or {})
        await self._line.send(message)
        while True:
            came = members(await self._line.receive())
            if "method" not in came:
                assert json.loads(came["id"]) == key, asked
                assert type(json.loads(came["id"])) is type(key), asked
                return came
            self.heard.unasked.append(came)
            if "id" in came:
                await self._answer(came)

    def _enveloped(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if self._era == "legacy":
            return dict(params)
        meta = params.get("_meta")
        envelope = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": CLIENT,
            "io.modelcontextprotocol/clientCapabilities": self._capabilities,
        }
        return {**params, "_meta": {**(meta or {}), **envelope}}

    async def _answer(self, request: Members) -> None:
        result = self._answers[json.loads(request["method"])]
        key = json.loads(request["id"])
        await self._line.send({"jsonrpc": "2.0", "id": key, "result": result})
