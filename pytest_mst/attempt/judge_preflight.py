"""Trying a judge once before anything is spent: its key and model, or its function."""

from __future__ import annotations

from typing import assert_never

from pytest_mst.attempt.function_judge import FunctionJudge
from pytest_mst.attempt.judge_asking import ModelAsking, NoEndpointError
from pytest_mst.attempt.judges import Judge
from pytest_mst.grading.rubric import RubricJudge
from pytest_mst.providers.model import missing_extra
from pytest_mst.providers.probe import probe


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
