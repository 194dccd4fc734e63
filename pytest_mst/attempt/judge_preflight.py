"""Trying a judge once before anything is spent: its key and model, or its function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import assert_never

from pytest_mst.attempt.function_judge import FunctionJudge
from pytest_mst.attempt.judge_asking import ModelAsking, NoEndpointError
from pytest_mst.attempt.judges import Judge
from pytest_mst.attempt.preflight import what_fails
from pytest_mst.domain.identity import part_hash
from pytest_mst.grading.rubric import RubricJudge
from pytest_mst.providers.model import missing_extra
from pytest_mst.providers.probe import probe


def judge_setup(judge: Judge) -> str:
    """Return what stands for what a judge depends on; equal for those that ask the same."""
    match judge:
        case FunctionJudge():
            return "a function"
        case RubricJudge():
            asked = judge.asked
            return part_hash([asked.model, dict(asked.options)])
        case _:
            assert_never(judge)


async def judges_preflight(judges: Mapping[str, Judge], asking: ModelAsking) -> dict[str, str]:
    """Try judges side by side, for a bounded while.

    Args:
        judges: by a key of the caller's.
        asking: how models are asked in the run.

    Returns:
        By the same key, why a judge certainly cannot grade as things are.

    """
    return await what_fails(judges, partial(judge_preflight, asking=asking))


async def judge_preflight(judge: Judge, asking: ModelAsking) -> str | None:
    """Return why a judge certainly cannot grade anything as things are; `None`: it may.

    Attempts do not depend on it: they are made, and their trials stay ungraded until it is mended.

    Args:
        judge: the judge.
        asking: how models are asked in the run.

    """
    match judge:
        case FunctionJudge():
            return judge.problem
        case RubricJudge():
            missing = missing_extra("a judge that asks a model")
            if missing is not None:
                return missing.reason
            try:
                endpoint = asking.endpoint(judge.asked)
            except NoEndpointError as error:
                return str(error)
            failure = await probe(endpoint)
            return None if failure is None else failure.reason
        case _:
            assert_never(judge)
