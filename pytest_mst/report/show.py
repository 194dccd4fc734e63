"""One attempt as people read it, from its ending to its servers' last words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never

from pytest_mst.domain.ending import Ending, InfrastructureFailure, Trial
from pytest_mst.domain.outcome import OutcomeReading
from pytest_mst.domain.score import GradeOutcome, GraderFailure, Score, Unknown
from pytest_mst.domain.trace import Trace, TraceEvent
from pytest_mst.domain.write import WriteEntry
from pytest_mst.report.attempt_view import (
    LOG_LINES,
    AttemptView,
    ServerLogTail,
)
from pytest_mst.report.attempts import stored_row
from pytest_mst.report.pair_lines import pair_lines, stored_pairs
from pytest_mst.report.score_details import details_of
from pytest_mst.report.text import shown
from pytest_mst.report.tries import retry_lines
from pytest_mst.store.encode import encode
from pytest_mst.store.read import StoredAttempt, UnreadableAttempt, WriteRecord
from pytest_mst.store.supersede import Replaced

_VALUE_CHARS = 1000
"""Of arguments, outputs, replies and details."""
_LINE_CHARS = 4096
_TEXT_LINES = 100
"""Of an answer, a reason, or a failure's own diagnostics."""


def attempt_lines(view: AttemptView, run_dir_shown: str) -> list[str]:
    """Return everything there is of an attempt; text from outside in it is safe to show.

    Args:
        view: the attempt.
        run_dir_shown: its run's folder, as its reader would write it.

    """
    lines = [*_head(view, run_dir_shown), *(_said("cannot be read", view.problems))]
    match view.stored:
        case None:
            lines += _not_there(view)
        case UnreadableAttempt() as unreadable:
            problem = f"{unreadable.path}: {unreadable.problem}"
            lines += _section("its file cannot be read", _text(problem))
        case StoredAttempt() as stored:
            lines += _stored(stored)
        case _:
            assert_never(view.stored)
    lines += _cleanups(view)
    lines += _writes(view.writes)
    if isinstance(view.stored, StoredAttempt):
        lines += _section("scores", _scores(view.stored.outcomes)) or ["scores: none"]
        lines += _agreement(view.stored)
    lines += _stderr(view)
    lines += _section("earlier attempts that were replaced", _replaced(view.earlier))
    return lines


def _head(view: AttemptView, run_dir_shown: str) -> Iterator[str]:
    attempt, plan = view.id, view.run.plan
    case, variant = shown(attempt.case), shown(attempt.variant)
    yield f"{view.locator} case {case} [{variant}] trial {attempt.trial}"
    yield f"eval {shown(plan.eval_name)}"
    yield f"run {shown(plan.run_id)} in {shown(run_dir_shown, _LINE_CHARS)}"
    for folder in view.also_in:
        yield f"also in {shown(str(folder), _LINE_CHARS)}"


def _not_there(view: AttemptView) -> Iterator[str]:
    if view.began is not None:
        at, process = shown(view.began.at), shown(view.began.worker)
        yield f"ending: none; it began {at} in process {process} and has not ended"
        return
    yield "ending: none; it is planned and never began (unstarted)"
    for stop in view.stops:
        yield f"  stopped: {shown(stop.reason)} ({shown(stop.locator)})"


def _stored(stored: StoredAttempt) -> Iterator[str]:
    record = stored.record
    started = f"started {shown(record.started_at)}, " if record.started_at else ""
    yield f"dataset {shown(record.dataset)}, {started}took {record.duration_ms / 1000:g} s"
    yield from _ending(stored.ending)
    yield from _verdict(stored)
    if stored.grading_error is not None:
        yield from _section("grading error", _text(stored.grading_error))
    yield from _section("tries", retry_lines(record.tries))
    yield from _section("read after it ended", [_reading(one) for one in record.outcome])
    if record.trace is None:
        yield "trace: none"
    else:
        yield from _trace(record.trace)


