"""What becomes of each attempt of a run that is taken up again, decided when it is collected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from pytest_mst.attempt.job import BODY, Again
from pytest_mst.domain.ending import Trial
from pytest_mst.domain.plan import PlannedCase, RunPlan, ServerInfo, VariantInfo
from pytest_mst.domain.resumption import ChangedCase, Decision, Resumption, ResumptionKind, Step
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.score import TrialVerdict
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.eval_run import EvalRun
from pytest_mst.plugin.keys import CASE
from pytest_mst.plugin.session import EvalSession
from pytest_mst.store.journal import TornLine, read_journal
from pytest_mst.store.read import StoredAttempt, UnreadableAttempt, read_attempt, score_folders
from pytest_mst.store.resume import Today, decide

_Place = tuple[str, str]
"""Variant and case."""


def choose_planned(session: EvalSession, items: list[pytest.Item]) -> list[pytest.Item]:
    """Take out what is no case of a run that is taken up, and return it.

    Every case keeps the number of trials that it was planned with.
    """
    taken_up = session.taken_up
    assert taken_up is not None
    planned = {name: _by_place(run.plan) for name, run in taken_up.runs.items()}
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        case = item.stash.get(CASE, None)
        there = None
        if case is not None:
            session.met.setdefault(case.run.name, {})[_place(case)] = case
            there = planned.get(case.run.name, {}).get(_place(case))
        if case is not None and there is not None:
            case.trials = there.trials
            chosen.append(item)
        else:
            left_out.append(item)
    items[:] = chosen
    return left_out


def decide_all(
    session: EvalSession,
    run: EvalRun,
    cases: Sequence[CaseItem],
    variants: Sequence[VariantInfo],
    left_out: Sequence[CaseItem] = (),
) -> Resumption:
    """Decide what becomes of every attempt of a run, and note it on its cases.

    Nothing is written.

    Args:
        session: this process's evals.
        run: one of the runs that are taken up.
        cases: those of its cases that are there today.
        variants: its variants as they are today.
        left_out: those of the cases that another option keeps out of the session, such as --lf.

    Raises:
        StoreError: the journal or the folder of scores is there and cannot be read.

    """
    taken_up = session.taken_up
    assert taken_up is not None
    plan = taken_up.runs[run.name].plan
    planned, variants_then = _by_place(plan), {one.name: one for one in plan.variants}
    folders = score_folders(run.layout)
    torn = sum(isinstance(line, TornLine) for line in read_journal(run.layout))
    torn += taken_up.half_written.get(run.name, 0)
    decisions: dict[AttemptId, Decision] = {}
    other_tools: set[str] = set()
    begun_here = taken_up.begun_here(run.name)
    elsewhere = {id(case) for case in left_out}
    for case in cases:
        today = Today(case.identity, case.grader_names, BODY if case.run_by == "body" else None)
        found = [read_attempt(run.layout, one, folders) for one in case.attempt_ids]
        counted = planned[_place(case)].skip is None
        case.is_in_ledger = counted and any(stored is not None for stored in found)
        if case.skip is not None:
            continue
        for trial, stored in enumerate(found):
            attempt = case.attempt_id(trial)
            torn += _torn_in(stored)
            if _may_have_other_tools(stored, case):
                other_tools.add(case.variant.name)
            decision = decide(stored, today, taken_up.rules)
            if decision.step is Step.COLLECT and attempt in begun_here:
                decision = Decision(Step.KEEP, "a process that is lost made it")
            kept_for = _kept_for(case, left_out=id(case) in elsewhere)
            if decision.step is not Step.KEEP and kept_for is not None:
                decision = Decision(Step.KEEP, kept_for, fix=kept_for)
            decisions[attempt] = decision
            then = variants_then.get(case.variant.name)
            case.again[trial] = _again(decision, taken_up.stamp, stored, then)
    resumption = _resumption(session, run, cases, decisions, torn)
    differing = [one for one in variants if one.name in other_tools]
    return replace(resumption, tools=tuple(_tools_changed(plan, differing)))


def merged_plan(
    stored: RunPlan, today: RunPlan, cases: Sequence[CaseItem], resumption: Resumption
) -> RunPlan:
    """Return the plan of a run as it goes on: what was planned, by today's cases.

    A case that is not there any more stays in it, with what is stored of it.
    """
    by_place = {_place(case): case for case in cases}
    variants = {variant.name: variant for variant in today.variants}
    kept = {
        one.variant
        for one in stored.cases
        if not _is_collected_anew(by_place.get((one.variant, one.case)))
    }
    return replace(
        stored,
        content_hash=today.content_hash if cases else stored.content_hash,
        datasets=today.datasets if cases else stored.datasets,
        cases=tuple(_planned(one, by_place.get((one.variant, one.case))) for one in stored.cases),
        variants=tuple(
            _merged(one, variants.get(one.name), keeps_modes=one.name in kept)
            for one in stored.variants
        ),
        resumptions=(*stored.resumptions, resumption),
    )


def _planned(stored: PlannedCase, case: CaseItem | None) -> PlannedCase:
    """Return a case as it is planned today; what its trials were put to stays known of it."""
    if case is None:
        return replace(stored, gone=True)
    today = case.planned()
    if _is_collected_anew(case):
        return today
    return replace(today, unguarded=stored.unguarded)


def _is_collected_anew(case: CaseItem | None) -> bool:
    """Tell whether nothing of a case remains from before."""
    return (
        case is not None
        and case.case.skip is None
        and all(one.decision.step is Step.COLLECT for one in case.again.values())
    )


def _resumption(
    session: EvalSession,
    run: EvalRun,
    cases: Sequence[CaseItem],
    decisions: Mapping[AttemptId, Decision],
    torn: int,
) -> Resumption:
    taken_up = session.taken_up
    assert taken_up is not None
    plan = taken_up.runs[run.name].plan
    met = session.met.get(run.name, {})
    gone = [one for one in plan.cases if (one.variant, one.case) not in met]
    decisions = {**decisions, **dict(_of_gone(run, gone))}
    counts = {step: sum(one.step is step for one in decisions.values()) for step in Step}
    fixes = {attempt: one.fix for attempt, one in decisions.items() if one.fix is not None}
    return Resumption(
        at=taken_up.at,
        kind=taken_up.kind,
        counts=counts,
        cannot_help=len(fixes),
        fixes=tuple(_fixes(plan.run_id, fixes)),
        changed=(
            *_skips_changed(cases, _by_place(plan)),
            *_changed(cases, decisions, taken_up.kind),
            *_moved(session, run, plan, gone),
        ),
        torn=torn,
    )


def _of_gone(run: EvalRun, gone: Sequence[PlannedCase]) -> Iterator[tuple[AttemptId, Decision]]:
    """Keep what is stored of cases that are there no more; say of the rest what it needs."""
    back = "the case is there no more: put it back"
    for case in gone:
        for attempt in case.attempts:
            stored = read_attempt(run.layout, attempt)
            verdict = stored.graded.verdict if isinstance(stored, StoredAttempt) else None
            complete = verdict in (TrialVerdict.PASSED, TrialVerdict.FAILED)
            yield attempt, Decision(Step.KEEP, "its case is gone", fix=None if complete else back)


def _fixes(run_id: str, fixes: Mapping[AttemptId, str]) -> Iterator[str]:
    """Name what is to be fixed, each once, with the first attempt that needs it."""
    by_text: dict[str, list[AttemptId]] = {}
    for attempt, text in fixes.items():
        by_text.setdefault(text, []).append(attempt)
    for text, attempts in by_text.items():
        first = attempts[0]
        more = f" and {len(attempts) - 1} more" if len(attempts) > 1 else ""
        yield f"{text} ({first.case} {locator(run_id, first)}{more})"


def _kept_for(case: CaseItem, *, left_out: bool) -> str | None:
    """Say why nothing is made of a case in this session, so that what is stored stays."""
    if case.case.skip is not None:
        return f"its case is skipped ({case.case.skip}): take its `skip` away to complete it"
    if left_out:
        return "left out of this session by another option, such as --lf or --deselect"
    return None


def _skips_changed(
    cases: Sequence[CaseItem], planned: Mapping[_Place, PlannedCase]
) -> Iterator[ChangedCase]:
    """Name the cases that an eval file skips now and did not, or skipped and does no more."""
    for case in cases:
        now, then = case.case.skip, planned[_place(case)].skip
        if now is not None and then is None:
            left = "what is stored of it is kept" if case.is_in_ledger else "it is left out"
            yield ChangedCase(case.variant.name, case.case.id, f"is skipped now ({now}): {left}")
        elif now is None and then is not None and not case.has_body:
            what = f"was skipped ({then}), and its file does not skip it now: it is collected"
            yield ChangedCase(case.variant.name, case.case.id, what)


def _changed(
    cases: Sequence[CaseItem], decisions: Mapping[AttemptId, Decision], kind: ResumptionKind
) -> Iterator[ChangedCase]:
    """Name the cases that are collected or graded anew because they are not as they were."""
    for case in cases:
        of_case = [
            decisions[case.attempt_id(trial)]
            for trial in range(case.trials)
            if case.attempt_id(trial) in decisions
        ]
        parts = dict.fromkeys(part for one in of_case for part in one.changed)
        graded_anew = [one for one in of_case if one.step is Step.GRADE and one.graders is None]
        if parts:
            done = "graded as it was collected" if graded_anew else "collected anew"
            what = f"{', '.join(parts)} changed: {done}"
            yield ChangedCase(case.variant.name, case.case.id, what)
        elif graded_anew and kind == "resume":
            yield ChangedCase(case.variant.name, case.case.id, graded_anew[0].reason)


def _moved(
    session: EvalSession, run: EvalRun, plan: RunPlan, gone: Sequence[PlannedCase]
) -> Iterator[ChangedCase]:
    """Name the cases that were added, removed or renamed since the run was started."""
    there = {(one.variant, one.case) for one in plan.cases}
    added = {
        place: case
        for place, case in session.met.get(run.name, {}).items()
        if place not in there and _would_be_chosen(session, plan, case)
    }
    alike: dict[object, _Place] = {}
    for place, case in added.items():
        alike.setdefault(_but_id(case.variant.name, case.identity.parts), place)
    for one in gone:
        found = alike.pop(_but_id(one.variant, _stored_parts(run, one)), None)
        if found is None:
            what = "is there no more: what is stored of it is kept"
        else:
            del added[found]
            what = f"is called {found[1]!r} now: what is stored under its old name is kept"
        yield ChangedCase(one.variant, one.case, what)
    for variant, case_id in added:
        yield ChangedCase(variant, case_id, "is new: no part of this run")


def _would_be_chosen(session: EvalSession, plan: RunPlan, case: CaseItem) -> bool:
    """Tell whether the run would have had a case, as far as its tags and variants say."""
    chosen = plan.selection
    if chosen.get("keyword") or chosen.get("markexpr") or chosen.get("ids"):
        return False  # by what nobody can tell of a case that was not there
    config = case.prepared.loaded.config if case.prepared is not None else None
    stated = chosen.get("tags") or (config.filter_tags if config is not None else ())
    tags = set(map(str, stated)) if isinstance(stated, list | tuple) else set()
    return not tags or bool(tags & set(case.case.tags))


def _but_id(variant: str, parts: Mapping[str, str]) -> object:
    """Return what a case that was renamed has in common with what it was."""
    return variant, frozenset(one for one in parts.items() if one[0] != "case")


def _stored_parts(run: EvalRun, case: PlannedCase) -> Mapping[str, str]:
    """Return the parts that a case's attempts were keyed by; none where nothing is stored."""
    for attempt in case.attempts:
        stored = read_attempt(run.layout, attempt, ())
        if isinstance(stored, StoredAttempt) and stored.record.key_parts:
            return stored.record.key_parts
    return {}


