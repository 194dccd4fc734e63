"""The judges that a conftest or a plugin registered, and that those which evals name are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from pytest_mst.attempt.function_judge import JudgeFunction
from pytest_mst.attempt.judges import judges_of
from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import EvalFileError, Place, SelectionError
from pytest_mst.domain.eval_config import Variant
from pytest_mst.domain.loaded import LoadedEval
from pytest_mst.plugin.keys import JUDGES

_NO_CASE = Case.model_validate({"id": "none", "input": "none"})


def registered_judges(config: pytest.Config) -> Mapping[str, JudgeFunction]:
    """Return the judges that were registered, by the names that evals know them by."""
    return config.stash.get(JUDGES, {})


def check_judges(
    loaded: LoadedEval, variants: Sequence[Variant], registered: Mapping[str, JudgeFunction]
) -> None:
    """Refuse the name of a judge that is neither built in nor registered.

    Raises:
        EvalFileError: an eval, one of its variants or cases names such a judge.

    """
    folder = loaded.path.parent
    for variant in variants:
        judges = loaded.config.judges_of(variant)
        for place, asked_by, case in _asking(loaded, variant):
            try:
                judges_of(case, judges, folder=folder, registered=registered, asked_by=asked_by)
            except SelectionError as error:
                raise EvalFileError(place, str(error)) from error


def _asking(loaded: LoadedEval, variant: Variant) -> Iterator[tuple[Place, str, Case]]:
    """Yield who asks for judges: the eval or the variant in its place, then each case."""
    if variant.judges is None:
        yield loaded.place("judges"), "judges", _NO_CASE
    else:
        yield (
            loaded.place("variants", variant.name),
            f"judges of variant {variant.name!r}",
            _NO_CASE,
        )
    for one in loaded.cases:
        if one.case.judges or one.case.assertions.passes_judge:
            yield one.place, f"judges of case {one.case.id!r}", one.case
