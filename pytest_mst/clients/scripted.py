"""The `scripted` client: does what its script says, for real, through the boundary.

It stands in for a model where the rest is to be tested: a tool's behaviour, a grader, a whole
run. Its steps also do what clients must not: hide a call, claim one, crash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import anyio

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.limits import LIMITS, Limits
from pytest_mst.clients.script import (
    LAST_TEXT,
    Answer,
    Call,
    Claim,
    ClientErrors,
    Fail,
    Hidden,
    Raise,
    Sleep,
    Step,
    Stop,
    check_script,
    near,
    parse_script,
)
from pytest_mst.domain.ending import InfrastructureError, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.placeholder import filled
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.trace import TraceEvent

_KEYS = ("script", "scripts", *LIMITS)


class ScriptedError(Exception):
    """What a `raise` step throws."""


class ScriptedClient:
    """Does what `clientOptions.script` says, or a script of its own."""

    name = "scripted"

    def __init__(self, script: Sequence[Mapping[str, Any]] | None = None) -> None:
        """Make a client.

        Args:
            script: steps that stand in for those of the options, for use in Python.

        """
        self._own: JsonObject = {} if script is None else {"script": script}

    def _script_of(self, options: JsonObject) -> JsonObject:
        return self._own or options

    def check(self, options: JsonObject) -> None:
        """Look at the options before anything is started.

        Raises:
            OptionsError: a step, a limit or a key is not one.

        """
        Limits.of(options)
        for key in options:
            if key not in _KEYS:
                raise OptionsError(key, f"nothing{near(key, _KEYS)}; valid: {', '.join(_KEYS)}")
        check_script(self._script_of(options))

    async def run(self, request: ClientRequest) -> Trial:
        """Do the steps of this trial's script.

        Raises:
            InfrastructureError: a `fail` step, or what the boundary raises.
            ScriptedError: a `raise` step.
            OptionsError: the script is not one.

        """
        playing = _Playing(request)
        turns = Limits.of(request.options).turns
        script = filled(self._script_of(request.options), request.trial_id)
        steps = parse_script(script, request.trial)
        for step in steps if request.turn is None else _of_turn(steps, request.turn):
            if not isinstance(step, Sleep):
                if turns == 0:
                    return Trial(stopped_by="turns")
                turns = None if turns is None else turns - 1
            ending = await playing.do(step)
            if ending is not None:
                return ending
        return Trial()


def _of_turn(steps: Sequence[Step], turn: int) -> Sequence[Step]:
    """Return the steps for one input of a conversation: each goes on until it is answered."""
    ends = [at + 1 for at, step in enumerate(steps) if isinstance(step, Answer)]
    bounds = [0, *ends]
    start = bounds[turn] if turn < len(bounds) else len(steps)
    return steps[start : ends[turn] if turn < len(ends) else len(steps)]


class _Playing:
    """One script under way."""

    def __init__(self, request: ClientRequest) -> None:
        self._request = request
        earlier = request.trace.events[-1:] if request.turn else []
        self._last_text = "".join(_text_of(event.output) for event in earlier)
        self._join_prefix = "call" if request.turn is None else f"turn-{request.turn}-call"
        self._calls = 0

    async def do(self, step: Step) -> Trial | None:
        """Do one step; return the ending where the step is one."""
        match step:
            case Call():
                await self._call(step, traced=True)
            case Hidden():
                await self._call(step, traced=False)
            case Claim():
                event = TraceEvent(name=step.tool, server=step.server, arguments=step.arguments)
                self._request.trace.events.append(event)
            case Answer():
                self._request.trace.answer = step.text.replace(LAST_TEXT, self._last_text)
            case ClientErrors():
                return Trial(client_error=step.text)
            case Stop():
                return Trial(stopped_by=step.limit)
            case Fail():
                self._fail(step)
            case Raise():
                raise ScriptedError(step.text)
            case Sleep():
                await anyio.sleep(step.duration_s)
            case _:
                assert_never(step)
        return None

    def _fail(self, step: Fail) -> None:
        if step.tries is None or self._request.attempt_try < step.tries:
            raise InfrastructureError.of(step.failure, step.retry)

    async def _call(self, step: Call | Hidden, *, traced: bool) -> None:
        join_id = f"{self._join_prefix}-{self._calls}"
        self._calls += 1
        output: Any
        is_error = False
        try:
            output = await self._request.tools.call_tool(
                step.server, step.tool, step.arguments, join_id=join_id
            )
        except ToolCallError as error:
            output = {"error": {"code": error.code, "message": error.message}}
            is_error = True
        self._last_text = _text_of(output)
        if traced:
            self._request.trace.events.append(
                TraceEvent(
                    name=step.tool,
                    server=step.server,
                    arguments=step.arguments or {},
                    output=output,
                    is_error=is_error or output.get("isError") is True,
                    id=join_id,
                )
            )


def _text_of(result: Any) -> str:
    """Return the text blocks of a tool result, or the message of a protocol error."""
    if not isinstance(result, Mapping):
        return ""
    error = result.get("error")
    if isinstance(error, Mapping):
        return str(error.get("message", ""))
    content = result.get("content")
    if not isinstance(content, Sequence):
        return ""
    return "\n".join(
        str(block["text"]) for block in content if isinstance(block, Mapping) and "text" in block
    )
