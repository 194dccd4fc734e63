"""What eval configs and cases say of judges: each has the form that its type asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.judge import (
    FUNCTION,
    RUBRIC,
    RUBRIC_NAMES,
    config_class,
    entry_name,
    entry_of,
    judge_entries,
    older_entries,
)
from pytest_mst.eval_files.document import Document, KeyPath
from pytest_mst.eval_files.model_check import check_model
from pytest_mst.eval_files.quoted import quoted
from pytest_mst.eval_files.suggestion import suggest


def check_config_judges(document: Document, config: EvalConfig) -> Iterator[EvalFileError]:
    """Find judges of an eval config and of its variants that are not of their form."""
    lists: list[tuple[KeyPath, Sequence[object]]] = [(("judges",), config.judges)]
    for index, variant in enumerate(config.variants):
        lists.append((("variants", index, "judges"), variant.judges or ()))
    for path, judges in lists:
        for at, given in enumerate(judges):
            yield from _problems(document, (*path, at), given)


def check_case_judges(
    document: Document, index: int, case: Case, config: EvalConfig
) -> Iterator[EvalFileError]:
    """Find judges of a case that are not of their form, or change one that is not there."""
    found = list(_own_problems(document, index, case))
    yield from found
    if found:
        return
    names: set[str] = set()
    for variant in config.variants_or_default:
        configured = config.judges_of(variant)
        try:
            named = {entry_name(entry_of(one)) for one in configured}
            entries = judge_entries(case, configured)
        except ValueError:
            return  # of a judge of the config, which is told there
        names |= named
        for at, given in enumerate(case.judges):
            name = entry_name(entry_of(given))
            merged = [entry for entry in entries if entry["name"] == name and "type" in entry]
            problems = list(_misfits(document, ("cases", index, "judges", at), merged))
            yield from problems
            if problems:
                return
    for at, given in enumerate(case.judges):
        entry = entry_of(given)
        if "type" not in entry and entry_name(entry) not in names:
            yield _of_no_type(document, ("cases", index, "judges", at), entry_name(entry), names)


def _own_problems(document: Document, index: int, case: Case) -> Iterator[EvalFileError]:
    for at, given in enumerate(case.judges):
        yield from _problems(document, ("cases", index, "judges", at), given, of_case=True)
    here: KeyPath = ("cases", index, "assertions", "passesJudge")
    try:
        entries = list(older_entries(case))
    except ValueError as error:
        yield document.error(here, str(error))
        return
    yield from _misfits(document, here, entries)


def _problems(
    document: Document, path: KeyPath, given: object, *, of_case: bool = False
) -> Iterator[EvalFileError]:
    try:
        entry = entry_of(given)
    except ValueError as error:
        yield document.error(path, str(error), f"built-in rubrics: {', '.join(RUBRIC_NAMES)}")
        return
    if "type" in entry:
        yield from _misfits(document, path, [entry])
    elif not of_case or "name" not in entry:  # one of a case may change the eval's of its name
        problem = 'the key "type" is missing'
        remedy = f"valid: {RUBRIC}, {FUNCTION}, or the name of a registered judge"
        yield document.error((*path, "type"), problem, remedy)


def _misfits(
    document: Document, path: KeyPath, entries: Sequence[dict[str, Any]]
) -> Iterator[EvalFileError]:
    for entry in entries:
        part = _Part(document.file, entry, _Below(document, path))
        _, problems = check_model(part, config_class(entry))
        yield from problems


@dataclass(frozen=True, slots=True)
class _Below:
    """The lines of a part of a document, as the part's own."""

    document: Document
    path: KeyPath

    def line_of(self, path: KeyPath) -> int:
        """Return the line of a place in the part."""
        return self.document.lines.line_of((*self.path, *path))


class _Part(Document):
    """A judge's entry, as a document of its own that knows where it lies in the file."""

    __slots__ = ()

    def place(self, path: KeyPath) -> Any:
        """Return where a value is written."""
        lines = self.lines
        assert isinstance(lines, _Below)
        return lines.document.place((*lines.path, *path))


def _of_no_type(
    document: Document, path: KeyPath, name: str, names: Collection[str]
) -> EvalFileError:
    return document.error(
        path,
        f"there is no judge {quoted(name)} of the eval that it could change",
        f"{suggest(name, sorted(names), 'judges')}; or give it a type",
    )
