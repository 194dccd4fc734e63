"""What a client is: it acts on one input, through a boundary, and says how that ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.eval_config import ModelPrice
from pytest_mst.domain.json_value import JsonObject, JsonValue
from pytest_mst.domain.tool_call import ToolCaller
from pytest_mst.domain.trace import Trace, TraceEvent, TraceEvidence
from pytest_mst.domain.turn_retry import NoRetry, TurnRetry


@dataclass(slots=True)
class TraceLog:
    """The trace as it grows, so that an attempt that is cut short keeps what there was."""

    servers: tuple[str, ...]
    evidence: TraceEvidence = "structured"
    answer: str | None = None
    events: list[TraceEvent] = field(default_factory=list)
    usage: Mapping[str, JsonValue] | None = None
    outside: list[str] = field(default_factory=list)
    """The client's own tools that stayed on and go round the proxy."""
    recovered: list[JsonObject] = field(default_factory=list)
    """Errors of the model's API that the client got over by itself."""
    notes: list[str] = field(default_factory=list)
    """What is not known exactly of what such a client does, for people."""
    conversation: object = None
    """What the client has to know of the inputs before, where a conversation goes on; its own
    business, and stored nowhere."""
    hidden: dict[str, str] = field(default_factory=dict, compare=False)
    """What would let anyone in while the attempt lasts, such as a server's address, and what is
    shown in its place; stored nowhere."""
    failing: InfrastructureFailure | None = None
    """What is failing around the client just now: how the attempt ended, should it be cut off
    while it lasts, for example because the client goes on asking an API that has no time."""

    def copy(self) -> TraceLog:
        """Return one that grows on its own from here."""
        return replace(
            self,
            events=self._events_only(),
            outside=list(self.outside),
            recovered=list(self.recovered),
            notes=list(self.notes),
        )

    def check(self) -> None:
        """Take out what is no part of a trace.

        Raises:
            TypeError: there was such a part; the error names the first.

        """
        events: Any = self.events  # what a client written by somebody else put there
        answer: Any = self.answer
        if not isinstance(events, list | tuple):
            self.events = []
            msg = f"request.trace.events is {type(events).__name__}; it is a list of TraceEvents"
            raise TypeError(msg)
        wrong = [one for one in events if not isinstance(one, TraceEvent)]
        if wrong:
            self.events = self._events_only()
            msg = f"request.trace.events holds {type(wrong[0]).__name__}; it holds TraceEvents"
            raise TypeError(msg)
        if answer is not None and not isinstance(answer, str):
            self.answer = None
            msg = f"request.trace.answer is {type(answer).__name__}; it is a text"
            raise TypeError(msg)

    def finished(self) -> Trace:
        """Return what there is as a trace that no longer changes; what is no part is left out."""
        return Trace(
            answer=self.answer if isinstance(self.answer, str) else None,
            events=tuple(self._events_only()),
            servers=self.servers,
            evidence=self.evidence,
            usage=self.usage,
            outside=tuple(dict.fromkeys(self.outside)),
            recovered=tuple(self.recovered),
            notes=tuple(dict.fromkeys(self.notes)),
        )

    def _events_only(self) -> list[TraceEvent]:
        events: Any = self.events
        if not isinstance(events, list | tuple):
            return []
        return [one for one in events if isinstance(one, TraceEvent)]


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a client is given for one attempt."""

    input: str
    """As a user would say it."""
    trial: int
    """0-based."""
    trial_id: str
    """Unique to this attempt, and safe to use in any text."""
    model: str | None
    options: JsonObject
    """`clientOptions`, the case's over the variant's over the eval's."""
    tools: ToolCaller
    """The way to the servers: the only one."""
    trace: TraceLog
    """Where the client says what it did."""
    attempt_try: int = 0
    """Which try of this input it is, 0-based: one before it is known to have had no effect."""
    turn: int | None = None
    """Which input of a conversation it is, 0-based; `None` where there is only this one."""
    session: Any = None
    """The boundary itself, for clients that want an MCP session: `session.transport(label)` in this
    process, `await session.url(label)` or `await session.command(label)` for other programs."""
    turns: TurnRetry = field(default_factory=NoRetry)
    """Waits before a request to a model is made again."""
    pricing: Mapping[str, ModelPrice] = field(default_factory=dict)
    """The eval's own prices, by model."""


class Client(Protocol):
    """A client. One object serves many attempts, several at once; it keeps nothing of them.

    A client that asks an API may also have `endpoint(options, model)`, which returns a text that
    stands for the API and what its limits are counted by, with no secret in it. Attempts with
    the same endpoint wait together when it asks to be left alone.

    A client that can have one connection only, for all its attempts, says so with the attribute
    `shares_connection = True`. `request.session` is then the same for the attempts of a variant,
    also those that overlap, and stays open when one ends: so does a session that the client
    opened there. Nothing in a call tells whose it is, so it is the attempt's whose
    `request.trace` has it, best with the id that the client gives the call. What no trace has
    is nobody's, and makes the grader of writes answer *unknown* for the attempts that were under
    way. Such a client keeps `maxToolCalls` itself under another name, and cannot be run by a
    test's body.

    A client may have `async preflight(options, model)`: asked once for each set of options and
    model in use, before the first attempt. It returns an `InfrastructureFailure` where it is
    certain that no attempt can be made with them (no key, a program that is not there), else
    `None`. It costs nothing, or next to nothing.
    """

    @property
    def name(self) -> str:
        """The name that eval configs use."""
        ...

    async def run(self, request: ClientRequest) -> Trial:
        """Act on the input and say how that ended.

        Raises:
            InfrastructureError: something around the client broke; the attempt is no trial.
            OptionsError: `options` are not what this client takes.

        """
        ...


def shares_connection(client: Client) -> bool:
    """Tell whether a client has one connection for all its attempts."""
    return getattr(client, "shares_connection", False) is True


async def preflight_of(
    client: Client, options: JsonObject, model: str | None
) -> InfrastructureFailure | None:
    """Let a client say why no attempt can be made with these options and model, where it can."""
    check = getattr(client, "preflight", None)
    failure: InfrastructureFailure | None = None
    if callable(check):
        failure = await check(options, model)
    return failure


def endpoint_of(client: Client, options: JsonObject, model: str | None) -> str:
    """Return what stands for the API that a client asks; by default the client and its model."""
    says = getattr(client, "endpoint", None)
    if callable(says):
        return str(says(options, model))
    return client.name if model is None else f"{client.name}/{model}"
