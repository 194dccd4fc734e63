"""Answers of a form that was asked for: by a tool, as JSON, fenced; prose is none."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel, Field

from pytest_mst.providers.endpoint import Api
from pytest_mst.providers.failure import FailureKind, ProviderError
from pytest_mst.providers.model import Models
from pytest_mst.providers.structured import Answer, UnfitAnswerError, ask
from tests.model_provider import (
    ModelProvider,
    OutputLimit,
    Step,
    Structured,
    context_overflow,
    say,
)
from tests.providers.asking import EVERY_API, endpoint

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("api", EVERY_API)]

FENCED = """```json
{"passed": true, "why": "ok"}
```"""


class Verdict(BaseModel):
    """What is thought of it."""

    passed: bool
    why: str = Field(max_length=20)


async def answer(api: Api, *steps: Step) -> tuple[Answer[Verdict], ModelProvider]:
    models = Models()
    with ModelProvider(steps) as provider, anyio.fail_after(20):
        try:
            place = endpoint(provider, api)
            got = await ask(place, "Judge it.", "<data>x</data>", Verdict, models=models)
        finally:
            await models.close()
    return got, provider


async def test_an_answer_by_the_tool_is_read_with_its_usage(api: Api) -> None:
    got, provider = await answer(api, Structured({"passed": False, "why": "no"}))
    assert got.output == Verdict(passed=False, why="no")
    assert (got.usage.requests, got.usage.input_tokens, got.usage.output_tokens) == (1, 10, 5)
    assert provider.asked[0].tools == ("answer",)
    assert "Judge it." in provider.asked[0].text


@pytest.mark.parametrize("text", ['{"passed": true, "why": "ok"}', FENCED], ids=["bare", "fenced"])
async def test_json_text_is_read_too(api: Api, text: str) -> None:
    got, _ = await answer(api, say(text))
    assert got.output == Verdict(passed=True, why="ok")


async def test_what_does_not_fit_is_told_once_and_the_mended_answer_counts(api: Api) -> None:
    wrong = Structured({"passed": "perhaps", "why": "?"})
    got, provider = await answer(api, wrong, Structured({"passed": True, "why": "ok"}))
    assert got.output.passed is True
    assert got.usage.requests == 2
    assert "cannot be used" in provider.asked[1].text


@pytest.mark.parametrize("text", ["**Answer: C**", "It passes.", ""], ids=["bold", "prose", "none"])
async def test_prose_is_no_answer_whatever_it_says(api: Api, text: str) -> None:
    with pytest.raises(UnfitAnswerError) as raised:
        await answer(api, say(text), say(text))
    assert raised.value.usage.requests == 2
    assert not raised.value.truncated


async def test_an_answer_that_was_cut_by_its_limit_is_not_asked_for_again(api: Api) -> None:
    with pytest.raises(UnfitAnswerError) as raised:
        await answer(api, OutputLimit('{"passed": tr'))
    assert raised.value.truncated
    assert raised.value.usage.requests == 1


async def test_a_question_longer_than_the_context_is_told_as_that(api: Api) -> None:
    with pytest.raises(ProviderError) as raised:
        await answer(api, context_overflow())
    assert raised.value.failure.kind is FailureKind.CONTEXT
