"""What a model API's bad hour means for an attempt by a program: never a failing agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_mst.domain.ending import Broke, InfrastructureFailure, Scope, Trial
from tests.attempt.setting import Collected
from tests.clients.test_command import CALLS, URL, made
from tests.model_provider import Answer, Fail, ModelProvider, Step, context_overflow, say

pytestmark = pytest.mark.anyio

ASKS = """
import urllib.error
connect(sys.argv[1])
def asked():
    try:
        ask(sys.argv[2])
        return "answered"
    except (urllib.error.URLError, OSError) as error:
        return type(error).__name__
"""


async def asking(folder: Path, base_url: str, program: str, **options: Any) -> Collected:
    env = {"MODEL_URL": base_url}
    recorded = {"env": "MODEL_URL", "baseUrl": base_url}
    given = {"env": env, "recordProvider": recorded, **options}
    start = CALLS if "write" in program else ""
    body = ASKS.replace("sys.argv[2]", 'os.environ["MODEL_URL"]')
    return await made(folder, start + body + program, args=(URL,), **given)


async def by(folder: Path, script: list[Step], program: str, **options: Any) -> Collected:
    with ModelProvider(script, forever=True) as provider:
        return await asking(folder, provider.url, program, **options)


async def test_requests_in_vain_are_no_turns(tmp_path: Path) -> None:
    with ModelProvider() as provider:
        gone = provider.url
    ended = await asking(tmp_path, gone, "[asked() for _ in range(6)]; sys.exit(1)\n", maxTurns=2)
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.NETWORK, True)


async def test_an_overload_inside_a_stream_is_no_turn(tmp_path: Path) -> None:
    broken = Answer(stream_error="overloaded_error")
    program = "[asked() for _ in range(6)]; sys.exit(1)\n"
    ended = await by(tmp_path, [broken], program, maxTurns=2)
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.PROVIDER, True)


async def test_turns_that_were_answered_end_it_as_a_trial(tmp_path: Path) -> None:
    program = "[asked() for _ in range(6)]; print('done')\n"
    ended = await by(tmp_path, [say("go on")], program, maxTurns=2)
    assert ended.ending == Trial(stopped_by="turns")


async def test_time_that_runs_out_while_the_api_refuses_is_the_apis(tmp_path: Path) -> None:
    program = "\nwhile True: asked()\n"
    ended = await by(tmp_path, [Fail(429)], program, maxDurationMs=1500)
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.PROVIDER, True)


@pytest.mark.parametrize("last", ["sys.exit(1)", "print('I gave up')"])
async def test_a_context_that_its_own_turns_filled_is_a_trial(tmp_path: Path, last: str) -> None:
    program = f"asked(); call(sys.argv[1], 'write_note', text='x'); asked(); {last}\n"
    ended = await by(tmp_path, [say("go on"), context_overflow()], program)
    assert ended.ending == Trial(stopped_by="context")
    assert ended.stored_writes == ["write_note", "write_note"]


async def test_a_status_that_is_called_a_trial_does_not_hide_what_the_api_did(
    tmp_path: Path,
) -> None:
    program = "asked(); print('no idea'); sys.exit(7)\n"
    codes = {"*": {"clientError": "gave up"}}
    ended = await by(tmp_path, [Fail(429)], program, exitCodes=codes)
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.PROVIDER, True)


async def test_an_input_too_long_for_an_argument_is_its_cases_alone(tmp_path: Path) -> None:
    case = {"input": "x" * 3_000_000}
    ended = await made(tmp_path, CALLS, args=(URL, "{{input}}"), case=case)
    assert isinstance(ended.ending, InfrastructureFailure)
    assert (ended.ending.broke, ended.ending.scope) == (Broke.SETUP, Scope.CASE)
    assert "stdin" in ended.ending.reason
