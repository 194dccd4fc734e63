"""The servers' own names of the tools that a client reports by names of its own making."""

from __future__ import annotations

from dataclasses import replace

from pytest_mst.clients.client import ClientRequest


def with_true_names(request: ClientRequest) -> None:
    """Give each call in the trace the server and the tool that the boundary saw it go to.

    Clients alter names that their model's API does not take. Where they send their own id of a
    call with it, what the boundary saw under that id is the name.
    """
    if request.session is None:
        return
    seen = {call.join_id: call for call in request.session.calls if call.join_id is not None}
    events = request.trace.events
    for at, event in enumerate(events):
        call = seen.get(event.id)
        if call is not None and event.kind == "tool_call":
            events[at] = replace(event, name=call.tool, server=call.server, source="mcp")
