"""The process that decides: it compares what was planned with what is there, and says so.

Only it writes a run's figures and chooses the exit code, so that a case that nobody reported is
incomplete and never forgotten.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pytest

from pytest_mst.attempt.lost import store_lost
from pytest_mst.domain.ending import Broke, InfrastructureFailure
from pytest_mst.domain.errors import StoreError
from pytest_mst.domain.plan import RunPlan, plan_from_json
from pytest_mst.domain.resumption import Resumption, Step
from pytest_mst.domain.run import AttemptId, utc_text
from pytest_mst.domain.score import CaseVerdict
from pytest_mst.plugin.case_item import CaseItem
from pytest_mst.plugin.debts import pay_at_end
from pytest_mst.plugin.discover import is_eval_file
from pytest_mst.plugin.eval_run import EvalRun, module_eval_name, python_names
from pytest_mst.plugin.loading import shown_path
from pytest_mst.plugin.outcomes import (
    CASE_PROPERTY,
    AttemptNote,
    decides,
    note_of,
    skip_note_of,
    verdict_of,
)
from pytest_mst.plugin.progress import Progress
from pytest_mst.plugin.pytest_private import end_workers, terminal_of
from pytest_mst.plugin.session import EvalSession
from pytest_mst.report.attempts import AttemptRow
from pytest_mst.report.documents import Circumstances
from pytest_mst.report.exit import ExitCode, exit_code
from pytest_mst.report.finish import finish_run, read_run
from pytest_mst.report.resumption import resumption_lines
from pytest_mst.report.summary import RunSummary
from pytest_mst.report.terminal import closing_lines
from pytest_mst.store.read import read_document

REFUSED_ATTRIBUTE = "mst_refused"
"""On the report of a collection that failed for a mistake of the user's: the message."""