def _cleanups(view: AttemptView) -> Iterator[str]:
    """Say what is still to be cleaned up, and what was when the attempt ended."""
    for one in view.owed:
        wrote_as = shown(one.debt.trial_id)
        yield from _headed(f"not cleaned up, what was written as {wrote_as}", one.reason)
    record = view.stored.record if isinstance(view.stored, StoredAttempt) else None
    if record is None or record.cleanup_error is None:
        return
    if all(one.debt.trial_id != record.trial_id for one in view.owed):
        yield from _headed("cleaned up later; when it ended it failed", record.cleanup_error)


def _reading(reading: OutcomeReading) -> str:
    asked = f"{_tool(reading.server, reading.tool)} {_value(reading.arguments)}"
    tries = f" ({reading.tries} times in {reading.waited_ms} ms)" if reading.tries > 1 else ""
    if reading.result is None:
        return f"{asked}{tries}: {shown(reading.error or 'no result', _VALUE_CHARS)}"
    return f"{asked}{tries}: {_value(reading.result)}"


def _verdict(stored: StoredAttempt) -> Iterator[str]:
    """Say a trial's verdict, and how far it can be trusted where it is about writes."""
    graded = stored.graded
    if graded.verdict is not None:
        level = "" if graded.evidence is None else f", evidence {graded.evidence.label}"
        yield f"verdict: {graded.verdict.value}{level}"


def _ending(ending: Ending) -> Iterator[str]:
    match ending:
        case Trial():
            yield "ending: trial"
            if ending.client_error is not None:
                yield from _section("  the client errored", _text(ending.client_error))
            if ending.stopped_by is not None:
                yield f"  the client ran out of its own limit: {ending.stopped_by}"
        case InfrastructureFailure():
            again = "a retry can help" if ending.retryable else "a retry cannot help"
            yield f"ending: infrastructure failure: {ending.broke.value} ({again})"
            yield from _indented(_text(ending.reason))
            taken = {None: "unknown", True: "yes", False: "no"}[ending.accepted]
            yield f"  reaches: {ending.scope.value}; the client took the input: {taken}"
        case _:
            assert_never(ending)


def _trace(trace: Trace) -> Iterator[str]:
    servers = ", ".join(shown(label) for label in trace.servers) or "none"
    yield f"trace: {trace.evidence}, servers: {servers}"
    for number, event in enumerate(trace.events):
        yield from _indented(_event(number, event))
    yield from _section("answer", _text(trace.answer)) or ["answer: none"]
    if trace.usage is not None:
        yield f"usage: {_value(trace.usage)}"


def _event(number: int, event: TraceEvent) -> Iterator[str]:
    kind = "" if event.kind == "tool_call" and event.source == "mcp" else f"{event.kind} "
    builtin = "" if event.source == "mcp" else " (builtin)"
    arguments = "" if event.arguments is None else f" {_value(event.arguments)}"
    yield f"{number}. {kind}{_tool(event.server, event.name)}{builtin}{arguments}"
    if event.output is not None or event.is_error is not None:
        failed = "error: " if event.is_error else ""
        yield f"   -> {failed}{_value(event.output)}"


def _writes(record: WriteRecord) -> list[str]:
    lines = [line for entry in record.entries for line in _write(entry)]
    lines += [
        f"line {torn.line} cannot be read, and was a write: {shown(torn.problem)}"
        for torn in record.torn
    ]
    return _section("write record", lines) or ["write record: empty"]


def _write(entry: WriteEntry) -> Iterator[str]:
    yield (
        f"{entry.seq}. {shown(entry.time)} {entry.mode.value}"
        f" {_tool(entry.server, entry.tool)} {_value(entry.arguments)}"
    )
    if entry.target is not None:
        target = entry.target
        yield f"   target: {_tool(target.server, target.tool)} {_value(target.arguments)}"
    if entry.refused is not None:
        yield f"   refused: {entry.refused}"
    if entry.unparsed:
        yield "   unparsed: what the dispatcher was to run cannot be read"
    if entry.unclassified:
        yield "   unclassified: it was forwarded and may have written"
    yield f"   reply: {_value(entry.reply)}"


