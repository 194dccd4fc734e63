"""The grader of writes: what the boundary recorded, and whether the client says the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pytest_mst.domain.agreement import Agreement
from pytest_mst.domain.call_pair import CallSide
from pytest_mst.domain.case import ExpectedWrites
from pytest_mst.domain.evidence import Evidence
from pytest_mst.domain.score import GradeOutcome, Score, Unknown
from pytest_mst.domain.write import WriteEntry, WriteMode
from pytest_mst.grading.grader import TrialFacts
from pytest_mst.grading.matching import (
    ActualCall,
    ExpectedCall,
    MatchResult,
    match_calls,
)
from pytest_mst.grading.shown import listed, shown_call

_UNREAD = "dispatched calls whose targets could not be read"
NOT_CHECKED = "the trace is not the client's own account, so it was not compared with the record"


@dataclass(frozen=True, slots=True)
class WritesGrader:
    """The expected writes are in the write record, and trace and record agree.

    Expectations are matched with the targets of dispatched calls. A call that was refused meets no
    expectation; one of a tool that no expectation names is too many where its arguments did not
    fit, and none where there is no such tool. One whose target could not be read meets none
    either, and is a write too many. A dispatched call of which
    nobody can tell whether it wrote meets an expectation; where no other write may be, it leaves
    the answer unknown.
    """

    name: str = "writes"

    def applies(self, facts: TrialFacts) -> bool:
        """Tell whether the case says something about writes, or the trial made one."""
        return bool(
            facts.case.expected.writes is not None
            or facts.declared_writes
            or facts.writes
            or not facts.agreement.agrees
            or facts.agreement.in_doubt
        )

    def grade(self, facts: TrialFacts) -> GradeOutcome:
        """Score the share of the required writes that were made."""
        expected = facts.case.expected.writes
        findings = _Findings()
        made = [e for e in facts.writes if e.refused is None and not e.unparsed]
        result = None if expected is None else _match(expected, made)
        if expected is not None and result is not None:
            _check_missing(facts, result, findings)
            _check_surplus(facts, made, result, findings)
        _check_agreement(facts, findings)
        if findings.unknown and not findings.wrong:
            return Unknown(self.name, "; ".join(findings.unknown))
        share = None if result is None else result.share
        return Score(
            self.name,
            passed=not findings.wrong,
            value=float(not findings.wrong) if share is None else share,
            evidence=_level(facts),
            reason="; ".join([*findings.wrong, *findings.unknown, *_unchecked(facts)]) or None,
            details=_details(facts, result),
        )


@dataclass(slots=True)
class _Findings:
    """What speaks against a pass."""

    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def _match(expected: ExpectedWrites, made: Sequence[WriteEntry]) -> MatchResult:
    return match_calls(
        [
            ExpectedCall(call.tool, call.server, call.arguments, call.required)
            for call in expected.calls
        ],
        [_actual(entry) for entry in made],
        expected.order,
        exclusive=expected.exclusive or not expected.calls,
    )


def _actual(entry: WriteEntry) -> ActualCall:
    server, tool, arguments = entry.effective
    return ActualCall(tool, server, arguments, taken_by=entry.server)


def _check_missing(facts: TrialFacts, result: MatchResult, findings: _Findings) -> None:
    """A write that is not in the record was not made, where the record would have it."""
    if facts.agreement.in_doubt:
        if result.unmet:
            missing = listed([unmet.reason("write") for unmet in result.unmet])
            findings.unknown.append(f"{missing}; it may be one that nobody knows whose it is")
        return
    seen = [u for u in result.unmet if not _out_of_sight(u.expected.server, facts)]
    unseen = [u for u in result.unmet if _out_of_sight(u.expected.server, facts)]
    if seen:
        findings.wrong.append(listed([unmet.reason("write") for unmet in seen]))
        refused = [f"{_shown(e)} ({e.refused})" for e in facts.writes if e.refused is not None]
        if refused:
            findings.wrong.append(f"refused: {listed(refused)}")
        unread = [_shown(entry) for entry in _unread(facts)]
        if unread:
            findings.wrong.append(f"{_UNREAD}: {listed(unread)}")
    if unseen:
        labels = ", ".join(sorted(facts.direct))
        findings.unknown.append(
            f"{listed([unmet.reason('write') for unmet in unseen])}; the client is connected to "
            f"{labels} itself, so no boundary would have seen it; without `direct: true` it is "
            "known"
        )


def _out_of_sight(server: str | None, facts: TrialFacts) -> bool:
    """Tell whether a write to this server, or to any, may have passed no boundary.

    That the calls to a read-only server without one only read is told from the client's account.
    """
    # one that has no label is known to a dispatcher, and any server may have that
    candidates = facts.direct if server not in facts.modes else facts.direct & {server}
    if facts.trace.evidence != "structured":
        return bool(candidates)
    return any(facts.modes.get(label) is not WriteMode.READ_ONLY for label in candidates)


def _check_surplus(
    facts: TrialFacts,
    made: Sequence[WriteEntry],
    result: MatchResult,
    findings: _Findings,
) -> None:
    if not result.exclusive:
        return
    if _out_of_sight(None, facts):
        labels = ", ".join(sorted(facts.direct))
        findings.unknown.append(
            f"whether no other write was made: the client is connected to {labels} itself, so no "
            "boundary would have seen it; without `direct: true` it is known"
        )
    surplus = [*(made[right] for right in result.surplus), *_unread(facts)]
    writes = [_shown(entry) for entry in surplus if not _may_be_a_read(entry)]
    unclear = [_shown(entry) for entry in surplus if _may_be_a_read(entry)]
    some = facts.case.expected.writes is not None and facts.case.expected.writes.calls
    if writes:
        which = "writes that are not expected" if some else "no write is expected, found"
        findings.wrong.append(f"{which}: {listed(writes)}")
    tried = [_shown(entry) for entry in facts.writes if _is_unexpected_try(entry, facts)]
    if tried:
        which = "none is expected of these tools" if some else "no write is expected"
        findings.wrong.append(f"{which}, tried with arguments that do not fit: {listed(tried)}")
    if unclear:
        findings.unknown.append(
            f"nobody can tell whether these dispatched calls wrote: {listed(unclear)}; where the "
            "proxy stops writes (`writes: planned`), and reads are under `readTargets`, it is known"
        )


def _is_unexpected_try(entry: WriteEntry, facts: TrialFacts) -> bool:
    """Tell whether a call was a write, but for its arguments, of a tool that none is expected of.

    Servers may take arguments that their schemas do not (`"4"` for a number), so that nobody can
    say that nothing would have been written. A call that missed and is then made right is none.
    """
    if entry.refused != "invalid-arguments" or entry.mode is WriteMode.LIVE:
        return False
    expected = facts.case.expected.writes
    return entry.effective[1] not in {call.tool for call in (expected.calls if expected else ())}


def _may_be_a_read(entry: WriteEntry) -> bool:
    """Tell whether a call was forwarded to a tool that may only read.

    A tool that is called itself and is not read-only makes its call a write; what a dispatcher
    runs is known by its mark only.
    """
    return entry.unclassified and (entry.target is not None or entry.unparsed)


def _unread(facts: TrialFacts) -> list[WriteEntry]:
    """Return the calls of which nobody knows what they were for, less those that were refused."""
    return [entry for entry in facts.writes if entry.unparsed and entry.refused is None]


def _check_agreement(facts: TrialFacts, findings: _Findings) -> None:
    findings.unknown.extend(_doubts(facts.agreement))
    if not facts.agreement.checked:
        return
    unreported = [_shown(entry) for entry in facts.agreement.unreported]
    unrecorded = [
        shown_call(event.server, event.name, event.arguments or {})
        for event in facts.agreement.unrecorded
    ]
    if unreported:
        findings.wrong.append(
            f"unreported, in the record and not in the trace: {listed(unreported)}"
        )
    if unrecorded:
        findings.wrong.append(
            f"unrecorded, in the trace and not in the record: {listed(unrecorded)}"
        )


def _unchecked(facts: TrialFacts) -> list[str]:
    """Say where nothing was compared, whatever the score: a pass rests on the record alone."""
    return [] if facts.agreement.checked else [NOT_CHECKED]


def _doubts(agreement: Agreement) -> Iterator[str]:
    """Say what nobody knows of a record over a connection that attempts share."""
    if agreement.unattributed:
        yield (
            "over the connection that the attempts share, writes were made while this one was "
            f"under way that no trace claims: {_sides(agreement.unattributed)}; with a connection "
            "for each attempt it is known whose they are"
        )
    if agreement.contested:
        yield (
            "over the connection that the attempts share, the traces claim more of these calls "
            f"than there were: {_sides(agreement.contested)}; with a connection for each attempt, "
            "or an id for each call, it is known which trace is right"
        )


def _sides(calls: Sequence[CallSide]) -> str:
    return listed([shown_call(call.server, call.tool, call.arguments) for call in calls])


def _level(facts: TrialFacts) -> Evidence:
    """Return how far the score can be trusted: less where a write may have gone unseen."""
    if any(entry.unclassified for entry in facts.writes):
        return Evidence.CALLED
    unseen = {label for label, mode in facts.modes.items() if mode is WriteMode.UNGUARDED}
    expected = facts.case.expected.writes
    if expected is not None and (expected.exclusive or not expected.calls):
        unseen |= facts.direct  # that nothing else was asked of it is the client's word
    return Evidence.CALLED if unseen & _involved(facts) else Evidence.REQUESTED


def _involved(facts: TrialFacts) -> set[str]:
    """Return the servers that the score says something about."""
    expected = facts.case.expected.writes
    if expected is None or expected.exclusive or not expected.calls:
        return set(facts.modes)
    named = {call.server for call in expected.calls if call.server is not None}
    if any(call.server not in facts.modes for call in expected.calls):
        return set(facts.modes)
    return named | {entry.server for entry in facts.writes}


def _details(facts: TrialFacts, result: MatchResult | None) -> dict[str, object]:
    details: dict[str, object] = {
        "recorded": len(facts.writes),
        "agreementChecked": facts.agreement.checked,
        **{k: v for k, v in facts.agreement.to_json().items() if k != "checked"},
        "refused": [
            {"call": _shown(entry), "refused": entry.refused}
            for entry in facts.writes
            if entry.refused is not None
        ],
        "unparsed": [_shown(entry) for entry in facts.writes if entry.unparsed],
    }
    if not facts.agreement.checked:
        details["agreement"] = NOT_CHECKED
    if result is not None:
        details["required"] = result.required
        details["missing"] = [unmet.reason("write") for unmet in result.unmet]
    return details


def _shown(entry: WriteEntry) -> str:
    return shown_call(*entry.effective)
