"""What a case says in view of its eval config and of the other cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import EvalFileError
from pytest_mst.domain.eval_config import EvalConfig
from pytest_mst.domain.loaded import LoadedCase
from pytest_mst.eval_files.config_check import unknown_label
from pytest_mst.eval_files.contract import written_path
from pytest_mst.eval_files.document import Document
from pytest_mst.eval_files.judge_check import check_case_judges
from pytest_mst.eval_files.placeholder_check import check_placeholders
from pytest_mst.eval_files.quoted import quoted
from pytest_mst.eval_files.suggestion import nearest

_CHECKED_KEYS = ("writes", "outcome")


def check_cases(
    document: Document, cases: Iterable[Case], config: EvalConfig
) -> Iterator[EvalFileError]:
    """Find what does not fit in the cases of one file, each of which has the right form."""
    ungraded = [
        variant.name for variant in config.variants_or_default if not config.judges_of(variant)
    ]
    for index, case in enumerate(cases):
        yield from _labels(document, index, case, config)
        yield from _misspelt(document, index, case)
        yield from _placeholders(document, index, case)
        yield from check_case_judges(document, index, case, config)
        if ungraded and case.skip is None and not case.grades_something:
            yield document.error(
                ("cases", index),
                f"the case {quoted(case.id)} has nothing that a trial of it could fail"
                + (f" by variant {quoted(ungraded[0])}" if config.variants else ""),
                "add assertions, expected.writes ([] where no write is expected) or judges",
            )


def check_ids(cases: Iterable[LoadedCase]) -> Iterator[EvalFileError]:
    """Find cases that have the id of an earlier one."""
    first: dict[str, LoadedCase] = {}
    for one in cases:
        earlier = first.setdefault(one.case.id, one)
        if earlier is not one:
            problem = f"the id {quoted(one.case.id)} is there already, at {earlier.place}"
            yield EvalFileError(one.place, problem, "give each case an id of its own")


def _labels(
    document: Document, index: int, case: Case, config: EvalConfig
) -> Iterator[EvalFileError]:
    for position, check in enumerate(case.expected.outcome or ()):
        if check.server not in config.servers:
            here = ("cases", index, "expected", "outcome", position, "server")
            yield unknown_label(document, here, check.server, config)
    writes = case.expected.writes
    if writes is None or any(server.dispatchers for server in config.servers.values()):
        return  # a dispatcher's target may be a tool of a server that only it knows
    for position, call in enumerate(writes.calls):
        if call.server is not None and call.server not in config.servers:
            place = ("cases", index, "expected", "writes", "calls", position, "server")
            path = written_path(place, document.value)
            yield unknown_label(document, path, call.server, config)


def _misspelt(document: Document, index: int, case: Case) -> Iterator[EvalFileError]:
    """Find free keys under `expected` that were meant to be checked.

    Free keys are the user's own. One that is all but called `writes` and holds calls would
    silently check nothing.
    """
    for key, value in (case.expected.model_extra or {}).items():
        meant = nearest(key, _CHECKED_KEYS) if _holds_calls(value) else []
        if meant:
            yield document.error(
                ("cases", index, "expected", key),
                f"unknown key {quoted(key)}, which holds calls and would not be checked",
                f"did you mean {quoted(meant[0])}?",
            )


def _placeholders(document: Document, index: int, case: Case) -> Iterator[EvalFileError]:
    for position, check in enumerate(case.expected.outcome or ()):
        here = ("cases", index, "expected", "outcome", position)
        written = check.model_dump(by_alias=True, exclude_unset=True)
        yield from check_placeholders(document, here, written)


def _holds_calls(value: Any) -> bool:
    if isinstance(value, dict):
        value = value.get("calls")
    return isinstance(value, list) and any(
        isinstance(item, dict) and "tool" in item for item in value
    )
