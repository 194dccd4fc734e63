"""What Claude Code's own lines come to: cases from the field that a real run is hard driven to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_mst.clients.claude_ending import said_by
from pytest_mst.clients.claude_transcript import Transcript
from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.program.decide import decided
from pytest_mst.clients.program.run import Ran
from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure, Trial
from tests.clients.boundaries import request

INIT = {
    "type": "system",
    "subtype": "init",
    "tools": ["mcp__crm__create_lead"],
    "mcp_servers": [{"name": "crm", "status": "connected"}],
}
DONE = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "terminal_reason": "completed",
    "stop_reason": "end_turn",
    "result": "done",
}


def says(text: str, number: int = 1) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": f"m{number}", "content": content, "usage": {}}}


def uses(arguments: Mapping[str, Any]) -> dict[str, Any]:
    block = {"type": "tool_use", "id": "t1", "name": "mcp__crm__create_lead", "input": arguments}
    return {"type": "assistant", "message": {"id": "m0", "content": [block], "usage": {}}}


def own_error(code: str, text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {
        "type": "assistant",
        "error": code,
        "message": {"id": "x", "model": "<synthetic>", "content": content},
    }


def ended(
    *lines: Mapping[str, Any], exit_code: int = 0, stderr: str = ""
) -> tuple[Trial | InfrastructureFailure, TraceLog]:
    log = TraceLog(("crm",))
    transcript = Transcript(log, {"crm": "crm"})
    for line in lines:
        transcript.take(json.dumps(line))
    said = said_by(transcript, label="the API", model="m")
    ran = Ran(exit_code, f"exited with status {exit_code}", stderr)
    try:
        return decided(request(log=log), ran, said), log
    except InfrastructureError as error:
        return error.failure, log


def failure(*lines: Mapping[str, Any], **how: Any) -> tuple[str, bool]:
    found = ended(*lines, **how)[0]
    assert isinstance(found, InfrastructureFailure)
    return found.broke.value, found.retryable


def test_cl_01_the_last_words_of_a_program_decide_nothing_without_a_record() -> None:
    words = "RateLimitError: 429 input-token quota per minute reached"
    lines = [INIT, *(uses({}) for _ in range(14))]
    assert failure(*lines, exit_code=1, stderr=words) == ("client-app", True)


@pytest.mark.parametrize(
    "text",
    [
        "It returns 429 Too Many Requests when the rate limit is hit and 401 Unauthorized.",
        "API Error: prompt is too long",
    ],
)
def test_cl_07_what_the_model_talks_of_is_no_ending(text: str) -> None:
    ending, log = ended(INIT, says(text), {**DONE, "result": text})
    assert ending == Trial()
    assert log.answer == text


def test_cl_09_numbers_in_arguments_are_no_ending() -> None:
    given = {"timeout": 5, "max_tokens": 16384, "bytes": 42913, "id": "x-4290-413"}
    ending, log = ended(INIT, uses(given), says("ok"), DONE)
    assert ending == Trial()
    assert log.events[0].arguments == given
    assert (log.events[0].server, log.events[0].name) == ("crm", "create_lead")


def test_cl_13_an_error_counts_before_a_success_and_the_exit_status() -> None:
    record = {**DONE, "is_error": True, "duration_api_ms": 0, "result": "API Error: rate limited"}
    found = failure(INIT, own_error("rate_limit", "API Error"), record)
    assert found == ("provider", True)


def test_cl_15_without_a_final_record_there_is_no_ending() -> None:
    assert failure(INIT, uses({}), says("going on")) == ("client-app", True)


def test_an_error_that_no_field_explains_is_not_guessed_at() -> None:
    record = {**DONE, "is_error": True, "terminal_reason": "something_new"}
    ending, _ = ended(INIT, says("x"), record, exit_code=1)
    assert isinstance(ending, InfrastructureFailure)
    assert (ending.broke.value, ending.retryable) == ("client-app", True)
    assert ending.detail is not None
    assert "something_new" in ending.detail


def test_a_success_without_a_word_of_the_models_is_no_trial() -> None:
    assert failure(INIT, DONE) == ("client-app", True)


@pytest.mark.parametrize("status", ["failed", "pending", "needs-auth"])
def test_cl_16_a_server_that_was_not_connected_is_a_setup_failure(status: str) -> None:
    init = {**INIT, "mcp_servers": [{"name": "crm", "status": status}], "tools": []}
    assert failure(init, says("Done, record created."), DONE) == ("setup", True)


def test_cl_18_a_call_that_was_not_permitted_is_named_and_not_retryable() -> None:
    record = {**DONE, "permission_denials": [{"tool_name": "mcp__crm__create_lead"}]}
    ending, _ = ended(INIT, uses({}), says("done"), record)
    assert isinstance(ending, InfrastructureFailure)
    assert (ending.broke.value, ending.retryable) == ("setup", False)
    assert "mcp__crm__create_lead" in ending.reason


def test_cl_24_its_own_turns_are_a_trial() -> None:
    record = {"type": "result", "subtype": "error_max_turns", "is_error": True}
    assert ended(INIT, uses({}), record)[0] == Trial(stopped_by="turns")


def test_cl_26_errors_that_it_got_over_are_kept_and_others_are_not_called_so() -> None:
    retry = {"type": "system", "subtype": "api_retry", "error_status": 529, "error": "overloaded"}
    ending, log = ended(INIT, retry, retry, uses({}), retry, says("done", 2), retry, DONE)
    assert ending == Trial()
    assert [one["error_status"] for one in log.recovered] == [529, 529, 529]


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("billing_error", 400, ("provider", False)),
        ("authentication_failed", 401, ("provider", False)),
        ("model_not_found", 404, ("setup", False)),
        ("server_error", 500, ("provider", True)),
        ("server_error", 529, ("provider", True)),
        ("server_error", None, ("network", True)),
        ("invalid_request", 400, ("provider", False)),
        ("some_new_code", 503, ("provider", True)),
        ("some_new_code", None, ("client-app", True)),
    ],
)
def test_what_it_says_of_the_api(code: str, status: int | None, expected: Sequence[object]) -> None:
    record = {**DONE, "is_error": True, "api_error_status": status}
    assert failure(INIT, own_error(code, "words"), record, exit_code=1) == tuple(expected)


@pytest.mark.parametrize("line", ["", "not JSON", "[]", '{"type": "assistant"}', '{"type": 7}'])
def test_lines_that_are_no_account_are_left_out(line: str) -> None:
    log = TraceLog(("crm",))
    Transcript(log, {}).take(line)
    assert log == TraceLog(("crm",))