def _torn_in(stored: StoredAttempt | UnreadableAttempt | None) -> int:
    """Count what cannot be read of an attempt, files and lines."""
    match stored:
        case UnreadableAttempt():
            return 1
        case StoredAttempt():
            return len(stored.writes.torn)
        case None:
            return 0


def _may_have_other_tools(stored: StoredAttempt | UnreadableAttempt | None, case: CaseItem) -> bool:
    """Tell whether a trial is not known to have been collected with the tools there are today."""
    if not isinstance(stored, StoredAttempt) or not isinstance(stored.ending, Trial):
        return False
    return not case.identity.tools or stored.record.tools_key != case.identity.tools


def _tools_changed(plan: RunPlan, variants: Sequence[VariantInfo]) -> Iterator[str]:
    """Say which servers list other tools than when the run was started."""
    stored = {
        (variant.name, server.label): server
        for variant in plan.variants
        for server in variant.servers
    }
    seen: dict[str, None] = {}
    for variant in variants:
        for server in variant.servers:
            then = stored.get((variant.name, server.label))
            listed = bool(server.tool_hashes) and then is not None
            if then is not None and listed and then.tool_hashes != server.tool_hashes:
                seen[f"{server.label}: {_difference(then, server)}"] = None
    yield from seen


def _difference(then: ServerInfo, now: ServerInfo) -> str:
    before, after = then.tool_hashes, now.tool_hashes
    parts = [
        *(f"+{name}" for name in after if name not in before),
        *(f"-{name}" for name in before if name not in after),
        *(f"{name} changed" for name in after if before.get(name, after[name]) != after[name]),
    ]
    return ", ".join(parts)