class Controller:
    """Counts what is reported, and closes the runs."""

    def __init__(self, config: pytest.Config, session: EvalSession, progress: Progress) -> None:
        self._config = config
        self._session = session
        self._progress = progress
        self._reported: dict[str, dict[AttemptId, AttemptRow]] = {}
        self._skipped: dict[tuple[str, str, str], str] = {}
        """Why a case was skipped while it ran, by run, variant and case."""
        self._incomplete = 0
        """Cases reported as incomplete, which pytest counts as failed set-ups."""
        self._refusals: dict[str, None] = {}
        self._summaries: list[tuple[EvalRun, RunSummary]] = []
        self._store_errors: list[StoreError] = []
        self._heard_of_collection = False
        self._taken_up: list[tuple[EvalRun, Resumption]] = []
        """Of runs that are taken up: what is still to be said of it."""
        self._selected_cases = 0
        """How many cases were collected and chosen."""

    def collected(self, cases: Sequence[CaseItem]) -> None:
        """Take note of the cases that were collected and chosen in this process."""
        self._selected_cases = len(cases)
        if self._session.taken_up is not None:
            return  # `took_up` tells of those
        for run in self._session.runs.values():
            planned = sum(case.trials for case in cases if case.run is run and not case.case.skip)
            self._progress.watch(run.layout, planned)

    def took_up(self, decided: Sequence[tuple[EvalRun, Resumption]]) -> None:
        """Take note of what becomes of the runs that are taken up."""
        self._taken_up.extend(decided)
        for run, resumption in decided:
            self._progress.watch(run.layout, resumption.counts[Step.COLLECT], from_now=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Say what becomes of the runs that are taken up, below what was collected."""
        self._say_taken_up()
        for run in self._session.runs.values():
            self._keep_program_logs(run, self._plan(run) if run.started else None)

    def _keep_program_logs(self, run: EvalRun, plan: RunPlan | None) -> None:
        """Keep what the programs of a run's servers write in its folder, once that is there."""
        if plan is not None:
            self._session.keep_program_logs(run, plan)

    def _say_taken_up(self) -> None:
        """Say what becomes of the runs that are taken up, before anything is done."""
        terminal = terminal_of(self._config)
        if terminal is None:
            return
        for run, resumption in self._taken_up:
            terminal.ensure_newline()
            for line in resumption_lines(run.name, run.run_id, resumption):
                terminal.write_line(run.writer.redactor.text(line))
        self._taken_up.clear()

    def collected_by_worker(self, ids: Sequence[str]) -> None:
        """Take note of the runs that workers have cases of; all collect the same."""
        if self._heard_of_collection:
            return
        self._heard_of_collection = True
        taken_up = self._session.taken_up
        for run in self._runs_of(ids):
            plan = self._plan(run)
            if plan is None:
                continue
            run.started = True
            self._selected_cases += len(plan.cases)
            self._share(run)
            self._keep_program_logs(run, plan)
            if taken_up is None:
                self._progress.watch(run.layout, sum(1 for _ in plan.attempts))
            else:
                last = [one for one in plan.resumptions[-1:] if one.at == taken_up.at]
                self.took_up([(run, one) for one in last])
        self._say_taken_up()
        self._progress.tick_from_thread()

    def _runs_of(self, ids: Sequence[str]) -> list[EvalRun]:
        """Return the runs that items are cases of; those that are taken up, whatever there is."""
        session = self._session
        if session.taken_up is not None:
            return list(session.runs.values())
        runs: dict[str, EvalRun] = {}
        for path in dict.fromkeys(self._config.rootpath / one.partition("::")[0] for one in ids):
            prepared = session.prepared.get(path) if is_eval_file(path) else None
            in_python = module_eval_name(path, session.root)
            name = prepared.loaded.config.name if prepared else in_python
            runs[name] = session.run(name, prepared)
        return list(runs.values())

    def _share(self, run: EvalRun) -> None:
        """Hold a run for as long as its workers do."""
        try:
            run.lock.share()
        except StoreError as error:
            self._store_errors.append(error)
        self._config.add_cleanup(run.lock.release)

    def worker_lost(self, worker: str) -> None:
        """Write down the attempts that a worker took along, before others are given its cases."""
        for run in self._session.runs.values():
            try:
                store_lost(run.writer, self._plan(run), worker)
            except StoreError as error:
                self._store_errors.append(error)

    def _plan(self, run: EvalRun) -> RunPlan | None:
        """Return a run's plan where it can be read; that it cannot be is told at the end."""
        try:
            return stored_plan(run)
        except StoreError:
            return None

    def case_lost(self, nodeid: str, report: pytest.TestReport) -> None:
        """Make the report of a case whose worker is lost one of an incomplete case."""
        path = self._config.rootpath / nodeid.partition("::")[0]
        if str(report.outcome) != "rerun" and (is_eval_file(path) or self._is_marked(nodeid)):
            report.when = "setup"
            report.user_properties.append((CASE_PROPERTY, CaseVerdict.INCOMPLETE.value))

    def _is_marked(self, nodeid: str) -> bool:
        """Tell whether an item of a Python file is one of its run's cases."""
        path, _, tail = nodeid.partition("::")
        names = {tail, tail.rpartition("@")[0]}  # xdist writes a group's name behind it
        root = self._session.root
        run = self._session.runs.get(module_eval_name(root / path, root))
        plan = self._plan(run) if run is not None else None
        return plan is not None and any(
            not names.isdisjoint(python_names(one.case, one.variant)) for one in plan.cases
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count, and keep what may not be on disk."""
        self._progress.clear()
        note, skipped = note_of(report), skip_note_of(report)
        if note is not None:
            self._keep(note)
        elif skipped is not None:
            self._skipped[skipped.run, skipped.variant, skipped.case] = skipped.reason
        elif decides(report) and verdict_of(report) is CaseVerdict.INCOMPLETE:
            self._incomplete += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what was refused."""
        message = getattr(report, REFUSED_ATTRIBUTE, None)
        if message is not None:
            self._refusals[message] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> Iterator[Any]:
        """Close the runs and choose the exit code, before reporters read it."""
        self._progress.close()
        if not (self._config.option.collectonly or self._config.option.setupplan):
            end_workers(self._config)
            self._close_runs()
        session.exitstatus = self._exit_status(session, exitstatus)
        return (yield)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one block for each eval."""
        show_closing(terminalreporter, self._config, self._summaries, self._store_errors)
        if not self._selected_cases and not self._refusals and not self._summaries:
            show_none_selected(terminalreporter, self._config, self._session)

    def _keep(self, note: AttemptNote) -> None:
        """Keep an infrastructure failure, which may be one of storing it."""
        if note.state != "infrastructure" or note.broke is None:
            return
        attempt = AttemptId(note.variant, note.case, note.trial)
        ending = InfrastructureFailure(Broke(note.broke), note.reason, note.retryable)
        row = AttemptRow(attempt, note.locator, ending)
        self._reported.setdefault(note.run, {})[attempt] = row

    def _close_runs(self) -> None:
        for run in self._session.runs.values():
            try:
                plan = stored_plan(run)
                if plan is None and run.started:
                    raise StoreError(str(run.layout.run_json), "was there and is gone")
                if plan is None:
                    continue
                pay_at_end(self._config, self._session, run)
                self._summaries.append((run, self._closed(run, self._without_skipped(plan))))
            except StoreError as error:
                self._store_errors.append(error)

    def _closed(self, run: EvalRun, plan: RunPlan) -> RunSummary:
        """Write a run's documents; where that fails, work the figures out all the same.

        Raises:
            StoreError: what is stored of the run cannot be read.

        """
        reported = self._reported.get(run.run_id)
        try:
            store_lost(run.writer, plan, told=failures_in(reported or {}))
            finished_at = utc_text(datetime.now(UTC))
            return finish_run(
                plan,
                run.writer,
                circumstances=circumstances(),
                finished_at=finished_at,
                reported=reported,
                under_way={},  # what began and did not end has just been given its ending
            )
        except StoreError as error:
            self._store_errors.append(error)
            return read_run(plan, run.layout, reported)

    def _without_skipped(self, plan: RunPlan) -> RunPlan:
        """Return the plan with the cases that were skipped while they ran."""
        cases = []
        for case in plan.cases:
            reason = self._skipped.get((plan.run_id, case.variant, case.case))
            cases.append(case if reason is None else replace(case, skip=reason))
        return replace(plan, cases=tuple(cases))

    def _exit_status(
        self, session: pytest.Session, exitstatus: int | pytest.ExitCode
    ) -> int | pytest.ExitCode:
        code = pytest.ExitCode
        stopped = stopped_at_failures(session)
        if self._refusals:
            return code.USAGE_ERROR
        if exitstatus == code.INTERRUPTED and not stopped:
            return exitstatus
        if exitstatus not in (
            code.OK,
            code.TESTS_FAILED,
            code.NO_TESTS_COLLECTED,
            code.INTERRUPTED,
        ):
            return exitstatus
        if stopped:
            exitstatus = code.TESTS_FAILED  # xdist says 2 for -x, pytest itself 1
        failed_otherwise = session.testsfailed > self._incomplete
        if exitstatus == code.TESTS_FAILED and failed_otherwise:
            return code.TESTS_FAILED
        if not self._selected_cases and not self._summaries:
            return code.TESTS_FAILED if session.testsfailed else code.NO_TESTS_COLLECTED
        decided = exit_code(summary for _, summary in self._summaries)
        if (self._store_errors or self._incomplete) and decided is ExitCode.PASSED:
            decided = ExitCode.INCOMPLETE
        return int(decided)


def failures_in(rows: Mapping[AttemptId, AttemptRow]) -> dict[AttemptId, InfrastructureFailure]:
    """Return how the attempts ended that are no trials."""
    return {
        attempt: row.ending
        for attempt, row in rows.items()
        if isinstance(row.ending, InfrastructureFailure)
    }


def stored_plan(run: EvalRun) -> RunPlan | None:
    """Return the plan that the process which collected the run wrote down.

    Raises:
        StoreError: it cannot be read.

    """
    stored = read_document(run.layout.run_json)
    try:
        return None if stored is None else plan_from_json(stored)
    except ValueError as error:
        raise StoreError(str(run.layout.run_json), f"is no run's: {error}") from error


def circumstances() -> Circumstances:
    """Return what runs are made with."""
    return Circumstances(version=version("pytest-mst"))


def stopped_at_failures(session: pytest.Session) -> bool:
    """Tell whether xdist stopped the session because of -x or --maxfail."""
    most: int = session.config.getoption("maxfail") or 0  # not given, it is None
    distributed = session.config.pluginmanager.has_plugin("dsession")
    return distributed and 0 < most <= session.testsfailed


def show_closing(
    terminal: pytest.TerminalReporter,
    config: pytest.Config,
    summaries: list[tuple[EvalRun, RunSummary]],
    errors: list[StoreError],
) -> None:
    """Print the closing block of each eval, and what could not be stored."""
    for run, summary in summaries:
        options = finishing_options(config, summary.plan.source)
        terminal.section(f"eval {run.name}", sep="=", bold=True)
        shown = shown_path(config, run.layout.run_dir)
        for line in closing_lines(summary, shown, options=options):
            terminal.line(run.writer.redactor.text(line))
    for error in errors:
        terminal.section("a run could not be stored", sep="=", red=True)
        terminal.line(str(error))


def finishing_options(config: pytest.Config, source: str) -> str:
    """Return what the command that finishes a run needs beside its name, each after a space.

    Args:
        config: pytest's.
        source: the file that the run is of, from the root folder.

    """
    here, words = config.invocation_params.dir, []
    results = config.getoption("mst_results")
    if results is not None:  # pytest takes a path that stands alone for one of tests
        words.append(f"--mst-results={results}")
    for option, value in (("-c", config.option.inifilename), ("--rootdir", config.option.rootdir)):
        if value is not None:
            words += [option, str(value)]
    if config.rootpath != here and source:  # which is what leads pytest to the root folder
        words.append(os.path.relpath(config.rootpath / source, here))
    return "".join(f" {shlex.quote(word)}" for word in words)


def show_none_selected(
    terminal: pytest.TerminalReporter, config: pytest.Config, session: EvalSession
) -> None:
    """Say that no eval case was selected, and where they were looked for."""
    places = ", ".join(shown_path(config, path) for path in session.selected.looked_in)
    terminal.section("no eval case selected", sep="=", yellow=True)
    terminal.line(
        f"looked in {places or 'no place'} for *.eval.yaml, *.eval.yml, *.eval.json, and tests "
        "marked `mst`"
    )
    chosen = session.settings.overrides
    if chosen:
        options = {"variants": "--mst-variant", "tags": "--mst-tag"}
        named = (options.get(key, f"--mst-{key}") for key in chosen)
        terminal.line("chosen by " + ", ".join(named))