def _scores(outcomes: Iterable[GradeOutcome]) -> Iterator[str]:
    for outcome in outcomes:
        grader = shown(outcome.grader)
        match outcome:
            case Score():
                passed = "passed" if outcome.passed else "failed"
                value = "" if outcome.value is None else f", value {outcome.value:g}"
                level = "" if outcome.evidence is None else f" ({outcome.evidence.label})"
                yield from _headed(f"{grader} {passed}{level}{value}", outcome.reason)
                if details := details_of(outcome):
                    yield f"  details: {_value(details)}"
            case Unknown():
                yield from _headed(f"{grader} cannot tell", outcome.reason)
                if details := details_of(outcome):
                    yield f"  details: {_value(details)}"
            case GraderFailure():
                yield from _headed(f"{grader} could not grade", outcome.reason)
            case _:
                assert_never(outcome)


def _agreement(stored: StoredAttempt) -> Iterator[str]:
    agreement = stored.agreement
    if agreement is None:
        return
    left = [
        f"unreported write: {shown(call.name)} {_value(call.arguments)}"
        for call in stored_row(stored).unreported
    ]
    left += _left(agreement, "unrecordedWrites", "unrecorded write")
    left += pair_lines(stored_pairs(agreement))
    left += _left(agreement, "unattributedWrites", "unattributed write")
    left += _left(agreement, "contestedCalls", "call that other traces claim, too")
    if agreement.get("unclassifiedCalls"):
        left.append(f"unclassified calls: {_value(agreement['unclassifiedCalls'])}")
    if agreement.get("checked") is not True:
        left.append("the trace could not be checked against the write record")
    yield from _section("agreement", left) or ["agreement: trace and write record agree"]


def _left(agreement: Mapping[str, object], name: str, words: str) -> Iterator[str]:
    calls = agreement.get(name)
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, Mapping):
            server = call.get("server")
            tool = _tool(server if isinstance(server, str) else None, str(call.get("tool")))
            yield f"{words}: {tool} {_value(call.get('arguments'))}"


def _stderr(view: AttemptView) -> list[str]:
    detail = view.failure.detail if view.failure is not None else None
    lines = _section("detail", _text(detail))
    lines += [line for log in view.logs for line in _log(log)]
    return lines or ["server stderr: none"]


def _log(log: ServerLogTail) -> list[str]:
    where = shown(str(log.path), _LINE_CHARS)
    head = f"server stderr of {shown(log.label)}, last {LOG_LINES} lines at most of {where}"
    return _section(head, [shown(line, _VALUE_CHARS) for line in log.lines])


def _replaced(earlier: Sequence[Replaced]) -> Iterator[str]:
    for go in earlier:
        yield f"{shown(go.stamp)}:"
        yield from _indented(_earlier(go.stored))


def _earlier(stored: StoredAttempt) -> Iterator[str]:
    yield from _ending(stored.ending)
    yield from _verdict(stored)
    yield from _section("tries", retry_lines(stored.record.tries))
    yield from _section("scores", _scores(stored.outcomes))


def _tool(server: str | None, tool: str) -> str:
    return shown(tool if server is None else f"{server}.{tool}")


def _value(value: object) -> str:
    """Write a value as JSON on one line, cut to a length that can be read."""
    return shown(encode(value), _VALUE_CHARS)


def _text(text: str | None) -> list[str]:
    """Break a text from outside into lines that are safe to show."""
    if text is None:
        return []
    lines = text.split("\n")
    more = len(lines) - _TEXT_LINES
    cut = [f"... and {more} more lines"] if more > 0 else []
    return [*(shown(line, _LINE_CHARS) for line in lines[:_TEXT_LINES]), *cut]


def _said(head: str, texts: Sequence[str]) -> list[str]:
    return _section(head, [line for text in texts for line in _text(text)])


def _headed(head: str, reason: str | None) -> Iterator[str]:
    """Put a reason behind what it is the reason of: on its line, or on lines below."""
    match _text(reason):
        case []:
            yield head
        case [only]:
            yield f"{head}: {only}"
        case lines:
            yield f"{head}:"
            yield from _indented(lines)


def _section(head: str, lines: Iterable[str]) -> list[str]:
    """Put lines below a heading, further in than it is; no heading where there are none."""
    margin = head[: len(head) - len(head.lstrip())]
    below = [f"{margin}{line}" for line in _indented(lines)]
    return [f"{head}:", *below] if below else []


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)
