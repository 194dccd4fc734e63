"""What the session says before it starts: each server's write mode, and what is held by it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pytest_mst.attempt.prepared import PreparedEval
from pytest_mst.attempt.write_modes import write_modes
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.plan import ToolCounts
from pytest_mst.domain.write import WriteMode
from pytest_mst.eval_files.environment import short_secrets_of
from pytest_mst.plugin.session import EvalSession
from pytest_mst.report.text import shown


def header_lines(session: EvalSession) -> list[str]:
    """Return the lines for pytest's header: one for each eval and set of servers."""
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
        short = short_secrets_of(prepared.loaded.config, os.environ)
        if short:
            lines.append(
                f"  too short to be kept out of stored text, so replaced in no file: "
                f"{', '.join(short)}"
            )
    return lines


def _servers(prepared: PreparedEval, variant: Variant) -> Iterator[str]:
    config = prepared.loaded.config
    for label, mode in write_modes(prepared.loaded, variant, prepared.servers).items():
        state = prepared.servers[label]
        if state.failure is not None:
            yield f"{shown(label)} cannot be used: {shown(state.failure.reason)}"
            continue
        counts = ToolCounts.of(state.tools_for(config.servers[label]))
        word = "UNGUARDED" if mode is WriteMode.UNGUARDED else mode.value
        yield (
            f"{shown(label)} {word} ({_counted(counts.reads, 'read')}, "
            f"{_counted(counts.declared_writes, 'declared write')}, "
            f"{counts.unhinted} held for want of a hint)"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
