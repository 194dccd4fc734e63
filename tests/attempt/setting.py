"""A setting for a test: a small server, a target, a job, and where it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_mst.attempt.collect import collect
from pytest_mst.attempt.finished import FinishedAttempt
from pytest_mst.attempt.identity import identity_of
from pytest_mst.attempt.job import AttemptJob, Target
from pytest_mst.attempt.run_rules import NO_RULES, RunRules
from pytest_mst.clients.client import Client
from pytest_mst.clients.scripted import ScriptedClient
from pytest_mst.domain.case import Case
from pytest_mst.domain.ending import Ending, InfrastructureFailure
from pytest_mst.domain.eval_config import StdioServer
from pytest_mst.domain.run import AttemptId, locator
from pytest_mst.domain.write import ServerTools, WriteMode
from pytest_mst.grading.select import graders_of
from pytest_mst.proxy.hub import Hub
from pytest_mst.proxy.upstream_spec import AttemptServer, Isolation, UpstreamSpec
from pytest_mst.store.append import RunWriter
from pytest_mst.store.journal import JournalLine, read_journal
from pytest_mst.store.layout import RunLayout
from tests.attempt.servers.small import READS, WRITES

SERVERS = Path(__file__).parent / "servers"
RUN_ID = "20261130T094500Z-7f3c2a"
AT = AttemptId("default", "c", 0)
LISTED = {one["name"]: one for one in [*READS, *WRITES]}

READ = {"call": {"server": "notes", "tool": "read_note"}}
WRITE = {"call": {"server": "notes", "tool": "write_note", "arguments": {"text": "hi"}}}
HIDDEN = {"hidden": WRITE["call"]}
DONE = {"answer": "done"}


def small(*flags: str, label: str = "notes", **config: Any) -> UpstreamSpec:
    """Specify the small server."""
    return UpstreamSpec(label, StdioServer.model_validate(small_config(*flags, **config)), SERVERS)


def small_config(*flags: str, **config: Any) -> dict[str, Any]:
    """Write the small server down as an eval config does."""
    args = [str(SERVERS / "small.py"), *flags]
    return {"transport": "stdio", "command": "python", "args": args, "protocol": "legacy"} | config


def target(
    *specs: UpstreamSpec,
    client: Client | None = None,
    options: Mapping[str, Any] | None = None,
    mode: WriteMode = WriteMode.PLANNED,
    isolation: Isolation = "variant",
    failure: InfrastructureFailure | None = None,
    **fields: Any,
) -> Target:
    """Put together a target; the scripted client and one small server where none is given."""
    used = specs or (small(),)
    given: dict[str, Any] = {
        "variant": "default",
        "client": client or ScriptedClient(),
        "model": None,
        "options": options or {},
        "input_template": "{{input}}",
        "servers": {spec.label: AttemptServer(spec, mode, isolation) for spec in used},
        "tools": {spec.label: ServerTools(spec.label, LISTED) for spec in used},
        "modes": {spec.label: mode for spec in used},
        "definitions": {spec.label: {} for spec in used},
        "failure": failure,
    }
    return Target(**{**given, **fields})


def scripted(*steps: Mapping[str, Any], **more: Any) -> Target:
    """Put together a target whose client does these steps."""
    return target(client=ScriptedClient(steps), **more)


def job(
    target: Target, case: Mapping[str, Any] | None = None, *, timeout_s: float = 20, **fields: Any
) -> AttemptJob:
    """Make an attempt's job, of a case as a dataset holds it, with the graders it asks for."""
    read = Case.model_validate({"id": AT.case, "input": "do it", **(case or {})})
    given: dict[str, Any] = {
        "id": AT,
        "locator": locator(RUN_ID, AT),
        "case": read,
        "dataset": "cases",
        "target": target,
        "timeout_s": timeout_s,
        "graders": graders_of(read),
        "identity": identity_of(read, target),
    }
    return AttemptJob(**{**given, **fields})


def writer_in(folder: Path, worker: str = "main") -> RunWriter:
    return RunWriter(RunLayout(folder, "team-chat", RUN_ID), worker=worker)


class Collected:
    """An attempt that was made, and what is on disk of it."""

    def __init__(self, finished: FinishedAttempt, layout: RunLayout) -> None:
        self.finished = finished
        self.layout = layout

    @property
    def ending(self) -> Ending:
        return self.finished.record.ending

    @property
    def failure(self) -> InfrastructureFailure:
        assert isinstance(self.ending, InfrastructureFailure), self.ending
        return self.ending

    @property
    def stored(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self.layout.trace(AT).read_bytes())
        return read

    @property
    def events(self) -> list[tuple[str, bool | None]]:
        """The tools of the stored trace, each with whether its call was an error."""
        found = self.stored["trace"]["events"]
        return [(event["name"], event.get("isError")) for event in found]

    @property
    def stored_writes(self) -> list[str]:
        return [entry["tool"] for entry in lines_of(self.layout.writes(AT))]

    @property
    def unreported(self) -> list[str]:
        return [one["tool"] for one in self.stored["agreement"]["unreportedWrites"]]

    @property
    def scores(self) -> dict[str, bool]:
        """The stored scores, by grader."""
        found = [json.loads(one.read_bytes()) for one in self.layout.scores_dir.rglob("*.json")]
        return {one["grader"]: one["score"]["pass"] for one in found}

    @property
    def journal(self) -> list[str]:
        return journal_of(self.layout)


async def make(
    target: Target,
    folder: Path,
    case: Mapping[str, Any] | None = None,
    *,
    hub: Hub | None = None,
    rules: RunRules = NO_RULES,
    **fields: Any,
) -> Collected:
    """Make one attempt, in a hub of its own where none is given."""
    writer = writer_in(folder)
    one = job(target, case, **fields)
    try:
        if hub is not None:
            return Collected(await collect(one, hub, writer, rules), writer.layout)
        async with Hub() as own:
            return Collected(await collect(one, own, writer, rules), writer.layout)
    finally:
        writer.close()


def lines_of(path: Path) -> Sequence[dict[str, Any]]:
    """Read a file with one JSON object on each line; none where there is no file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def journal_of(layout: RunLayout) -> list[str]:
    """Name the lines of a run's journal in order."""
    return [line.kind for line in read_journal(layout) if isinstance(line, JournalLine)]
