"""What is tried before the first attempt, once and by the controller, and how that is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from pytest_mst.attempt.judge_preflight import judge_setup, judges_preflight
from pytest_mst.attempt.judges import Judge, judges_of
from pytest_mst.attempt.preflight import ClientSetup, looks_ahead, preflight
from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.domain.ending import InfrastructureFailure
from pytest_mst.plugin.session import EvalSession
from pytest_mst.report.text import counted, shown

_NAMED = 3
"""How many of the cases that cannot be attempted are named."""


def check_before_spending(config: pytest.Config, session: EvalSession) -> list[str]:
    """Try what the chosen cases depend on, keep what is certain not to work, and say it.

    Nothing is tried where nothing is to be collected.

    Args:
        config: pytest's.
        session: its evals, as they were loaded; what was found is kept there.

    Returns:
        What to show of it, line by line.

    """
    options = config.option
    if options.collectonly or options.setupplan or session.settings.grade is not None:
        return []
    setups: dict[str, ClientSetup] = {}
    cases: dict[str, list[str]] = {}
    for case, setup in _setups(session):
        if looks_ahead(setup.client):
            key = setup.key
            setups.setdefault(key, setup)
            cases.setdefault(key, []).append(case)
    if setups:
        session.preflight = session.engine.call(preflight, setups.values())
    found = session.preflight.items()
    lines = [line for key, failure in found for line in _lines(failure, cases[key])]
    return [*lines, *_judge_lines(session)]


def _judge_lines(session: EvalSession) -> Iterator[str]:
    """Try the judges of the chosen cases, and say which of them cannot grade as things are.

    Attempts do not depend on them: they are made, and graded once the judge is mended.
    """
    for path in session.selected.evals:
        if path not in session.prepared:
            continue
        prepared = session.prepared[path]
        asking = session.asking(prepared)
        judges: dict[str, Judge] = {}
        cases: dict[str, list[str]] = {}
        for case, judge in _judges(session, prepared):
            key = f"{judge.name}: {judge_setup(judge)}"
            judges.setdefault(key, judge)
            cases.setdefault(key, []).append(case)
        found = session.engine.call(judges_preflight, judges, asking) if judges else {}
        for key, problem in found.items():
            yield f"cannot grade: judge {shown(judges[key].name)}: {shown(problem, 1_000)}"
            yield f"  it would leave ungraded {_named_cases(cases[key])}"


def _judges(session: EvalSession, prepared: PreparedEval) -> Iterator[tuple[str, Judge]]:
    loaded = prepared.loaded
    for one in loaded.tagged(session.tags(loaded.config)):
        for variant in session.variants(loaded.config) if one.case.skip is None else ():
            entries = loaded.config.judges_of(variant)
            judges = judges_of(
                one.case,
                entries,
                folder=loaded.path.parent,
                registered=session.judges,
                asked_by=f"judges of case {one.case.id!r}",
            )
            for judge in judges:
                yield f"{one.case.id} [{variant.name}]", judge


def _setups(session: EvalSession) -> Iterator[tuple[str, ClientSetup]]:
    """Yield the chosen cases by each variant, and the client as each uses it."""
    for path in session.selected.evals:
        if path not in session.prepared:
            continue
        loaded = session.prepared[path].loaded
        config = loaded.config
        for one in loaded.tagged(session.tags(config)):
            if one.case.skip is not None:
                continue
            for variant in session.variants(config):
                case = session.with_model(config, variant, one.case)
                options = config.client_options_of(variant, case)
                client = session.client(config, variant, case)
                model = case.model or variant.model or config.model
                yield f"{case.id} [{variant.name}]", ClientSetup(client, model, options)


def _lines(failure: InfrastructureFailure, cases: Sequence[str]) -> list[str]:
    return [
        f"cannot be attempted: {shown(failure.reason, 1_000)}",
        f"  it stops {_named_cases(cases)}",
    ]


def _named_cases(cases: Sequence[str]) -> str:
    named, count = ", ".join(cases[:_NAMED]), len(cases)
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    return f"{counted(count, 'case')}: {shown(named, 1_000)}{more}"
