"""How a judge's model is asked, on the loopback provider: what goes wrong is no grade."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.attempt.judge_asking import ModelAsking
from pytest_mst.attempt.judge_preflight import judge_preflight
from pytest_mst.attempt.judge_turns import JudgeTurns
from pytest_mst.attempt.judges import Judge, judges_of
from pytest_mst.attempt.retry_policy import RetryPolicy
from pytest_mst.attempt.run_rules import RunRules
from pytest_mst.domain.case import Case
from pytest_mst.domain.eval_config import ModelPrice
from pytest_mst.domain.usage import Usage
from pytest_mst.grading.judge import Answered, Reply, Unanswered
from pytest_mst.grading.judge_input import judge_input
from pytest_mst.grading.rubric import RubricJudge
from pytest_mst.providers.model import close_here
from tests.attempt.setting import DONE, job, scripted, writer_in
from tests.grading.trials import facts_of
from tests.model_provider.server import ModelProvider, Script
from tests.model_provider.steps import Fail, OutputLimit, Refuse, Step, Structured, say

pytestmark = pytest.mark.anyio

GRADE = Structured({"criterion_1": {"reason": "so it is", "score": 1}}, usage=(1000, 100))


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    yield
    await close_here()


def judge(folder: Path, given: Any = "correctness") -> Judge:
    case = Case.model_validate({"id": "c", "input": "do it", "judges": [given]})
    [found] = judges_of(case, [], folder=folder)
    return found


async def asked(
    folder: Path, environ: dict[str, str], waits: list[float] | None = None, **more: Any
) -> Reply:
    """Ask a judge once; waits take no time."""

    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    of = judge(folder)
    assert isinstance(of, RubricJudge)
    rules = RunRules(retry=RetryPolicy(dice=lambda: 0.0, sleep=sleep))
    turns = JudgeTurns("correctness", job(scripted(DONE)), writer_in(folder), rules)
    question = of.question(judge_input(facts_of()), str)
    return await ModelAsking("claude-judge", environ, **more)(question, turns)


async def of_script(folder: Path, script: Script, waits: list[float] | None = None) -> Reply:
    with ModelProvider(script, forever=True) as provider:
        return await asked(folder, provider.environment, waits)


async def test_what_it_took_is_priced_and_told(tmp_path: Path) -> None:
    spent: list[Usage] = []
    prices = {"claude-judge": ModelPrice.model_validate({"input": 3.0, "output": 15.0})}
    with ModelProvider([GRADE]) as provider:
        environ = provider.environment
        reply = await asked(tmp_path, environ, pricing=prices, spent=spent.append)
    assert isinstance(reply, Answered)
    assert reply.usage.cost_usd == pytest.approx(0.0045)
    assert reply.usage.cost_source == "pricing"
    assert spent == [reply.usage]


async def test_a_limit_is_waited_for_as_the_api_says(tmp_path: Path) -> None:
    waits: list[float] = []
    script: list[Step] = [Fail(429, "rate", retry_after_s=3), Fail(503), GRADE]
    assert isinstance(await of_script(tmp_path, script, waits), Answered)
    assert waits == [3, 4]


async def test_an_endpoint_that_refuses_connections_is_no_verdict(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}"}
    reply = await asked(tmp_path, environ)
    assert isinstance(reply, Unanswered)
    assert reply.retryable
    assert reply.reason.startswith("retries exhausted (4 attempts, network)")


@pytest.mark.parametrize(
    ("step", "retryable"),
    [
        (Fail(400, "context"), False),
        (Fail(400), False),
        (Fail(401, "auth"), True),
        (Fail(404, "not_found"), True),
        (Fail(500), True),
        (Refuse(), True),
        (OutputLimit("half"), False),
        (say("**Answer: C**"), True),
        (Structured({"criterion_1": {"reason": "r", "score": 1.7}}), True),
    ],
    ids=["context", "rejected", "auth", "model", "500", "refusal", "limit", "prose", "1.7"],
)
async def test_what_goes_wrong_says_whether_asking_again_can_help(
    tmp_path: Path, step: Any, retryable: bool
) -> None:
    reply = await of_script(tmp_path, [step])
    assert isinstance(reply, Unanswered)
    assert reply.retryable is retryable
    assert reply.reason


class TestPreflight:
    """What is known of a judge before anything is spent."""

    async def test_a_judge_that_can_be_asked_has_no_problem(self, tmp_path: Path) -> None:
        with ModelProvider([], keys={"loopback-key-anthropic"}) as provider:
            asking = ModelAsking("claude-judge", provider.environment)
            assert await judge_preflight(judge(tmp_path), asking) is None

    async def test_a_bad_key_is_named(self, tmp_path: Path) -> None:
        with ModelProvider([], keys={"another"}) as provider:
            asking = ModelAsking("claude-judge", provider.environment)
            problem = await judge_preflight(judge(tmp_path), asking)
        assert problem is not None
        assert "ANTHROPIC_API_KEY" in problem
        assert "loopback-key" not in problem

    async def test_a_missing_key_or_model_is_named_unasked(self, tmp_path: Path) -> None:
        problem = await judge_preflight(judge(tmp_path), ModelAsking("claude-judge", {}))
        assert "ANTHROPIC_API_KEY is not set" in (problem or "")
        assert "MST_JUDGE_MODEL" in (
            await judge_preflight(judge(tmp_path), ModelAsking(None, {})) or ""
        )

    async def test_a_function_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "own_judges_of_the_preflight.py").write_text("def f(trial): return True\n")
        there = {"object": "own_judges_of_the_preflight:f"}
        assert await judge_preflight(judge(tmp_path, there), ModelAsking()) is None
        gone = {"object": "own_judges_of_the_preflight:g"}
        assert "there is no 'g'" in (
            await judge_preflight(judge(tmp_path, gone), ModelAsking()) or ""
        )


async def test_a_session_that_has_spent_what_it_may_asks_no_judge(tmp_path: Path) -> None:
    with ModelProvider([GRADE]) as provider:
        why = "this session has spent enough"
        reply = await asked(tmp_path, provider.environment, why_stopped=lambda: why)
        assert provider.asked == []
    assert reply == Unanswered(why)
    assert reply.retryable