def _merged(stored: VariantInfo, today: VariantInfo | None, *, keeps_modes: bool) -> VariantInfo:
    """Return a variant as it is today, with the tools that its run was started with.

    The write modes are those that its trials were collected under, while there are such trials.
    """
    if today is None:
        return stored
    before = {server.label: server for server in stored.servers}
    servers = []
    for server in today.servers:
        then = before.get(server.label)
        if then is None:
            servers.append(server)
            continue
        kept = replace(
            then if not server.tool_hashes else server,
            tools_hash=then.tools_hash,
            tool_hashes=then.tool_hashes,
            write_mode=then.write_mode if keeps_modes else server.write_mode,
            direct=then.direct if keeps_modes else server.direct,
        )
        servers.append(kept)
    return replace(today, servers=tuple(servers))


def _by_place(plan: RunPlan) -> dict[_Place, PlannedCase]:
    return {(one.variant, one.case): one for one in plan.cases}


def _place(case: CaseItem) -> _Place:
    return case.variant.name, case.case.id


def _again(decision: Decision, stamp: str, stored: object, then: VariantInfo | None) -> Again:
    """Return what a run that is taken up makes of an attempt, with what it was put to before."""
    servers = then.servers if then is not None else ()
    return Again(
        decision,
        stamp,
        before=stored.record.started_at if isinstance(stored, StoredAttempt) else None,
        modes={one.label: one.write_mode for one in servers} if then is not None else None,
        direct=frozenset(one.label for one in servers if one.direct) if then is not None else None,
    )
