"""What Gemini CLI's own lines come to: as recorded of version 0.61.0, and what they do not say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.gemini_cli import GeminiCliClient
from pytest_mst.clients.gemini_ending import said_by
from pytest_mst.clients.gemini_transcript import Transcript, server_names, tool_name
from pytest_mst.clients.program.decide import decided
from pytest_mst.clients.program.model_api import ModelApi
from pytest_mst.clients.program.run import Ran
from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.providers.exchange import Exchange
from pytest_mst.providers.recording import Recording
from tests.clients.boundaries import request

INIT = '{"type":"init","session_id":"aa594219","model":"gemini-2.5-flash"}'
USER = '{"type":"message","role":"user","content":"write it"}'
CALL = (
    '{"type":"tool_use","tool_name":"mcp_probe_write_item",'
    '"tool_id":"mcp_probe_write_item__call_1_0","parameters":{"id":"1","value":"x"}}'
)
RESULT = (
    '{"type":"tool_result","tool_id":"mcp_probe_write_item__call_1_0","status":"success",'
    '"output":"write_item ok"}'
)
FAILED = (
    '{"type":"tool_result","tool_id":"mcp_probe_write_item__call_1_0","status":"error",'
    '"output":"gone","error":{"type":"mcp_tool_error","message":"MCP tool reported an error"}}'
)
TEXT = '{"type":"message","role":"assistant","content":"done","delta":true}'
STATS = '{"total_tokens":30,"input_tokens":20,"output_tokens":10,"cached":4,"input":16}'
DONE = f'{{"type":"result","status":"success","stats":{STATS}}}'
INVALID = f'{{"type":"result","status":"error","stats":{STATS}}}'
TURNS = '{"type":"error","severity":"error","message":"Maximum session turns exceeded"}'
LOOP = '{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}'
EMPTY = '{"type":"error","severity":"error","message":"The model returned an empty response"}'
CONTEXT_WORDS = "The input token count (1200000) exceeds the maximum number of tokens allowed"


def broke_off(message: str, kind: str = "unknown") -> str:
    error = {"type": kind, "message": message}
    return json.dumps({"type": "result", "status": "error", "error": error, "stats": {}})


def ok(finish: str = "STOP") -> Exchange:
    return exchange(200, finish=finish, ended="whole")


def exchange(status: int | None, **more: Any) -> Exchange:
    return Exchange(0, "POST", "/x", model_call=True, status=status, **more)


def ended(
    *lines: str, exit_code: int = 0, calls: Sequence[Exchange] | None = None, stderr: str = ""
) -> tuple[Trial | InfrastructureFailure, TraceLog]:
    """Say what lines come to; `calls` are what the recording saw, `None` without one."""
    log = TraceLog(("probe",))
    transcript = Transcript(
        log, {"mcp_probe_write_item": ("probe", "write_item")}, {"probe": "probe"}
    )
    for line in lines:
        transcript.take(line)
    api = None
    if calls is not None:
        recording = Recording("http://127.0.0.1:9")
        recording.log.extend(calls)
        api = ModelApi(recording)
    ran = Ran(exit_code, f"exited with status {exit_code}", stderr)
    said = said_by(transcript, ran, api, label="the API", model="m")
    try:
        return decided(request(log=log), ran, said, api), log
    except InfrastructureError as error:
        return error.failure, log


def failure(*lines: str, **how: Any) -> tuple[str, bool]:
    found = ended(*lines, **how)[0]
    assert isinstance(found, InfrastructureFailure), found
    return found.broke.value, found.retryable


@pytest.mark.parametrize("calls", [None, [ok(), ok()]])
def test_a_run_is_a_trace_and_a_trial(calls: Sequence[Exchange] | None) -> None:
    ending, log = ended(INIT, USER, CALL, RESULT, TEXT, DONE, calls=calls)
    assert ending == Trial()
    assert log.answer == "done"
    (event,) = log.events
    assert (event.server, event.name, event.source) == ("probe", "write_item", "mcp")
    assert event.arguments == {"id": "1", "value": "x"}
    assert event.output == {"content": [{"type": "text", "text": "write_item ok"}]}
    assert (event.is_error, event.id) == (False, None)
    assert log.notes == []


def test_a_call_that_failed_is_one_in_the_trace() -> None:
    ending, log = ended(CALL, FAILED, TEXT, DONE, calls=[ok(), ok()])
    assert ending == Trial()
    assert log.events[0].is_error is True
    output = log.events[0].output
    assert isinstance(output, Mapping)
    assert output["isError"] is True


def test_what_it_used_is_what_it_reports() -> None:
    transcript = Transcript(TraceLog(()), {})
    transcript.take(DONE)
    used = transcript.usage
    assert (used.input_tokens, used.output_tokens, used.cache_read_tokens) == (20, 10, 4)


def test_an_answer_is_put_together_from_its_parts_and_begins_anew_after_a_call() -> None:
    part = '{"type":"message","role":"assistant","content":"%s","delta":true}'
    _, log = ended(part % "I will", CALL, RESULT, part % "all ", part % "done", DONE)
    assert log.answer == "all done"


@pytest.mark.parametrize("exit_code", [0, 1, 143, 173])
def test_without_a_final_record_there_is_no_ending_whatever_the_status(exit_code: int) -> None:
    found = failure(INIT, CALL, RESULT, TEXT, exit_code=exit_code, calls=[ok(), ok()])
    assert found == ("client-app", True)


def test_what_it_does_not_begin_with_is_a_matter_of_the_setting() -> None:
    assert failure(exit_code=52, stderr="words", calls=[]) == ("setup", False)


@pytest.mark.parametrize("words", ["429 Too Many Requests", CONTEXT_WORDS])
def test_what_the_model_or_the_program_talks_of_is_no_ending(words: str) -> None:
    said = json.dumps({"type": "message", "role": "assistant", "content": words})
    assert ended(CALL, RESULT, said, DONE, calls=[ok(), ok()], stderr=words)[0] == Trial()
    assert failure(CALL, RESULT, broke_off(words), exit_code=1) == ("client-app", True)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, ("provider", False)),
        (404, ("setup", False)),
        (429, ("provider", True)),
        (500, ("provider", True)),
        (503, ("provider", True)),
        (529, ("provider", True)),
    ],
)
@pytest.mark.parametrize("recorded", [True, False])
def test_a_status_of_the_api_is_known_with_and_without_a_recording(
    status: int, expected: Sequence[object], *, recorded: bool
) -> None:
    calls = [ok(), exchange(status, ended="whole")] if recorded else None
    lines = [CALL, RESULT, broke_off("[API Error: words]")]
    assert failure(*lines, exit_code=status & 0xFF, calls=calls) == tuple(expected)


def test_a_400_is_a_full_context_only_where_the_recording_says_so() -> None:
    lines = [CALL, RESULT, broke_off(CONTEXT_WORDS)]
    full, other = exchange(400, context=True, ended="whole"), exchange(400, ended="whole")
    assert ended(*lines, exit_code=144, calls=[ok(), full])[0] == Trial(stopped_by="context")
    assert failure(broke_off(CONTEXT_WORDS), exit_code=144, calls=[full]) == ("setup", False)
    assert failure(*lines, exit_code=144, calls=[ok(), other]) == ("provider", False)
    assert failure(*lines, exit_code=144) == ("client-app", True)


def test_an_answer_that_broke_off_is_the_network_where_it_was_seen() -> None:
    lines = [TEXT, broke_off("[API Error: terminated]")]
    assert failure(*lines, exit_code=1, calls=[exchange(200, ended="cut")]) == ("network", True)
    assert failure(*lines, exit_code=1) == ("client-app", True)


def test_its_turns_are_known_by_status_type_and_record() -> None:
    turns = Trial(stopped_by="turns")
    assert ended(CALL, RESULT, broke_off("x", "FatalTurnLimitedError"), exit_code=53)[0] == turns
    assert ended(CALL, RESULT, TURNS, DONE, calls=[ok()])[0] == turns
    assert ended(CALL, RESULT, TURNS, DONE)[0] == turns


def test_a_stop_for_going_round_in_circles_is_a_trial_that_says_so() -> None:
    ending, log = ended(CALL, RESULT, LOOP, DONE, calls=[ok()])
    assert ending == Trial()
    assert len(log.notes) == 1


def test_what_went_wrong_before_the_last_call_is_over() -> None:
    assert ended(LOOP, CALL, RESULT, TEXT, DONE, calls=[ok(), ok()])[1].notes == []


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "SAFETY", "RECITATION", "PROHIBITED_CONTENT"])
@pytest.mark.parametrize("lines", [[TEXT, DONE], [EMPTY, INVALID]])
def test_a_success_that_hides_a_refusal_or_a_limit_says_so_in_the_trace(
    finish: str, lines: Sequence[str]
) -> None:
    ending, log = ended(CALL, RESULT, *lines, calls=[ok(), ok(finish)])
    assert ending == Trial()
    assert len(log.notes) == 1


@pytest.mark.parametrize("lines", [[TEXT, DONE], [EMPTY, INVALID]])
def test_an_answer_that_ends_without_its_end_broke_off(lines: Sequence[str]) -> None:
    half = exchange(200, ended="whole")
    assert failure(CALL, RESULT, *lines, calls=[ok(), half]) == ("network", True)


def test_an_answer_of_the_models_that_cannot_be_used_is_an_error_of_the_clients() -> None:
    ending, _ = ended(CALL, RESULT, EMPTY, INVALID, calls=[ok(), ok("MALFORMED_FUNCTION_CALL")])
    assert isinstance(ending, Trial)
    assert ending.client_error is not None
    assert "MALFORMED_FUNCTION_CALL" in ending.client_error
    assert failure(CALL, RESULT, EMPTY, INVALID) == ("client-app", True)


def test_results_that_it_does_not_show_to_the_model_fill_the_context() -> None:
    assert ended(CALL, RESULT, DONE, calls=[ok()])[0] == Trial(stopped_by="context")
    assert ended(CALL, RESULT, DONE, calls=[ok(), ok()])[0] == Trial()  # it had nothing to say
    assert failure(CALL, RESULT, DONE) == ("client-app", True)


def test_a_success_without_a_word_of_the_models_is_no_trial() -> None:
    assert failure(INIT, USER, DONE, calls=[]) == ("client-app", True)
    assert failure(INIT, USER, DONE) == ("client-app", True)


@pytest.mark.parametrize("line", ["", "not JSON", "[]", '{"type": "message"}', '{"type": 7}'])
def test_lines_that_are_no_account_are_left_out(line: str) -> None:
    log = TraceLog(("probe",))
    Transcript(log, {}).take(line)
    assert log == TraceLog(("probe",))


@pytest.mark.parametrize("system", ["@notes.md", "Write to @bob."])
def test_a_system_prompt_that_it_would_put_files_into_is_refused(system: str) -> None:
    with pytest.raises(OptionsError, match="system takes a text without words that begin with @"):
        GeminiCliClient().check({"system": system})
    GeminiCliClient().check({"system": "Write to bob@example.com."})


def test_names_of_servers_leave_no_doubt_where_a_tool_begins() -> None:
    names = server_names(["a", "a_b", "a-b", "mcp", "x y"])
    assert len(set(names.values())) == 5
    assert not any("_" in name or name == "mcp" for name in names.values())
    assert names["a"] == "a"
    one, other = tool_name(names["a"], "b_c"), tool_name(names["a_b"], "c")
    assert one != other


def test_names_of_tools_are_what_it_makes_of_them() -> None:
    assert tool_name("probe", "write item!") == "mcp_probe_write_item_"
    long = tool_name("probe", "x" * 80 + "end")
    assert len(long) == 63
    assert (long[:10], long[-3:]) == ("mcp_probe_", "end")


def test_a_tool_that_was_not_listed_is_told_by_its_server_or_is_its_own() -> None:
    own = CALL.replace("mcp_probe_write_item", "run_shell_command")
    other = CALL.replace("mcp_probe_write_item", "mcp_probe_new_one")
    _, log = ended(own, RESULT, other, RESULT, TEXT, DONE)
    assert [(one.server, one.name, one.source) for one in log.events] == [
        (None, "run_shell_command", "builtin"),
        ("probe", "new_one", "mcp"),
    ]
    assert log.events[0].kind == "command"
