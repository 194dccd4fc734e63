"""What people read at the end of a run: one block of lines for each eval."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_mst.domain.score import CaseVerdict
from pytest_mst.domain.stop import Stop
from pytest_mst.domain.write import LIVE_OPTION
from pytest_mst.report.reasons import Reason, ReasonKind, Remedy
from pytest_mst.report.spending import cost_lines
from pytest_mst.report.summary import (
    FINDING_KINDS,
    KEPT_FINDINGS,
    CaseRow,
    Figures,
    Finding,
    FindingKind,
    RunSummary,
)
from pytest_mst.report.text import counted, percent, shown
from pytest_mst.store.encode import encode
from pytest_mst.store.run_id import short_form

_SHOWN_REASONS = 3
_SHOWN_ARGUMENTS_CHARS = 200
_PATH_LIMIT_CHARS = 4096
_KIND_WORDS: dict[FindingKind, str] = {
    "unreported": "unreported write",
    "unrecorded": "unrecorded write",
    "unclassified": "unclassified call",
    "refused": "refused call",
    "unparsed": "unparsed call",
}
_ADVICE = {
    Remedy.NOTHING: ("", ""),
    Remedy.COLLECT: (", --mst-resume can help", ", running it again can help"),
    Remedy.GRADE: (", --mst-resume can help", ", grading it again can help"),
    Remedy.FIX: (", to be fixed first", ", to be fixed first"),
}
"""What helps where a run can be resumed, and where it cannot."""


def closing_lines(
    summary: RunSummary, run_dir_shown: str, *, can_resume: bool = True, options: str = ""
) -> list[str]:
    """Return the closing block of one eval; text from outside in it is safe to show.

    Args:
        summary: the run's figures.
        run_dir_shown: the run's folder, as its reader would write it.
        can_resume: whether `--mst-resume` can finish the run, which one of an older tool it
            cannot.
        options: what the command that finishes it needs beside, each option after a space.

    """
    run_id = summary.plan.run_id
    lines = [_case_line(summary, row, can_resume=can_resume) for row in summary.cases]
    lines += _finding_lines(summary)
    lines += _unattributed_lines(summary)
    lines += _variant_lines(summary)
    lines += [_stop_line(summary, stop) for stop in summary.stops]
    lines += _replaced_lines(summary)
    lines += [one.line for one in summary.owed]
    lines += [
        _ledger_line(summary.figures),
        _pass_rate(summary.figures),
        *cost_lines(summary.figures.spending),
        f"run {shown(run_id)} in {shown(run_dir_shown, _PATH_LIMIT_CHARS)}",
    ]
    incomplete = summary.figures.cases.incomplete
    helped = sum(_again_helps(row) for row in summary.cases)
    if (incomplete or summary.owed) and can_resume:
        of_use = [row for row in summary.cases if not row.planned.gone]
        helped_now = any(map(_can_be_helped, of_use)) or not any(map(_is_incomplete, of_use))
        fixed = "" if helped_now else " --mst-fixed"
        is_live = summary.owed or any(variant.live for variant in summary.variants)
        live = f" {LIVE_OPTION}" if is_live else ""
        command = f"pytest --mst --mst-resume {shown(short_form(run_id))}{options}{live}{fixed}"
        lines.append(f"finish it with: {command}")
    elif helped:
        cases = "1 incomplete case" if helped == 1 else f"{helped} incomplete cases"
        lines.append(f"{cases} can be run again")
    return lines


def _is_incomplete(row: CaseRow) -> bool:
    return row.verdict is CaseVerdict.INCOMPLETE


def _can_be_helped(row: CaseRow) -> bool:
    """Tell whether a case is incomplete for a reason that needs no fix before it."""
    helps = (Remedy.COLLECT, Remedy.GRADE)
    return _is_incomplete(row) and any(reason.remedy in helps for reason in row.reasons)


def _again_helps(row: CaseRow) -> bool:
    """Tell whether a case is incomplete for reasons that a fix does not have to come before."""
    return row.verdict is CaseVerdict.INCOMPLETE and all(
        reason.remedy is not Remedy.FIX for reason in row.reasons
    )


def _ledger_line(figures: Figures) -> str:
    ledger = figures.ledger
    return (
        f"planned {ledger.planned} = graded {ledger.graded} + ungraded {ledger.ungraded}"
        f" + infrastructure {ledger.infrastructure} + unstarted {ledger.unstarted}"
    )


def _pass_rate(figures: Figures) -> str:
    """Write a pass rate with what it is over, and the lowest evidence that it rests on."""
    rate, cases, evidence = figures.pass_rate, figures.cases, figures.evidence
    level = "" if evidence is None else f", lowest evidence: {evidence.label}"
    return (
        f"pass rate {'n/a' if rate is None else percent(rate)} ({cases.passed} of"
        f" {cases.complete} complete cases; {cases.incomplete} incomplete left out){level}"
    )


def _variant_lines(summary: RunSummary) -> Iterator[str]:
    """Compare the variants, where there are several, and say what is special about their writes."""
    for variant in summary.variants:
        name, figures = f"variant {shown(variant.name)}", variant.figures
        if len(summary.variants) > 1:
            yield f"{name}: {_pass_rate(figures)}"
        if variant.live:
            labels = ", ".join(map(shown, variant.live))
            yield (
                f"{name} is live: its writes to {labels} were let through, but for those of cases"
                " without an outcome check"
            )
        if variant.unguarded:
            unseen = ", ".join(map(shown, variant.out_of_sight))
            yield (
                f"{name} is unguarded: its writes were not stopped,"
                f" {figures.unclassified_calls} of its calls may have written"
            ) + (f", and what it wrote to {unseen} nobody saw" if unseen else "")
        elif figures.unclassified_calls:
            yield f"{name} has {counted(figures.unclassified_calls, 'unclassified call')}"
        if figures.unparsed_calls:
            yield f"{name} has {counted(figures.unparsed_calls, 'unparsed call')}"


def _replaced_lines(summary: RunSummary) -> Iterator[str]:
    """Say how many earlier goes at attempts do not count any more, so that none is forgotten."""
    counts = summary.replaced
    total = sum(counts.values())
    if total:
        goes = "1 earlier go" if total == 1 else f"{total} earlier goes"
        named = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        yield f"replaced {goes}: {named} (kept in superseded/)"


def _stop_line(summary: RunSummary, stop: Stop) -> str:
    """Say why attempts were not begun, and which: of a case by a variant, a variant, the run."""
    closed = "run"
    if stop.variant is not None:
        closed = f"variant {shown(stop.variant)}"
    if stop.case is not None:
        several = len(summary.variants) > 1
        closed = f"case {shown(stop.case)}" + (f" [{shown(stop.variant or '')}]" if several else "")
    return f"stopped: {closed}: {shown(stop.reason)} ({shown(stop.locator)})"


def _case_line(summary: RunSummary, row: CaseRow, *, can_resume: bool) -> str:
    name = shown(row.planned.case)
    if len(summary.variants) > 1:
        name += f" [{shown(row.planned.variant)}]"
    if row.verdict is None:
        return f"skipped     {name}: {shown(row.planned.skip or '')}"
    facts = [f"graded {row.ledger.graded} of {row.ledger.planned}"]
    if row.pass_rate is None:
        # a share of the trials there happen to be would pass for the case's rate
        facts.append(f"{row.passed_trials} passed")
    else:
        facts.append(f"{percent(row.pass_rate)} passed")
    if row.write_case:
        level = "none" if row.evidence is None else row.evidence.label
        facts.append(f"evidence {level}")
    if row.unguarded:
        facts.append("unguarded")
    why = _why(row, can_resume=can_resume)
    return "; ".join([f"{row.verdict.value:<11} {name}: {', '.join(facts)}", *why])


def _why(row: CaseRow, *, can_resume: bool) -> list[str]:
    match row.verdict:
        case CaseVerdict.INCOMPLETE:
            told = [reason for reason in row.reasons if reason.kind is not ReasonKind.FAILED]
        case CaseVerdict.FAILED:
            told = [reason for reason in row.reasons if reason.kind is ReasonKind.FAILED]
        case _:
            return []
    lines = [_reason(reason, can_resume=can_resume) for reason in told[:_SHOWN_REASONS]]
    if len(told) > _SHOWN_REASONS:
        lines.append(f"{len(told) - _SHOWN_REASONS} more reasons in results.json")
    return lines


def _reason(reason: Reason, *, can_resume: bool) -> str:
    advice = _ADVICE[reason.remedy][0 if can_resume else 1]
    return f"{reason.kind} {reason.count}: {shown(reason.detail)} ({shown(reason.locator)}){advice}"


def _finding_lines(summary: RunSummary) -> Iterator[str]:
    for kind in FINDING_KINDS:
        listed = [finding for finding in summary.findings if finding.kind == kind]
        for finding in listed:
            yield _finding_line(finding)
        more = summary.finding_counts.get(kind, 0) - len(listed)
        if more > 0:
            yield f"{_KIND_WORDS[kind]}s: {more} more"


def _unattributed_lines(summary: RunSummary) -> Iterator[str]:
    """Name the writes over shared connections of which nobody knows whose they are."""
    for variant in summary.variants:
        for call in variant.unattributed[:KEPT_FINDINGS]:
            yield (
                f"unattributed write: {shown(call.name)}"
                f" {shown(encode(call.arguments), _SHOWN_ARGUMENTS_CHARS)}"
                f" (variant {shown(variant.name)}, of no attempt known)"
            )
        more = len(variant.unattributed) - KEPT_FINDINGS
        if more > 0:
            yield f"unattributed writes: {more} more (variant {shown(variant.name)})"


def _finding_line(finding: Finding) -> str:
    return (
        f"{_KIND_WORDS[finding.kind]}: {shown(finding.name)}"
        f" {shown(finding.arguments, _SHOWN_ARGUMENTS_CHARS)}"
        f" ({shown(finding.case)} {shown(finding.locator)})"
    )
