"""What Codex's own account comes to: lines and session files of real runs of 0.171.0."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.clients.client import TraceLog
from pytest_mst.clients.codex_config import config_toml
from pytest_mst.clients.codex_ending import said_by
from pytest_mst.clients.codex_rollout import Rollout, TypedError, typed_error
from pytest_mst.clients.codex_transcript import KnownCall, Transcript
from pytest_mst.clients.program.decide import decided
from pytest_mst.clients.program.options import ProgramOptions
from pytest_mst.clients.program.run import Ran
from pytest_mst.clients.program.servers import CommandServer, ProgramServer, UrlServer
from pytest_mst.domain.ending import InfrastructureError, InfrastructureFailure, Trial
from tests.clients.boundaries import request

THREAD = "01a22f65-3d79-7072-98a3-2f84c183aab5"
STARTED = {"type": "thread.started", "thread_id": THREAD}
NOT_AN_ENDING = {
    "type": "item.completed",
    "item": {
        "id": "item_0",
        "type": "error",
        "message": "Model metadata for `fake-model` not found. Defaulting to fallback metadata; "
        "this can degrade performance and cause issues.",
    },
}
BEGUN: tuple[Mapping[str, Any], ...] = (STARTED, NOT_AN_ENDING, {"type": "turn.started"})
CALL = {
    "id": "item_1",
    "type": "mcp_tool_call",
    "server": "probe",
    "tool": "write_item",
    "arguments": {"id": "1", "value": "x"},
    "result": None,
    "error": None,
    "status": "in_progress",
}
CALLED = {
    **CALL,
    "result": {
        "content": [{"type": "text", "text": 'write_item ok {"id": "1", "value": "x"}'}],
        "structured_content": None,
    },
    "status": "completed",
}
CALLING = {"type": "item.started", "item": CALL}
CALL_DONE = {"type": "item.completed", "item": CALLED}
SAID = {"type": "item.completed", "item": {"id": "item_2", "type": "agent_message", "text": "done"}}
DONE = {
    "type": "turn.completed",
    "usage": {
        "input_tokens": 20,
        "cached_input_tokens": 4,
        "cache_write_input_tokens": 0,
        "output_tokens": 10,
        "reasoning_output_tokens": 0,
    },
}
IN_FILE = {
    "type": "event_msg",
    "payload": {
        "type": "item_completed",
        "thread_id": THREAD,
        "item": {
            "type": "McpToolCall",
            "id": "call_1_0",
            "server": "probe",
            "tool": "write_item",
            "arguments": {"value": "x", "id": "1"},
            "readOnlyHint": False,
            "status": "completed",
        },
    },
}


def reconnecting(words: str) -> dict[str, str]:
    return {"type": "error", "message": f"Reconnecting... 1/1 ({words})"}


def failed(words: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": words}}


def complete(words: str, info: object) -> dict[str, Any]:
    error = {"message": words, "codex_error_info": info}
    return {"type": "event_msg", "payload": {"type": "task_complete", "error": error}}


def session_file(home: Path, *lines: Mapping[str, Any], rest: str = "", id_: str = THREAD) -> None:
    folder = home / "sessions" / "2026" / "12" / "01"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-12-01T02-18-13-{id_}.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + rest)


def transcript_of(*lines: Mapping[str, Any]) -> Transcript:
    transcript = Transcript(TraceLog(("the probe",)), {"probe": "the probe"})
    for line in lines:
        transcript.take(json.dumps(line))
    return transcript


def ended(
    *lines: Mapping[str, Any],
    info: object = None,
    exit_code: int = 0,
    stderr: str = "",
    finish: str | None = None,
) -> tuple[Trial | InfrastructureFailure, TraceLog]:
    transcript = transcript_of(*lines)
    rollout = Rollout(error=typed_error(info))
    said = said_by(transcript, rollout, label="the API", model="m", finish=finish)
    ran = Ran(exit_code, f"exited with status {exit_code}", stderr)
    try:
        return decided(request(log=transcript.log), ran, said), transcript.log
    except InfrastructureError as error:
        return error.failure, transcript.log


def failure(*lines: Mapping[str, Any], **how: Any) -> InfrastructureFailure:
    found = ended(*lines, **how)[0]
    assert isinstance(found, InfrastructureFailure)
    return found


def test_a_run_that_worked_is_a_trial_though_it_has_an_error_among_its_items() -> None:
    ending, log = ended(*BEGUN, CALLING, CALL_DONE, SAID, DONE)
    assert ending == Trial()
    assert log.answer == "done"
    (event,) = log.events
    assert (event.server, event.name, event.is_error) == ("the probe", "write_item", False)
    assert event.arguments == {"id": "1", "value": "x"}
    assert event.output == {"content": CALLED["result"]["content"]}  # type: ignore[index]
    usage = transcript_of(*BEGUN, SAID, DONE).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (20, 10, 4)


@pytest.mark.parametrize("rest", ["", '{"type": "event_msg", "payl'])
def test_a_call_gets_the_models_id_of_it_from_the_sessions_file(tmp_path: Path, rest: str) -> None:
    session_file(tmp_path, IN_FILE, rest=rest)
    session_file(tmp_path, complete("another", "other"), id_="somebody-elses")
    transcript = transcript_of(*BEGUN, CALLING, CALL_DONE)
    rollout = Rollout.read(tmp_path, transcript.thread, transcript.names)
    transcript.join(rollout.calls)
    assert [event.id for event in transcript.log.events] == ["call_1_0"]
    assert rollout.error is None


def test_a_session_without_a_file_is_read_as_one_that_says_nothing(tmp_path: Path) -> None:
    assert Rollout.read(tmp_path, THREAD, {}) == Rollout()
    session_file(tmp_path, complete("x", "other"))
    assert Rollout.read(tmp_path, None, {}) == Rollout()
    assert Rollout.read(tmp_path, THREAD, {}).error == TypedError("other")


def test_calls_that_are_the_same_get_ids_one_by_one_and_none_twice() -> None:
    again = {"type": "item.started", "item": {**CALL, "id": "item_2"}}
    transcript = transcript_of(*BEGUN, CALLING, CALL_DONE, again)
    known = [KnownCall(one, "the probe", "write_item", CALL["arguments"]) for one in ("a", "b")]
    transcript.join(known[:1])
    transcript.join(known)
    assert [event.id for event in transcript.log.events] == ["a", "b"]
    other = KnownCall("c", "the probe", "read_item", CALL["arguments"])
    transcript.join([other])
    assert [event.id for event in transcript.log.events] == ["a", "b"]


def test_a_call_that_failed_says_so() -> None:
    item = {**CALL, "status": "failed", "error": {"message": "Transport closed"}}
    _, log = ended(*BEGUN, CALLING, {"type": "item.completed", "item": item}, SAID, DONE)
    (event,) = log.events
    assert event.is_error is True
    assert event.output == {
        "content": [{"type": "text", "text": "Transport closed"}],
        "isError": True,
    }


def test_its_own_tools_are_called_its_own() -> None:
    command = {
        "id": "item_1",
        "type": "command_execution",
        "command": "/bin/bash -lc 'echo here'",
        "aggregated_output": "here\n",
        "exit_code": 0,
        "status": "completed",
    }
    resources = {**CALL, "id": "item_2", "server": "codex", "tool": "list_mcp_resources"}
    lines = [{"type": "item.completed", "item": one} for one in (command, resources)]
    _, log = ended(*BEGUN, *lines, SAID, DONE)
    assert [(one.kind, one.source, one.name) for one in log.events] == [
        ("command", "builtin", "shell"),
        ("tool_call", "builtin", "list_mcp_resources"),
    ]
    assert log.events[0].output == "here\n"


@pytest.mark.parametrize(
    ("words", "info", "expected"),
    [
        (
            "exceeded retry limit, last status: 429 Too Many Requests",
            {"response_too_many_failed_attempts": {"http_status_code": 429}},
            ("provider", True),
        ),
        (
            "unexpected status 503 Service Unavailable: The server is overloaded or not ready yet.",
            {"http_connection_failed": {"http_status_code": 503}},
            ("provider", True),
        ),
        (
            "unexpected status 529 <unknown status code>: overloaded",
            {"http_connection_failed": {"http_status_code": 529}},
            ("provider", True),
        ),
        ("unexpected status 500", "internal_server_error", ("provider", True)),
        (
            "unexpected status 401 Unauthorized: fake error",
            {"http_connection_failed": {"http_status_code": 401}},
            ("provider", False),
        ),
        ("usage limit", "usage_limit_exceeded", ("provider", False)),
        (
            "unexpected status 404 Not Found",
            {"http_connection_failed": {"http_status_code": 404}},
            ("setup", False),
        ),
        ("stream", {"response_stream_disconnected": {"http_status_code": None}}, ("network", True)),
        ("stream", {"response_stream_disconnected": {"http_status_code": 200}}, ("network", True)),
        ("no words of an error say what it is: 401", "other", ("client-app", True)),
        ("exceeded retry limit, last status: 429", None, ("client-app", True)),
        ("429", {"something_new": {"http_status_code": 429}}, ("client-app", True)),
    ],
)
def test_the_type_of_its_error_says_what_broke(
    words: str, info: object, expected: tuple[str, bool]
) -> None:
    lines = [*BEGUN, reconnecting(words), {"type": "error", "message": words}, failed(words)]
    found = failure(*lines, info=info, exit_code=1)
    assert (found.broke.value, found.retryable) == expected
    if expected[0] != "client-app":
        assert found.accepted is False


@pytest.mark.parametrize("lines", [(), (CALLING, CALL_DONE)])
def test_a_context_overflow_is_a_trial_only_after_the_model_has_answered(
    lines: Sequence[Mapping[str, Any]],
) -> None:
    words = "Codex ran out of room in the model's context window. Start a new thread."
    end = [{"type": "error", "message": words}, failed(words)]
    ending, _ = ended(*BEGUN, *lines, *end, info="context_window_exceeded", exit_code=1)
    if lines:
        assert ending == Trial(stopped_by="context")
    else:
        assert isinstance(ending, InfrastructureFailure)
        assert (ending.broke.value, ending.retryable, ending.scope.value) == (
            "setup",
            False,
            "case",
        )


@pytest.mark.parametrize("finish", ["max_output_tokens", "content_filter"])
def test_an_answer_that_the_api_cut_is_a_trial_with_a_note(finish: str) -> None:
    words = f"Incomplete response returned, reason: {finish}"
    part = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "par"}}
    lines = [*BEGUN, part, {"type": "error", "message": words}, failed(words)]
    ending, log = ended(*lines, info="other", exit_code=1, finish=finish)
    assert ending == Trial()
    assert log.answer == "par"
    assert len(log.notes) == 1
    alone = failure(*lines, info="other", exit_code=1)  # by its words alone nothing is decided
    assert (alone.broke.value, alone.retryable) == ("client-app", True)


@pytest.mark.parametrize("exit_code", [0, 1, -15])
def test_without_a_final_record_there_is_no_ending(exit_code: int) -> None:
    words = "ERROR: exceeded retry limit, last status: 429 Too Many Requests"
    found = failure(*BEGUN, CALLING, CALL_DONE, SAID, exit_code=exit_code, stderr=words)
    assert (found.broke.value, found.retryable) == ("client-app", True)


def test_an_end_without_a_word_of_the_models_is_no_trial() -> None:
    found = failure(*BEGUN, DONE)
    assert (found.broke.value, found.retryable) == ("client-app", True)


@pytest.mark.parametrize(
    "line", ["", "not JSON", "[]", '{"type": "item.completed"}', '{"type": 7}', '{"type": []}']
)
def test_lines_that_are_no_account_are_left_out(line: str) -> None:
    log = TraceLog(("crm",))
    Transcript(log, {}).take(line)
    assert log == TraceLog(("crm",))


def test_the_config_is_toml_whatever_is_in_its_texts() -> None:
    odd = 'a "b" \\ \n\t\x00\x7f é 😀 \ud800 = # [x]'
    options = ProgramOptions.of({"system": odd, "builtinTools": ["shell"]})
    servers: dict[str, ProgramServer] = {
        "a-b": UrlServer("http://127.0.0.1:1/x"),
        "c": CommandServer("run me", ("-x", odd), {"A B": odd}),
    }
    written = config_toml(
        options, servers, model=None, base_url="http://127.0.0.1:1/v1", key_name="K", retries=2
    )
    read = tomllib.loads(written)
    whole = odd.replace("\ud800", "?")
    assert read["developer_instructions"] == whole
    assert read["mcp_servers"]["a-b"]["url"] == "http://127.0.0.1:1/x"
    assert read["mcp_servers"]["c"]["args"] == ["-x", whole]
    assert read["mcp_servers"]["c"]["env"] == {"A B": whole}
    assert all(one["required"] for one in read["mcp_servers"].values())
    assert read["features"]["shell_tool"] is True
    assert read["features"]["view_image"] is False
    assert "model" not in read
