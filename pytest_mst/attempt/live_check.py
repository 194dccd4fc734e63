"""The load check of live servers: nothing is written for real without leave, or for good."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_mst.attempt.named_tools import first_few, meant
from pytest_mst.attempt.prepared import PreparedEval, ServerState
from pytest_mst.attempt.write_modes import write_modes
from pytest_mst.domain.case import Case, OutcomeCheck
from pytest_mst.domain.errors import LoadCheckError, LoadCheckErrors, Place
from pytest_mst.domain.eval_config import ServerStep, Variant
from pytest_mst.domain.loaded import LoadedCase
from pytest_mst.domain.placeholder import TRIAL_ID, filled
from pytest_mst.domain.write import LIVE_OPTION, WriteMode
from pytest_mst.grading.found import unusable_parts
from pytest_mst.grading.outcome import filled_check
from pytest_mst.proxy.schema import CompiledSchema

_SOME_ID = "mstep2u4cbx"
"""As good as any attempt's own to see whether a step or a check can be made."""


def check_live(prepared: PreparedEval, variants: Sequence[Variant], *, allowed: bool) -> None:
    """Refuse what would write for real without leave, unchecked, or for good.

    Args:
        prepared: the eval, its servers listed.
        variants: those that are chosen.
        allowed: whether the person who runs it has allowed live writes.

    Raises:
        LoadCheckError: live writes are not allowed.
        LoadCheckErrors: a case, a step or an outcome check does not fit; with all of them.

    """
    chosen = [_Live.of(prepared, variant) for variant in variants]
    live = [one for one in chosen if one.labels]
    if live and not allowed:
        raise _not_allowed(prepared, live)
    problems = [
        *(problem for one in chosen for problem in _ungraded(prepared, one)),
        *(problem for one in live for problem in _cases(prepared, one)),
        *(_named_tools(prepared) if live else ()),
    ]
    told = {str(problem): problem for problem in problems}  # of several variants, each once
    if told:
        raise LoadCheckErrors(list(told.values()))


@dataclass(frozen=True, slots=True)
class _Live:
    """A variant, and which of its servers are live."""

    variant: Variant
    labels: tuple[str, ...]
    tools: tuple[str, ...]
    """The tools of those servers that write."""

    @classmethod
    def of(cls, prepared: PreparedEval, variant: Variant) -> _Live:
        modes = write_modes(prepared.loaded, variant, prepared.servers)
        labels = tuple(label for label, mode in modes.items() if mode is WriteMode.LIVE)
        return cls(variant, labels, tuple(t for one in labels for t in _writing(prepared, one)))

    @property
    def servers(self) -> str:
        """The servers in words."""
        named = " and ".join(map(repr, self.labels))
        return f"server {named} is live" if len(self.labels) == 1 else f"servers {named} are live"


def _writing(prepared: PreparedEval, label: str) -> tuple[str, ...]:
    return prepared.servers[label].tools_for(prepared.loaded.config.servers[label]).writes


def _not_allowed(prepared: PreparedEval, live: Sequence[_Live]) -> LoadCheckError:
    labels = tuple(dict.fromkeys(label for one in live for label in one.labels))
    tools = {label: _writing(prepared, label) for label in labels}
    named = "; ".join(f"{label}: {first_few(tools[label]) or 'unknown'}" for label in labels)
    which = "server" if len(labels) == 1 else "servers"
    return LoadCheckError(
        _place_of_mode(prepared, live[0], labels[0]),
        f"the writes to {which} {' and '.join(map(repr, labels))} are live, which means that "
        f"they are really made, and nobody has allowed that (tools that write: {named})",
        server=labels[0],
        tools=tuple(tool for label in labels for tool in tools[label]),
        remedy=f"add {LIVE_OPTION} where that is meant, or write `{labels[0]}: planned` under "
        "`writes`",
    )


def _place_of_mode(prepared: PreparedEval, live: _Live, label: str) -> Place:
    stated = live.variant.writes
    if isinstance(stated, Mapping) and label in stated:
        return prepared.loaded.place("variants", live.variant.name)
    return prepared.loaded.place("writes", label)


def _ungraded(prepared: PreparedEval, live: _Live) -> Iterator[LoadCheckError]:
    """Find cases whose only graders are outcome checks, by a variant that makes none."""
    variant, config = live.variant, prepared.loaded.config
    judges = config.judges_of(variant)
    if live.labels or judges:
        return
    for one in prepared.loaded.cases:
        case = one.case
        if case.skip is None and case.expected.outcome and not _grades_more(case):
            yield LoadCheckError(
                one.place,
                f"case {case.id!r} by variant {variant.name!r} has nothing that a trial of it "
                "could fail: outcome checks are made where a server is live, and none of this "
                "variant's is",
                remedy="add assertions or expected.writes, or state `live` for a server",
            )


def _grades_more(case: Case) -> bool:
    without = case.expected.model_copy(update={"outcome": None})
    return case.model_copy(update={"expected": without}).grades_something


