"""Reads an eval config and its datasets, and says all that is wrong with them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pytest_mst.domain.case import Case, Dataset
from pytest_mst.domain.errors import EvalFileError, EvalFileErrors, Place
from pytest_mst.domain.eval_config import DatasetRef, DatasetRefOrPath, EvalConfig
from pytest_mst.domain.json_value import content_hash
from pytest_mst.domain.loaded import DatasetInfo, LoadedCase, LoadedEval
from pytest_mst.domain.model import ListOf
from pytest_mst.eval_files.case_check import check_cases, check_ids
from pytest_mst.eval_files.collector_pause import collector_paused
from pytest_mst.eval_files.config_check import check_config
from pytest_mst.eval_files.dataset_files import find_files
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.model_check import ModelT, check_model
from pytest_mst.eval_files.source import read_document, shown_path
from pytest_mst.eval_files.unsupported import IN_CONFIG, Unsupported, find_unsupported


def load_eval(
    path: Path,
    *,
    environ: Mapping[str, str],
    shown: Callable[[Path], str] | None = None,
    needs_cases: bool = True,
) -> LoadedEval:
    """Read an eval config and its datasets.

    Args:
        path: the eval config.
        environ: where `${NAME}` is looked up. Values are only looked for; they are not kept.
        shown: how to write a path in messages; by default relative to the working folder.
        needs_cases: whether the eval must have cases; one that only serves test functions, which
            are its cases, need not.

    Raises:
        EvalFileErrors: with everything that is wrong, in the order of the files' lines.

    """
    with collector_paused():
        return _Loading(path, environ, shown or shown_path, needs_cases).load()


@dataclass(frozen=True, slots=True)
class _CaseFile:
    """Cases that were read from one file."""

    document: Document
    name: str
    cases: tuple[Case, ...]
    content: object
    """What the cases are hashed by."""


@dataclass
class _Loading:
    """One eval being read; problems are gathered on the way."""

    path: Path
    environ: Mapping[str, str]
    shown: Callable[[Path], str]
    needs_cases: bool
    problems: list[EvalFileError] = field(default_factory=list)

    def load(self) -> LoadedEval:
        document = read_document(self.path, self.shown(self.path))
        config = self._checked(document, EvalConfig, IN_CONFIG)
        files = self._datasets(document, config)
        if config is not None:
            if config.cases:
                content = _part(document.value, "cases")
                files.insert(0, _CaseFile(document, config.name, config.cases, content))
            self._check(document, config, files)
        cases = tuple(case for file in files for case in _loaded_cases(file))
        self.problems += check_ids(cases)
        if config is None or self.problems:
            raise EvalFileErrors(_in_order(self.problems))
        return LoadedEval(
            path=self.path,
            config=config,
            cases=cases,
            datasets=tuple(
                DatasetInfo(file.name, len(file.cases), content_hash(file.content))
                for file in files
            ),
            places=_places(document, config),
        )

    def _checked(
        self, document: Document, model: type[ModelT], entries: tuple[Unsupported, ...]
    ) -> ModelT | None:
        """Build a model, and gather what stands in the way."""
        self.problems += document.problems
        read, misfits = check_model(document, model)
        unsupported = list(find_unsupported(document, entries))
        # What is not supported is told once; how it is written does not matter then.
        told = {document.place(path).key for path, _ in unsupported}
        self.problems += [error for _, error in unsupported]
        self.problems += [error for error in misfits if not _lies_in(error.place, told)]
        return read

    def _datasets(self, document: Document, config: EvalConfig | None) -> list[_CaseFile]:
        references = _references(document) if config is None else config.datasets
        found = find_files(document, self.path.parent, references)
        self.problems += found.problems
        files = []
        for path in found.paths:
            try:
                read = read_document(path, self.shown(path))
            except EvalFileErrors as unreadable:
                self.problems += unreadable.errors
                continue
            dataset = self._checked(read, Dataset, ())
            if dataset is not None:
                content = {
                    key: held for key, held in _object(read.value).items() if key != "$schema"
                }
                files.append(_CaseFile(read, dataset.name, dataset.cases, content))
        return files

    def _check(self, document: Document, config: EvalConfig, files: list[_CaseFile]) -> None:
        # Datasets that could not be read may have cases.
        if self.needs_cases and not self.problems and not any(file.cases for file in files):
            what = "the datasets have" if config.datasets else "the eval has"
            self.problems.append(
                document.error((), f"{what} no cases", "add cases, here or in datasets")
            )
        self.problems += check_config(document, config, self.environ)
        for file in files:
            self.problems += check_cases(file.document, file.cases, config)


def _references(document: Document) -> tuple[DatasetRef, ...]:
    """Return the dataset references of a config that is wrong elsewhere, if they are right."""
    given = _part(document.value, "datasets")
    references: TypeAdapter[tuple[DatasetRef, ...]] = TypeAdapter(ListOf[DatasetRefOrPath])
    try:
        return references.validate_python(given or [])
    except ValidationError:
        return ()


def _loaded_cases(file: _CaseFile) -> list[LoadedCase]:
    return [
        LoadedCase(case, file.name, file.document.place(("cases", index)))
        for index, case in enumerate(file.cases)
    ]


def _places(document: Document, config: EvalConfig) -> dict[str, Place]:
    """Return where the config says things, by the names that `LoadedEval.place` is asked for."""
    paths: dict[str, KeyPath] = {"": ()}
    for key, value in _object(document.value).items():
        paths[key] = (key,)
        if key in ("servers", "writes") and isinstance(value, dict):
            paths.update({f"{key}.{label}": (key, label) for label in value})
    for index, variant in enumerate(config.variants):
        paths[f"variants.{variant.name}"] = ("variants", index)
    return {name: document.place(path) for name, path in paths.items()}


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _part(value: object, key: str) -> object:
    return _object(value).get(key)


def _lies_in(place: Place, keys: set[str | None]) -> bool:
    return any(
        place.key == key or (place.key or "").startswith((f"{key}.", f"{key}[")) for key in keys
    )


def _in_order(problems: list[EvalFileError]) -> list[EvalFileError]:
    """Sort by line within each file; files stay in the order in which they were read."""
    files = {error.place.file: 0 for error in problems}
    order = {file: index for index, file in enumerate(files)}
    return sorted(problems, key=lambda error: (order[error.place.file], error.place.line or 0))
