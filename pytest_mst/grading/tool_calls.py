"""Graders of the tool calls in the trace: what the client's own account says it called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_mst.domain.case import ExpectedToolCall, ToolCallCount, ToolsTriggered
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, Score, Unknown
from pytest_mst.domain.trace import Trace
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.matching import ActualCall, ExpectedCall, match_calls
from pytest_mst.grading.shown import listed, named, shown_call

_NO_TRACE = (
    "there is no trace of this trial; a client that reports its tool calls, or a server behind "
    "the dry-run proxy, makes them known"
)


@dataclass(frozen=True, slots=True)
class ToolsTriggeredGrader:
    """The expected tool calls are in the trace."""

    expected: ToolsTriggered
    name: str = "toolsTriggered"

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Score the share of the required calls that were made."""
        if facts.trace.evidence == "none":
            return Unknown(self.name, _NO_TRACE)
        actual = _actual_calls(facts.trace)
        result = match_calls(
            [_expected_call(call, actual, facts.trace.servers) for call in self.expected.calls],
            actual,
            self.expected.order,
            exclusive=self.expected.exclusive,
        )
        missing = [unmet.reason("tool call") for unmet in result.unmet]
        problems = [listed(missing)] if missing else []
        surplus = [_shown(actual[right]) for right in result.surplus] if result.exclusive else []
        if surplus:
            problems.append(f"tool calls that are not expected: {listed(surplus)}")
        share = result.share
        return Score(
            self.name,
            passed=result.matched,
            value=float(result.matched) if share is None else share,
            evidence=Evidence.CALLED,
            reason="; ".join(problems) or None,
            details={
                "calls": len(actual),
                "missing": missing,
                "surplus": surplus,
            },
        )


@dataclass(frozen=True, slots=True)
class ToolCallCountGrader:
    """As many tool calls as allowed are in the trace."""

    expected: ToolCallCount
    name: str = "toolCallCount"

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Count the tool calls, whatever their tool and source."""
        if facts.trace.evidence == "none":
            return Unknown(self.name, _NO_TRACE)
        calls = facts.trace.tool_calls
        count, limits = len(calls), self.expected
        problems = []
        if limits.exact is not None and count != limits.exact:
            problems.append(f"exactly {limits.exact}")
        if limits.min is not None and count < limits.min:
            problems.append(f"at least {limits.min}")
        if limits.max is not None and count > limits.max:
            problems.append(f"at most {limits.max}")
        made = listed([named(call.server, call.name) for call in calls])
        found = f"{count} tool calls" + (f" ({made})" if made else "")
        return Score(
            self.name,
            passed=not problems,
            evidence=Evidence.CALLED,
            reason=f"expected {' and '.join(problems)}, found {found}" if problems else None,
            details={"calls": count},
        )


def _actual_calls(trace: Trace) -> list[ActualCall]:
    """Return the trace's tool calls; with one server there is no doubt whose an MCP call is."""
    only = trace.servers[0] if len(trace.servers) == 1 else None
    return [
        ActualCall(
            tool=event.name,
            server=only if event.server is None and event.source == "mcp" else event.server,
            arguments=event.arguments or {},
        )
        for event in trace.tool_calls
    ]


def _expected_call(
    expected: ExpectedToolCall, actual: Sequence[ActualCall], servers: Sequence[str]
) -> ExpectedCall:
    """Read a name as a tool's; where no call has that name, as `label.tool`."""
    server, tool = None, expected.name
    if all(call.tool != expected.name for call in actual):
        labels = {*servers, *(call.server for call in actual if call.server is not None)}
        readings = [
            (label, expected.name.removeprefix(f"{label}."))
            for label in sorted(labels)
            if expected.name.startswith(f"{label}.")
        ]
        made = {(call.server, call.tool) for call in actual}
        readings.sort(key=lambda reading: reading not in made)
        server, tool = next(iter(readings), (None, expected.name))
    return ExpectedCall(tool, server, expected.arguments, expected.required)


def _shown(call: ActualCall) -> str:
    return shown_call(call.server, call.tool, call.arguments)
