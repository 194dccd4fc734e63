"""The files that the `datasets` of an eval config name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.eval_config import DatasetRef
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.quoted import quoted
from pytest_mst.eval_files.source import SUFFIXES

_EVAL_CONFIGS = tuple(f".eval{suffix}" for suffix in SUFFIXES)


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Dataset files in the order they are read, and what was wrong with their references."""

    paths: tuple[Path, ...]
    problems: tuple[EvalFileError, ...]


def find_files(document: Document, folder: Path, references: tuple[DatasetRef, ...]) -> FoundFiles:
    """Find the files of every reference.

    Args:
        document: the eval config, to say where a reference is.
        folder: what paths are relative to.
        references: as the eval config has them.

    """
    first: dict[Path, KeyPath] = {}
    paths: list[Path] = []
    problems: list[EvalFileError] = []
    for index, reference in enumerate(references):
        here = ("datasets", index)
        place = folder / reference.path
        try:
            problem = _problem(reference, place)
        except OSError as error:
            problem = f"{quoted(reference.path)} cannot be read: {error.strerror}", None
        if problem is not None:
            problems.append(document.error(here, *problem))
            continue
        for path in _files_in(place, reference):
            # Unlike `Path.resolve`, this takes links that lead in a circle.
            resolved = Path(os.path.realpath(path))
            if resolved in first:
                shown = quoted(path.name)
                line = document.place(first[resolved]).line
                problems.append(document.error(here, f"{shown} is read already, by line {line}"))
                continue
            first[resolved] = here
            paths.append(path)
    return FoundFiles(tuple(paths), tuple(problems))


def _problem(reference: DatasetRef, place: Path) -> tuple[str, str | None] | None:
    """Return what is wrong with a reference, and the way out."""
    shown = quoted(reference.path)
    if not place.exists():
        return f"there is no {shown}", "paths are relative to the folder of this file"
    if reference.type == "file" and place.is_dir():
        return f"{shown} is a folder", f"write {{type: dir, path: {reference.path}}}"
    if reference.type == "dir" and not place.is_dir():
        return f"{shown} is a file, not a folder", "leave out type: dir"
    if reference.type == "dir" and not any(True for _ in _files_in(place, reference)):
        deeper = None if reference.recursive else "recursive: true searches the folders in it too"
        return f"no dataset ({', '.join(SUFFIXES)}) is in the folder {shown}", deeper
    return None


def _files_in(place: Path, reference: DatasetRef) -> Iterator[Path]:
    """Yield the datasets of a reference, sorted by their path; eval configs are none."""
    if reference.type == "file":
        yield place
        return
    found = []
    for root, folders, names in os.walk(place):
        folders[:] = [name for name in folders if reference.recursive and name[0] != "."]
        found += [Path(root, name) for name in names if _is_dataset(name)]
    yield from sorted(found, key=lambda path: path.relative_to(place).parts)


def _is_dataset(name: str) -> bool:
    plain = name.lower()
    return plain.endswith(SUFFIXES) and not plain.endswith(_EVAL_CONFIGS) and plain[0] != "."
