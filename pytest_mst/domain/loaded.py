"""An eval config with its datasets read in: what the plan of a run is made from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import Place
from pytest_mst.domain.eval_config import EvalConfig


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case and where it was read."""

    case: Case
    dataset: str
    """The dataset's name; the eval's own for an inline case."""
    place: Place


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A dataset as a run names it."""

    name: str
    case_count: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class LoadedEval:
    """An eval config, its cases in order, and where it was read.

    References to the environment (`${NAME}`) are still as they were written, so that this can
    be stored and handed on; `eval_files.environment` resolves them.
    """

    path: Path
    config: EvalConfig
    cases: tuple[LoadedCase, ...]
    datasets: tuple[DatasetInfo, ...]
    places: dict[str, Place]
    """By key path, such as `servers.chat` or `writes.chat`: where the config says it."""

    def place(self, *keys: str) -> Place:
        """Return where the config says something, or the nearest place above it."""
        path = list(keys)
        while path:
            found = self.places.get(".".join(path))
            if found is not None:
                return found
            path.pop()
        return self.places.get("", Place(file=str(self.path)))

    def tagged(self, tags: Iterable[str]) -> tuple[LoadedCase, ...]:
        """Return the cases that have one of the tags; all of them where no tag is given."""
        wanted = set(tags)
        return tuple(one for one in self.cases if not wanted or wanted & set(one.case.tags))
