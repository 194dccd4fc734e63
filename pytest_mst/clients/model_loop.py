"""One model at work on one input: asked, its calls made, shown the results, until it answers."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.limits import Limits
from pytest_mst.clients.tool_offer import OfferedTool, offered_tools
from pytest_mst.clients.tool_result import encodable, shown_to_model
from pytest_mst.domain.ending import InfrastructureError, Trial
from pytest_mst.domain.tool_call import ToolCallError
from pytest_mst.domain.trace import TraceEvent
from pytest_mst.providers.asker import Asker
from pytest_mst.providers.endpoint import EndpointError, endpoint_for
from pytest_mst.providers.failure import FailureKind, ProviderError, ProviderFailure
from pytest_mst.providers.price import priced

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
    from pydantic_ai.models import ModelRequestParameters

CUT_AT_LIMIT = "the model's answer was cut at its limit of output tokens (maxTokens)"
_CONTEXT_IS_FULL = "model_context_window_exceeded"
"""What Anthropic calls it that an answer filled the context; pydantic-ai has it as `length`."""
REFUSED = "the model, or a filter before it, refused to answer"


class ModelLoop:
    """The turns of one attempt, or of one input of a conversation."""

    def __init__(self, request: ClientRequest, settings: Mapping[str, Any]) -> None:
        """Take an input that nothing was done for yet.

        Args:
            request: the attempt.
            settings: how the model is asked, as pydantic-ai names it.

        Raises:
            InfrastructureError: nothing says how the model is to be asked.

        """
        try:
            endpoint = endpoint_for(request.model, request.options, os.environ)
        except EndpointError as error:
            raise InfrastructureError.of(error.as_failure()) from error
        self._request = request
        self._settings: Any = dict(settings)
        stream = request.options.get("stream") is True
        self._asker = Asker(endpoint, request.turns, stream=stream)
        earlier = request.trace.conversation if request.turn else None
        self._messages: list[ModelMessage] = list(earlier or ())  # type: ignore[call-overload]
        self._answered = bool(self._messages)
        """Whether the model has taken anything of this attempt in."""
        self._tools_s = 0.0

    async def run(self) -> Trial:
        """Go on until the model answers, or a limit or a failure ends it.

        Raises:
            InfrastructureError: the model could not be asked, or the attempt cannot go on.

        """
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        request, instructions = self._request, self._instructions
        given = ModelRequest(
            parts=[UserPromptPart(encodable(request.input))], instructions=instructions
        )
        self._messages.append(given)
        turns_left = Limits.of(request.options).turns
        while turns_left is None or turns_left > 0:
            offered = self._offered()
            response, ending = await self._ask(offered)
            if response is None:
                return ending
            turns_left = None if turns_left is None else turns_left - 1
            self._messages.append(response)
            calls = response.tool_calls
            request.trace.answer = response.text if not calls else request.trace.answer
            if not calls or response.finish_reason == "length":
                return self._ended(response)
            returned = await self._call(calls, offered)
            self._account()
            self._messages.append(ModelRequest(parts=returned, instructions=instructions))
            request.trace.conversation = tuple(self._messages)
        return Trial(stopped_by="turns")

    @property
    def _instructions(self) -> str | None:
        system = self._request.options.get("system")
        return encodable(system) if isinstance(system, str) else None

    def _offered(self) -> dict[str, OfferedTool]:
        tools = self._request.tools
        return offered_tools((label, tools.listed(label)) for label in tools.servers)

    async def _ask(self, offered: Mapping[str, OfferedTool]) -> tuple[ModelResponse | None, Trial]:
        """Ask once; where that ended the attempt as a trial, there is no response."""
        try:
            response = await self._asker.ask(self._messages, self._settings, _parameters(offered))
        except ProviderError as error:
            return None, self._trial_of(error.failure)
        finally:
            self._account()
        self._answered = True
        return response, Trial()

    def _trial_of(self, failure: ProviderFailure) -> Trial:
        """Say how it ends that the model did not answer, where that is the attempt's own doing.

        Raises:
            InfrastructureError: it is not.

        """
        match failure.kind:
            case FailureKind.CONTEXT if self._answered:
                return Trial(stopped_by="context")
            case FailureKind.REFUSED:
                self._request.trace.notes.append(REFUSED)
                return Trial()
            case _:
                accepted = None if self._answered else False
                told = failure.infrastructure(accepted=accepted)
                raise InfrastructureError.of(told)

    def _ended(self, response: ModelResponse) -> Trial:
        trace = self._request.trace
        trace.answer = response.text or ""
        trace.conversation = tuple(self._messages)
        if (response.provider_details or {}).get("finish_reason") == _CONTEXT_IS_FULL:
            return Trial(stopped_by="context")
        match response.finish_reason:
            case "length":
                trace.notes.append(CUT_AT_LIMIT)
            case "content_filter":
                trace.notes.append(REFUSED)
            case "error":
                return Trial(client_error="the model ended its answer with an error of its own")
            case _:
                pass
        return Trial()

    def _account(self) -> None:
        """Say what was used so far, so that it is known however the attempt ends."""
        spent = replace(self._asker.usage, tools_ms=round(self._tools_s * 1000))
        endpoint = self._asker.endpoint
        named = self._request.model or endpoint.model
        pricing = self._request.pricing
        model = named if named in pricing else endpoint.model
        told = priced(spent, model, pricing, endpoint.api)
        self._request.trace.usage = told.to_json()  # type: ignore[assignment]  # it is JSON

    async def _call(
        self, calls: Sequence[ToolCallPart], offered: Mapping[str, OfferedTool]
    ) -> list[ToolReturnPart]:
        """Make the calls of one turn side by side, and return what the model is told of each."""
        began = time.monotonic()
        returned: dict[int, ToolReturnPart] = {}
        events = self._request.trace.events
        first = len(events)
        events.extend(_begun(call, offered) for call in calls)
        try:
            async with anyio.create_task_group() as tasks:
                for at, call in enumerate(calls):
                    tasks.start_soon(self._one, call, offered, first + at, returned, at)
        finally:
            self._tools_s += time.monotonic() - began
        return [returned[at] for at in range(len(calls))]

    async def _one(
        self,
        call: ToolCallPart,
        offered: Mapping[str, OfferedTool],
        event: int,
        returned: dict[int, ToolReturnPart],
        at: int,
    ) -> None:
        """Make one call; what goes wrong in it the model is told, and goes on."""
        from pydantic_ai.messages import ToolReturnPart

        tool, arguments = offered.get(call.tool_name), _arguments(call)
        output: Any
        if tool is None or arguments is None:
            wrong = _no_tool(call, offered) if tool is None else _no_object(call)
            output, shown, failed = {"error": {"message": wrong}}, wrong, True
        else:
            try:
                output = await self._request.tools.call_tool(
                    tool.server, tool.tool, arguments, join_id=call.tool_call_id
                )
                api = self._asker.endpoint.api
                shown, failed = shown_to_model(output, api), output.get("isError") is True
            except ToolCallError as error:
                output = {"error": {"code": error.code, "message": error.message}}
                shown, failed = encodable(f"Error {error.code}: {error.message}"), True
        events = self._request.trace.events
        events[event] = replace(events[event], output=output, is_error=failed)
        returned[at] = ToolReturnPart(
            call.tool_name,
            shown,
            call.tool_call_id,
            outcome="failed" if failed else "success",
        )


def _parameters(offered: Mapping[str, OfferedTool]) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=encodable(tool.description),
                parameters_json_schema=dict(tool.schema),
                strict=False,  # the schema is the server's, and stays as it is
            )
            for tool in offered.values()
        ]
    )


def _arguments(call: ToolCallPart) -> dict[str, Any] | None:
    """Return the arguments of a call; `None` where the model wrote no JSON object."""
    try:
        return call.args_as_dict(raise_if_invalid=True)
    except (ValueError, AssertionError):
        return None


def _begun(call: ToolCallPart, offered: Mapping[str, OfferedTool]) -> TraceEvent:
    tool = offered.get(call.tool_name)
    return TraceEvent(
        name=call.tool_name if tool is None else tool.tool,
        server=None if tool is None else tool.server,
        arguments=_arguments(call) or {},
        id=call.tool_call_id,
    )


def _no_tool(call: ToolCallPart, offered: Mapping[str, OfferedTool]) -> str:
    return f"There is no tool {call.tool_name!r}; there are: {', '.join(offered) or 'none'}"


def _no_object(call: ToolCallPart) -> str:
    return f"The arguments of {call.tool_name!r} are no JSON object; the call was not made"