def _cases(prepared: PreparedEval, live: _Live) -> Iterator[LoadCheckError]:
    """Find what is missing where a case may write for real."""
    for one in prepared.loaded.cases:
        if one.case.skip is None and _may_write(one.case):
            missing = dict(_missing(prepared, live, one.case))
            if missing:
                yield _lacks(live, one, missing)


def _may_write(case: Case) -> bool:
    return case.expected.writes is not None or bool(case.expected.outcome)


def _missing(prepared: PreparedEval, live: _Live, case: Case) -> Iterator[tuple[str, str]]:
    """Yield what is missing, each with where to add it."""
    config = prepared.loaded.config
    template = live.variant.input_template or config.input_template or "{{input}}"
    if not case.expected.outcome:
        yield "an outcome check", "`expected.outcome` to the case, which reads what is there"
    if not config.setup:
        yield "a set-up step", "`setup` to the eval config, which seeds what the case needs"
    if not config.cleanup:
        yield "a cleanup step", "`cleanup` to the eval config, which takes away what was written"
    if TRIAL_ID not in template.replace("{{input}}", case.input):
        yield (
            f"{TRIAL_ID} in its input",
            f"{TRIAL_ID} to the case's `input` or to `inputTemplate`, so that what one attempt "
            "writes is told from what others do",
        )


def _lacks(live: _Live, one: LoadedCase, missing: Mapping[str, str]) -> LoadCheckError:
    return LoadCheckError(
        one.place,
        f"{live.servers} (tools that write: {first_few(live.tools) or 'unknown'}), and the write "
        f"case {one.case.id!r} has not all that live writes need; missing: {', '.join(missing)}",
        server=live.labels[0],
        tools=live.tools,
        remedy="add " + "; ".join(missing.values()),
    )


def _named_tools(prepared: PreparedEval) -> Iterator[LoadCheckError]:
    """Find steps and outcome checks whose tool is not there, or whose call cannot be made."""
    loaded = prepared.loaded
    for key, steps in (("setup", loaded.config.setup), ("cleanup", loaded.config.cleanup)):
        for index, step in enumerate(steps):
            state, what = prepared.servers[step.server], f"{key}[{index}]"
            place = _below(loaded.place(key), key, what)
            if state.failure is None and step.tool not in state.tools:
                yield _not_listed(place, what, step.tool, state)
            yield from _arguments(place, what, step, state)
    for one in loaded.cases:
        if one.case.skip is not None:
            continue
        for index, check in enumerate(one.case.expected.outcome or ()):
            what = f"expected.outcome[{index}]"
            place = replace(one.place, key=f"{one.place.key}.{what}" if one.place.key else what)
            yield from _check(prepared, place, f"{what} of case {one.case.id!r}", check)


def _check(
    prepared: PreparedEval, place: Place, what: str, check: OutcomeCheck
) -> Iterator[LoadCheckError]:
    state = prepared.servers[check.server]
    tools = state.tools_for(prepared.loaded.config.servers[check.server])
    if state.failure is None and check.tool not in state.tools:
        yield _not_listed(place, what, check.tool, state)
    elif state.failure is None and not tools.is_read(check.tool):
        yield LoadCheckError(
            place,
            f"{what} reads with {check.tool!r}, which server {check.server!r} does not list as "
            "read-only",
            server=check.server,
            tools=(check.tool,),
            remedy="take a tool that only reads; where this one does, name it in "
            f"`servers.{check.server}.readOnlyTools`",
        )
    yield from _arguments(place, what, check, state)
    for problem in unusable_parts(filled_check(check, _SOME_ID)):
        yield LoadCheckError(place, f"{what}: {problem}", server=check.server)


def _arguments(
    place: Place, what: str, call: ServerStep | OutcomeCheck, state: ServerState
) -> Iterator[LoadCheckError]:
    """Find arguments that the tool does not take, where the server has said what it does."""
    schema = state.tools.get(call.tool, {}).get("inputSchema")
    problems = CompiledSchema(schema).problems(filled(call.arguments, _SOME_ID))
    if problems:
        takes = schema.get("properties") if isinstance(schema, Mapping) else None
        yield LoadCheckError(
            place,
            f"{what} calls {call.tool!r} of server {state.label!r} with arguments that do not fit "
            f"its inputSchema: {'; '.join(problems)}",
            server=state.label,
            tools=(call.tool,),
            remedy=f"it takes: {first_few(takes)}" if isinstance(takes, Mapping) else None,
        )


def _not_listed(place: Place, what: str, tool: str, state: ServerState) -> LoadCheckError:
    return LoadCheckError(
        place,
        f"{what} calls {tool!r}, which server {state.label!r} does not list",
        server=state.label,
        tools=(tool,),
        remedy=meant(tool, state.tools, "it lists"),
    )


def _below(place: Place, key: str, path: str) -> Place:
    """Return a place with the path of a step, where it is that of the steps."""
    return replace(place, key=path) if place.key == key else place
