"""The plan, as the session says it before it starts: what becomes of each server's writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.suspicious_tools import Suspicion, suspicious_reads
from pytest_mst.attempt.write_modes import write_modes
from pytest_mst.domain.eval_config import ServerBase, Variant
from pytest_mst.domain.placeholder import TRIAL_ID
from pytest_mst.domain.plan import ToolCounts
from pytest_mst.domain.write import WriteMode
from pytest_mst.eval_files.environment import short_secrets_of
from pytest_mst.plugin.session import EvalSession
from pytest_mst.report.text import counted, shown

_LONGEST = 8
"""How many tools a line names."""


def header_lines(session: EvalSession) -> list[str]:
    """Return the lines for pytest's header: one for each eval and set of servers, then warnings."""
    lines = []
    for prepared in session.prepared.values():
        variants = session.variants(prepared.loaded.config)
        by_servers: dict[str, list[str]] = {}
        for variant in variants:
            text = ", ".join(_servers(prepared, variant)) or "no server"
            by_servers.setdefault(text, []).append(variant.name)
        for text, names in by_servers.items():
            which = "" if len(by_servers) == 1 else f" [{', '.join(map(shown, names))}]"
            lines.append(f"eval {shown(prepared.loaded.config.name)}{which}: {text}")
        lines.extend(f"  {line}" for line in _notes(session, prepared, variants))
    return lines


def _servers(prepared: PreparedEval, variant: Variant) -> Iterator[str]:
    config = prepared.loaded.config
    for label, mode in write_modes(prepared.loaded, variant, prepared.servers).items():
        state, server = prepared.servers[label], config.servers[label]
        if state.failure is not None:
            yield f"{shown(label)} cannot be used: {shown(state.failure.reason)}"
            continue
        counts = ToolCounts.of(state.tools_for(server))
        parts = [
            counted(counts.reads, "read"),
            counted(counts.declared_writes, "declared write"),
            f"{counts.unhinted} held for want of a hint",
        ]
        if server.dispatchers:
            parts.append(counted(len(server.dispatchers), "dispatcher"))
        yield f"{shown(label)} {_mode(mode, server)} ({', '.join(parts)})"


def _mode(mode: WriteMode, server: ServerBase) -> str:
    """Return the word for a mode: in capitals where writes may be real."""
    word = mode.value
    if mode is WriteMode.LIVE or mode is WriteMode.UNGUARDED:
        word = word.upper()
    if mode is WriteMode.SERVER_PLANNED:
        word += f" by {shown(server.planned_write_key or '')}"
    return f"direct {word}" if server.direct else word


def _notes(
    session: EvalSession, prepared: PreparedEval, variants: Sequence[Variant]
) -> Iterator[str]:
    """Yield what people should know of an eval before it runs."""
    config = prepared.loaded.config
    short = short_secrets_of(config, os.environ)
    if short:
        yield f"too short to be kept out of stored text, so replaced in no file: {', '.join(short)}"
    modes = [write_modes(prepared.loaded, variant, prepared.servers) for variant in variants]
    cases = [one.case for one in prepared.loaded.tagged(session.tags(config))]
    cases = [case for case in cases if case.skip is None]
    if any(WriteMode.LIVE in by_label.values() for by_label in modes):
        stopped = [shown(case.id) for case in cases if not case.expected.outcome]
        if stopped:
            yield f"live writes are stopped where no outcome is checked: {_listed(stopped)}"
        if config.cleanup and not any(TRIAL_ID in repr(one.arguments) for one in config.cleanup):
            yield (
                f"warning: no step of cleanup has {TRIAL_ID}, so that it may take away what others "
                "wrote, or leave what an attempt wrote; write it into the arguments of one, "
                "unless everything there is for these cases alone"
            )
    unguarded = [
        shown(variant.name)
        for variant, by_label in zip(variants, modes, strict=True)
        if WriteMode.UNGUARDED in by_label.values()
    ]
    writing = [shown(case.id) for case in cases if case.expected.writes is not None]
    if unguarded and writing:
        which = "" if len(unguarded) == len(variants) else f" of {_listed(unguarded)}"
        yield f"unguarded write cases{which}: {_listed(writing)}"
    for label in dict.fromkeys(label for by_label in modes for label in by_label):
        suspicions = suspicious_reads(prepared.servers[label].tools_for(config.servers[label]))
        if suspicions:
            yield (
                f"warning: {shown(label)} hints that these only read, and so they are let through: "
                f"{_listed(map(_suspicion, suspicions))}; name those that write in "
                f"servers.{shown(label)}.alwaysWriteTools, the others in readOnlyTools"
            )


def _suspicion(one: Suspicion) -> str:
    because = f" ({shown(one.because)})" if one.because else ""
    return f"{shown(one.tool)}{because}"


def _listed(names: Iterable[str]) -> str:
    """Name the first few, and how many more there are."""
    there = list(names)
    more = f" and {len(there) - _LONGEST} more" if len(there) > _LONGEST else ""
    return ", ".join(there[:_LONGEST]) + more
