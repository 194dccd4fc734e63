"""How an attempt ends by every agent that is a program: the same, whichever it is.

Each agent's own tests have a class of these, and say which program it is of.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import pytest

from pytest_mst.domain.ending import Broke, Scope, Trial
from tests.clients.real_attempts import RealProgram
from tests.model_provider import (
    Fail,
    ModelProvider,
    OutputLimit,
    Refuse,
    Step,
    Tool,
    context_overflow,
    say,
    use,
)

WRITE = use(Tool("write_note", {"text": "hi"}))


class EndsOfEveryAgent:
    """The tests; `setting` is a fixture of the module that the class is in."""

    agent: ClassVar[type[RealProgram]]

    @pytest.mark.parametrize(
        ("step", "broke"), [(Fail(401, "auth"), "provider"), (Fail(404, "not_found"), "setup")]
    )
    async def test_what_no_wait_can_help_is_not_retryable(
        self, setting: RealProgram, step: Fail, broke: str
    ) -> None:
        await not_helped_by_waiting(setting, step, broke)

    async def test_an_input_that_does_not_fit_is_a_matter_of_the_case(
        self, setting: RealProgram
    ) -> None:
        made = await setting.make([context_overflow()], forever=True)
        assert made.ending == ("setup", False)
        assert made.collected.failure.scope is Scope.CASE
        assert made.waits_s == []
        assert made.asked == 1

    async def test_a_context_that_fills_up_is_a_trial(self, setting: RealProgram) -> None:
        made = await setting.make([WRITE, context_overflow()], forever=True)
        assert made.collected.ending == Trial(stopped_by="context")
        assert made.collected.stored_writes == ["write_note"]
        if setting.joins:
            assert made.joined

    @pytest.mark.parametrize("step", [OutputLimit("half"), Refuse("no")])
    async def test_an_answer_that_is_refused_or_too_long_is_a_trial_that_says_so(
        self, setting: RealProgram, step: Step
    ) -> None:
        await said_in_a_note(setting, step)

    async def test_a_server_that_dies_in_a_call_is_told_to_the_model(
        self, setting: RealProgram
    ) -> None:
        made = await setting.make([WRITE, use(Tool("die")), say("it is gone")])
        assert made.collected.ending == Trial()
        assert made.collected.events == [("write_note", False), ("die", True)]
        assert made.collected.stored_writes == ["write_note"]

    async def test_a_server_that_is_not_there_is_a_setup_failure(
        self, setting: RealProgram
    ) -> None:
        made = await setting.make([say("done")], server=["--exit-on-start", "3"])
        assert made.ending == ("setup", True)
        assert made.asked == 0

    async def test_its_limit_of_calls_is_a_trial(self, setting: RealProgram) -> None:
        made = await setting.make([WRITE], forever=True, options={"maxToolCalls": 2})
        assert made.collected.ending == Trial(stopped_by="calls")
        assert made.collected.stored_writes == ["write_note", "write_note"]

    async def test_a_program_that_is_not_there_is_no_trial(self, tmp_path: Path) -> None:
        made = await self.agent(str(tmp_path / "nowhere"), tmp_path).make([])
        assert made.ending == ("client-app", False)
        failure = await self.agent.client.preflight({"command": "no-such-agent"}, None)
        assert failure is not None
        assert (failure.broke, failure.scope) == (Broke.CLIENT_APP, Scope.VARIANT)

    async def test_before_anything_is_spent_it_is_looked_for_with_its_key_and_model(
        self, setting: RealProgram, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client, name = setting.client, setting.key_variables[0]
        known, other = f"{setting.models_begin}known", f"{setting.models_begin}other"
        with ModelProvider(keys={os.environ[name]}, models={known}) as provider:
            options = {"command": setting.program, "baseUrl": provider.url + setting.api_path}
            assert await client.preflight(options, known) is None
            unknown = await client.preflight(options, other)
            assert unknown is not None
            assert (unknown.broke, unknown.retryable) == (Broke.SETUP, False)
            monkeypatch.setenv(name, "another")
            refused = await client.preflight(options, known)
            assert refused is not None
            assert (refused.broke, refused.retryable) == (Broke.PROVIDER, False)
            for variable in setting.key_variables:
                monkeypatch.delenv(variable, raising=False)
            missing = await client.preflight(options, known)
            assert missing is not None
            assert name in missing.reason


async def not_helped_by_waiting(setting: RealProgram, step: Fail, broke: str) -> None:
    """Make an attempt whose API says what no wait can help, and see how it ended."""
    made = await setting.make([step], forever=True, retries=0)
    assert made.ending == (broke, False)
    assert made.waits_s == []
    assert made.collected.failure.scope is Scope.VARIANT


async def said_in_a_note(setting: RealProgram, step: Step) -> None:
    """Make an attempt whose last answer was none, and see that its trace says so."""
    made = await setting.make([WRITE, step], forever=True)
    assert made.collected.ending == Trial()
    assert len(made.trace["notes"]) == 1
    assert made.collected.stored_writes == ["write_note"]
