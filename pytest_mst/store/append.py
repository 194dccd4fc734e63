"""Writing a run as it goes: every record is on disk the moment it exists."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from pytest_mst.domain.attempt import AttemptRecord
from pytest_mst.domain.ending import Ending
from pytest_mst.domain.run import AttemptId, utc_text
from pytest_mst.domain.score import GradeOutcome
from pytest_mst.domain.write import WriteEntry
from pytest_mst.store.connection_file import ConnectionFile
from pytest_mst.store.failure import store_error
from pytest_mst.store.layout import RUN_FORMAT, RunLayout
from pytest_mst.store.line_file import LineFile
from pytest_mst.store.redact import Redactor
from pytest_mst.store.scores import by_grader, score_to_json
from pytest_mst.store.whole_file import write_whole

_CHUNK_BYTES = 1 << 16
_OF_RUN = (
    "evalName",
    "configId",
    "configName",
    "source",
    "selection",
    "variants",
    "datasets",
    "path",
    "plannedCases",
)
"""Of documents of a whole run: what it is found and taken up by."""
_NAMES = ("variant", "caseId", "grader", "id", "plannedCases")
"""Fields that files are found by. They come from eval files, where they can be read anyway."""


class WriteSink:
    """The write record of one attempt, on disk. The file is made by the first entry."""

    def __init__(self, file: LineFile, redactor: Redactor) -> None:
        self._file = file
        self._redactor = redactor

    def __call__(self, entry: WriteEntry) -> None:
        """Record a write.

        Raises:
            StoreError: the write is not recorded, so it must not be answered as done.

        """
        self._file.append(self._redactor.json_text(entry.to_json()))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class RunWriter:
    """Writes the files of one run. Several may write to one run, in several processes.

    Nothing is created before the first write. Every method that writes raises `StoreError`,
    which names the file and the way out; a file that could not be written is not there, or is
    as it was before. Lines are appended in one call each.
    """

    def __init__(
        self, layout: RunLayout, *, secrets: Iterable[str] = (), worker: str = "main"
    ) -> None:
        """Take a run's place.

        Args:
            layout: where its files go.
            secrets: values that are replaced by `[redacted]` in everything that is written.
            worker: the name of the process, for the journal.

        """
        self.layout = layout
        self.redactor = Redactor(secrets)
        self._worker = worker
        self._journal = LineFile(str(layout.journal))

    def begun(
        self, attempt: AttemptId, locator: str, worker: str | None = None, at: str | None = None
    ) -> None:
        """Note in the journal that an attempt begins, before it does.

        Args:
            attempt: which one.
            locator: its short name.
            worker: the process it begins in; this one by default.
            at: ISO 8601, UTC; now by default.

        """
        self._note("begun", attempt, locator, at, {"worker": worker or self._worker})

    def ended(
        self, attempt: AttemptId, locator: str, ending: Ending, at: str | None = None
    ) -> None:
        """Note in the journal how an attempt ended, after its file is written."""
        self._note("ended", attempt, locator, at, {"ending": ending.kind})

    def withdrawn(self, attempt: AttemptId, locator: str, at: str | None = None) -> None:
        """Note in the journal that an attempt that began is none: its case is skipped."""
        self._note("ended", attempt, locator, at, {"ending": "skipped"})

    def owes(
        self,
        attempt: AttemptId,
        locator: str,
        trial_id: str,
        error: str | None = None,
        at: str | None = None,
    ) -> None:
        """Note in the journal that a live attempt owes its cleanup, before it writes anything.

        Args:
            attempt: which one.
            locator: its short name.
            trial_id: what `{{trial.id}}` stands for in it.
            error: why the cleanup failed, where it was tried and is still owed.
            at: ISO 8601, UTC; now by default.

        """
        why = {} if error is None else {"error": error}
        self._note("owes", attempt, locator, at, {"trialId": trial_id, **why})

    def paid(self, attempt: AttemptId, locator: str, trial_id: str, at: str | None = None) -> None:
        """Note in the journal that the cleanup of a live attempt was made."""
        self._note("paid", attempt, locator, at, {"trialId": trial_id})

    def retrying(
        self,
        attempt: AttemptId,
        locator: str,
        *,
        next_try: int,
        of: int,
        reason: str,
        wait_ms: int,
        at: str | None = None,
    ) -> None:
        """Note in the journal that an attempt waits before a try, as it begins to.

        Args:
            attempt: which attempt.
            locator: its short name.
            next_try: the try that it waits for, 1-based.
            of: how many tries there are at most.
            reason: why.
            wait_ms: for how long.
            at: ISO 8601, UTC; now by default.

        """
        more = {"try": next_try, "of": of, "reason": reason, "waitMs": wait_ms}
        self._note("retry", attempt, locator, at, more)

    def attempt(self, record: AttemptRecord) -> None:
        """Write an attempt's own file: its ending and its trace."""
        self._write(self.layout.trace_file(record.id), record.to_json(self.layout.run_id))

    def scores(self, attempt: AttemptId, outcomes: Sequence[GradeOutcome]) -> None:
        """Write one file for each score. Graders that could not run have none."""
        for grader, outcome in by_grader(outcomes).items():
            self._write(
                self.layout.score_file(grader, attempt),
                {
                    "format": RUN_FORMAT,
                    "kind": "score",
                    "runId": self.layout.run_id,
                    "grader": grader,
                    "variant": attempt.variant,
                    "caseId": attempt.case,
                    "trial": attempt.trial,
                    "score": score_to_json(outcome),
                },
            )

    def write_sink(self, attempt: AttemptId) -> WriteSink:
        """Return where the writes of one attempt are recorded."""
        return WriteSink(LineFile(self.layout.writes_file(attempt)), self.redactor)

    def connection_file(self, variant: str, name: str) -> ConnectionFile:
        """Return where the writes over one connection are recorded that attempts share."""
        return ConnectionFile(self.layout.connection_file(variant, name), self.redactor)

    def run_json(self, document: Mapping[str, object]) -> None:
        """Write `run.json`."""
        self._write(str(self.layout.run_json), document, _OF_RUN)

    def summary(self, document: Mapping[str, object]) -> None:
        """Write `summary.json`."""
        self._write(str(self.layout.summary_json), document)

    def results(self, head: Mapping[str, object], cases: Iterable[Mapping[str, object]]) -> None:
        """Write `results.json` as its cases come, with one case in memory at a time.

        Args:
            head: the document's other fields.
            cases: the items of its `cases`.

        """
        write_whole(str(self.layout.results_json), _chunks(self._results_text(head, cases)))

    def latest(self, document: Mapping[str, object]) -> None:
        """Write `latest.json`. Only for a full run that has ended, and last of all."""
        self._write(str(self.layout.latest_json), document, _OF_RUN)

    def sync(self) -> None:
        """Have the system put everything written so far on the disk; once, at a run's end."""
        folder = self.layout.run_dir
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return  # nothing was written
        except OSError as error:
            raise store_error(folder, "opened", error) from error
        try:
            _sync_file_system(descriptor)
        except OSError as error:
            raise store_error(folder, "put on the disk", error) from error
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Close the journal; a later line opens it again."""
        self._journal.close()

    def _note(
        self,
        kind: str,
        attempt: AttemptId,
        locator: str,
        at: str | None,
        more: Mapping[str, object],
    ) -> None:
        line = {
            "format": RUN_FORMAT,
            "kind": kind,
            "variant": attempt.variant,
            "caseId": attempt.case,
            "trial": attempt.trial,
            "locator": locator,
            "at": at or utc_text(datetime.now(UTC)),
            **more,
        }
        self._journal.append(self.redactor.json_text(line, _NAMES))

    def _write(
        self, path: str, document: Mapping[str, object], kept: Sequence[str] = _NAMES
    ) -> None:
        write_whole(path, (f"{self.redactor.json_text(document, kept)}\n".encode("ascii"),))

    def _results_text(
        self, head: Mapping[str, object], cases: Iterable[Mapping[str, object]]
    ) -> Iterator[str]:
        yield self.redactor.json_text(head)[:-1]
        separator = "," if head else ""
        yield separator + '"cases":['
        separator = "\n"
        for case in cases:
            yield separator + self.redactor.json_text(case, _NAMES)
            separator = ",\n"
        yield "\n]}\n"


def _chunks(texts: Iterable[str]) -> Iterator[bytes]:
    """Gather texts into chunks that are worth a call to the system."""
    gathered: list[str] = []
    size = 0
    for text in texts:
        gathered.append(text)
        size += len(text)
        if size >= _CHUNK_BYTES:
            yield "".join(gathered).encode("ascii")
            gathered, size = [], 0
    yield "".join(gathered).encode("ascii")


def _sync_file_system(descriptor: int) -> None:
    """Sync the file system that an open file is on, and wait for it.

    `syncfs` takes one call for all of a run's small files, where `fsync` takes one for each.
    """
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        os.sync()
    elif syncfs(descriptor) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
