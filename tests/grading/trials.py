"""Short ways to write down trials, traces and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import ServerTools, WriteEntry, WriteMode, WriteTarget
from pytest_mst.grading.grader import TrialFacts

READ = {"annotations": {"readOnlyHint": True}}
WRITE = {"annotations": {"readOnlyHint": False}}


def case_of(**keys: Any) -> Case:
    """Read a case as a dataset holds it, with an id and an input."""
    return Case.model_validate({"id": "c", "input": "do it", **keys})


def server(label: str, *, reads: Sequence[str] = (), writes: Sequence[str] = ()) -> ServerTools:
    return ServerTools(label, {**dict.fromkeys(reads, READ), **dict.fromkeys(writes, WRITE)})


CHAT = {"chat": server("chat", reads=["list_channels"], writes=["post_message", "delete_all"])}


def entry(
    tool: str = "post_message",
    arguments: Mapping[str, Any] | None = None,
    *,
    server: str = "chat",
    seq: int = 0,
    **fields: Any,
) -> WriteEntry:
    fields.setdefault("call_seq", seq)
    fields.setdefault("mode", WriteMode.PLANNED)
    return WriteEntry(
        seq=seq,
        time="2026-01-05T10:00:00Z",
        server=server,
        tool=tool,
        arguments=arguments or {},
        reply={},
        **fields,
    )


def dispatched(
    tool: str,
    arguments: Mapping[str, Any] | None = None,
    *,
    server: str | None = None,
    **fields: Any,
) -> WriteEntry:
    sent = {"tool_name": tool, "params": arguments or {}}
    target = WriteTarget(tool, arguments or {}, server)
    return entry("run_tool", sent, target=target, **fields)


def event(
    name: str = "post_message",
    arguments: Mapping[str, Any] | None = None,
    *,
    server: str | None = "chat",
    **fields: Any,
) -> TraceEvent:
    return TraceEvent(name=name, server=server, arguments=arguments, **fields)


def facts_of(
    case: Case | None = None,
    *,
    answer: str | None = "done",
    events: Sequence[TraceEvent] = (),
    writes: Sequence[WriteEntry] = (),
    agreement: Agreement | None = None,
    modes: Mapping[str, WriteMode] | None = None,
    trace: Trace | None = None,
    **fields: Any,
) -> TrialFacts:
    return TrialFacts(
        case=case or case_of(),
        ending=Trial(),
        trace=trace or Trace(answer=answer, events=tuple(events), servers=("chat",)),
        writes=tuple(writes),
        agreement=agreement or Agreement(checked=True),
        modes=modes or {"chat": WriteMode.PLANNED},
        **fields,
    )
