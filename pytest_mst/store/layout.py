"""Where the files of a run are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_mst.domain.run import AttemptId
from pytest_mst.store.names import safe_name

RUN_FORMAT = "mst.run/v1"
"""What every stored file says its format is."""


@dataclass(frozen=True, slots=True)
class RunLayout:
    """The paths of one run. Nothing is created here."""

    results_dir: Path
    eval_name: str
    run_id: str
    folder: Path | None = field(default=None, repr=False)
    """Where the run lies, where that is not where its eval's name and its id put it."""
    places: Mapping[AttemptId, str] = field(
        default_factory=dict, repr=False, compare=False, hash=False
    )
    """Where attempts lie below `traces` and the other folders, without the file's ending, where
    an older tool named folders in another way."""
    eval_dir: Path = field(init=False)
    run_dir: Path = field(init=False)
    _root: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        eval_dir = self.results_dir / safe_name(self.eval_name)
        object.__setattr__(self, "eval_dir", eval_dir)
        run_dir = self.folder or eval_dir / "runs" / _run_folder(self.run_id)
        object.__setattr__(self, "run_dir", run_dir)
        object.__setattr__(self, "_root", str(run_dir))

    @property
    def latest_json(self) -> Path:
        """Which run of the eval was the last full one."""
        return self.eval_dir / "latest.json"

    @property
    def run_json(self) -> Path:
        """What was planned, and with what."""
        return self.run_dir / "run.json"

    @property
    def summary_json(self) -> Path:
        """The figures."""
        return self.run_dir / "summary.json"

    @property
    def results_json(self) -> Path:
        """Every case, with its trials."""
        return self.run_dir / "results.json"

    @property
    def journal(self) -> Path:
        """Begun and ended attempts, in the order they were written."""
        return self.run_dir / "journal.jsonl"

    @property
    def stops(self) -> Path:
        """What keeps attempts from beginning, in the order it was met."""
        return self.run_dir / "stops.jsonl"

    @property
    def backoff_dir(self) -> Path:
        """The folder with one file for each endpoint that attempts were told to leave alone."""
        return self.run_dir / "backoff"

    @property
    def scores_dir(self) -> Path:
        """The folder with one folder for each grader."""
        return self.run_dir / "scores"

    def trace(self, attempt: AttemptId) -> Path:
        """Return the file of one attempt: its ending and its trace."""
        return Path(self.trace_file(attempt))

    def writes(self, attempt: AttemptId) -> Path:
        """Return the write record of one attempt."""
        return Path(self.writes_file(attempt))

    def score(self, grader: str, attempt: AttemptId) -> Path:
        """Return the score that one grader gave one attempt."""
        return Path(self.score_file(grader, attempt))

    def trace_file(self, attempt: AttemptId) -> str:
        """Return `trace` as text: paths as objects are a good part of the time a file takes."""
        return f"{self._root}/traces/{self._place(attempt)}.json"

    def writes_file(self, attempt: AttemptId) -> str:
        """Return `writes` as text."""
        return f"{self._root}/writes/{self._place(attempt)}.jsonl"

    def score_file(self, grader: str, attempt: AttemptId) -> str:
        """Return `score` as text."""
        return self.score_in(safe_name(grader), attempt)

    def score_in(self, folder: str, attempt: AttemptId) -> str:
        """Return the score of one attempt in one of the folders of `scores_dir`, as text."""
        return f"{self._root}/scores/{folder}/{self._place(attempt)}.json"

    def _place(self, attempt: AttemptId) -> str:
        """Return where an attempt's files lie below each of the run's folders."""
        return self.places.get(attempt) or _attempt_path(attempt)

    @property
    def lock(self) -> Path:
        """Held by the processes that the run is in use by."""
        return self.run_dir / "lock"

    def connections_dir(self, variant: str) -> Path:
        """Return the folder of the connections that attempts of a variant shared."""
        return self.run_dir.joinpath("connections", safe_name(variant))

    def connection_file(self, variant: str, name: str) -> str:
        """Return the write record of one connection that attempts of a variant shared."""
        return str(self.connections_dir(variant) / f"{safe_name(name)}.jsonl")

    def superseded(self, stamp: str) -> RunLayout:
        """Return where the files are that were replaced at one time, laid out as in the run."""
        folder = self.run_dir / "superseded" / _run_folder(stamp)
        return replace(self, folder=folder)

    def server_log(self, variant: str, label: str) -> Path:
        """Return what a server wrote to its standard error for one variant."""
        return self.run_dir.joinpath("logs", safe_name(variant), safe_name(label) + ".log")


def _run_folder(run_id: str) -> str:
    """Return the folder's name of a run: its id, where that is one that this project makes."""
    as_made = run_id.isascii() and run_id.replace("-", "").isalnum() and run_id[:1].isdigit()
    return run_id if as_made else safe_name(run_id)


def _attempt_path(attempt: AttemptId) -> str:
    return f"{safe_name(attempt.variant)}/{safe_name(attempt.case)}/{attempt.trial}"
