"""The judges of a case, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, assert_never

from pytest_mst.attempt.function_judge import FunctionJudge, JudgeFunction
from pytest_mst.domain.case import Case
from pytest_mst.domain.errors import SelectionError
from pytest_mst.domain.judge import (
    FUNCTION,
    RUBRIC,
    RUBRIC_NAMES,
    FunctionConfig,
    RegisteredConfig,
    RubricConfig,
    config_class,
    free_name,
    judge_entries,
    reps_of,
)
from pytest_mst.grading.rubric import RubricJudge

Judge: TypeAlias = RubricJudge | FunctionJudge
"""What grades a trial once it is stored."""

NO_JUDGES: Mapping[str, JudgeFunction] = {}


def judges_of(
    case: Case,
    configured: Sequence[object],
    *,
    folder: Path,
    taken: Sequence[str] = (),
    registered: Mapping[str, JudgeFunction] = NO_JUDGES,
    asked_by: str = "judges",
) -> tuple[Judge, ...]:
    """Return the judges of a case, each under a name of its own.

    Args:
        case: the case.
        configured: the judges of the eval, or of the variant in their place.
        folder: where modules of functions are looked up first.
        taken: the names of the case's other graders.
        registered: the judges that were registered, by their names.
        asked_by: who says which judges there are, for errors.

    Raises:
        SelectionError: a registered judge is not there.
        ValueError: an entry is no judge; files are checked when they are loaded.

    """
    judges: list[Judge] = []
    names = set(taken)
    for entry in judge_entries(case, configured):
        config = config_class(entry).model_validate(entry)
        name = free_name(entry["name"], names)
        names.add(name)
        match config:
            case RubricConfig():
                judges.append(RubricJudge(name, config, reps_of(config, case)))
            case FunctionConfig():
                judges.append(FunctionJudge.at(name, config, folder))
            case RegisteredConfig():
                function = registered.get(config.type)
                if function is None:
                    there = [RUBRIC, FUNCTION, *RUBRIC_NAMES, *sorted(registered)]
                    raise SelectionError(asked_by, config.type, there)
                judges.append(FunctionJudge.registered(name, config, function))
            case _:
                assert_never(config)
    return tuple(judges)
