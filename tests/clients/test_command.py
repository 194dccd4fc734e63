"""The client `command`: programs of a user's own, run behind the proxy, and how they end."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_mst.clients.command import CommandClient
from pytest_mst.domain.ending import (
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Scope,
    Trial,
)
from pytest_mst.domain.errors import OptionsError
from tests.attempt.setting import Collected, make, small, target
from tests.clients.boundaries import request
from tests.model_provider import Fail, ModelProvider, say

pytestmark = pytest.mark.anyio

AGENT = """
import json, os, sys, urllib.request

def post(url, **body):
    head = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    head |= {"mcp-protocol-version": "2025-06-18"} if post.session else {}
    head |= {"mcp-session-id": post.session} if post.session else {}
    data = json.dumps({"jsonrpc": "2.0", **body}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, head), timeout=20) as reply:
        post.session = reply.headers.get("mcp-session-id") or post.session
        text = reply.read().decode()
    return json.loads(text[text.index("{"):]) if "{" in text else None

def connect(url):
    post.session = None
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "agent", "version": "1"}}
    post(url, id=1, method="initialize", params=hello)
    post.session = post.session or ""
    post(url, method="notifications/initialized")

def call(url, tool, **arguments):
    return post(url, id=2, method="tools/call", params={"name": tool, "arguments": arguments})

def ask(url):
    body = json.dumps({"model": "m", "max_tokens": 5, "messages": [], "tools": [{"name": "t"}]})
    head = {"content-type": "application/json"}
    asked = urllib.request.Request(url + "/v1/messages", body.encode(), head)
    return urllib.request.urlopen(asked, timeout=20).read()

"""
CALLS = "url = sys.argv[1]\nconnect(url)\ncall(url, 'write_note', text='hi')\n"
URL = "{{servers.notes.url}}"


async def made(
    folder: Path,
    program: str,
    *,
    args: Sequence[str] = (URL,),
    model: str | None = None,
    timeout_s: float = 20,
    case: Mapping[str, Any] | None = None,
    **options: Any,
) -> Collected:
    """Make an attempt by a program, with its servers' address as its first argument."""
    path = folder / "agent.py"
    path.write_text(AGENT + program)
    given = {"command": sys.executable, "args": [str(path), *args], **options}
    at = target(small(), client=CommandClient(), options=given, model=model)
    return await make(at, folder, case, timeout_s=timeout_s)


async def test_what_it_prints_is_the_answer_and_its_calls_are_known_from_the_proxy(
    tmp_path: Path,
) -> None:
    ended = await made(tmp_path, CALLS + "print('all', sys.stdin.read())\n")
    assert ended.ending == Trial()
    trace = ended.stored["trace"]
    assert (trace["answer"], trace["evidence"]) == ("all do it", "observed")
    assert ended.events == [("write_note", False)]
    assert ended.stored_writes == ["write_note"]
    assert "usage" not in trace


@pytest.mark.parametrize("connect", ["url", "relay"])
async def test_a_file_of_the_usual_shape_names_the_servers(tmp_path: Path, connect: str) -> None:
    program = """
server = json.load(open(sys.argv[1]))["servers"]["notes"]
assert oct(os.stat(sys.argv[1]).st_mode & 0o777) == "0o600"
if "url" in server:
    connect(server["url"])
else:
    import subprocess
    relay = subprocess.Popen([server["command"], *server["args"]], env=os.environ | server["env"],
                             stdin=-1, stdout=-1, text=True)
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "agent", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
          file=relay.stdin, flush=True)
    relay.stdout.readline()
print("connected", sys.argv[1].startswith(os.environ["HOME"]), os.getcwd() == sys.argv[2])
"""
    ended = await made(
        tmp_path,
        program,
        args=("{{ mcpConfig }}", "{{folder}}"),
        connect=connect,
        mcpConfig={"path": "home/.agent/mcp.json", "key": "servers"},
    )
    assert ended.ending == Trial(), ended.failure
    assert ended.stored["trace"]["answer"] == "connected True True"


async def test_it_gets_what_is_filled_in_and_next_to_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "never")
    monkeypatch.setenv("PASSED", "on")
    monkeypatch.setenv("ITS_KEY", "key")
    program = """
connect(sys.argv[1])
names = ["OUR_SECRET", "PASSED", "ITS_KEY", "SAID"]
print(json.dumps([sys.argv[2:], [os.environ.get(name) for name in names], sys.stdin.read()]))
"""
    ended = await made(
        tmp_path,
        program,
        args=(URL, "{{input}} by {{model}}, {{trial.number}}"),
        model="m-1",
        env={"SAID": "to {{input}}"},
        passEnv=["PASSED"],
        apiKeyEnv="ITS_KEY",
    )
    answer = ended.stored["trace"]["answer"]
    assert answer == '[["do it by m-1, 0"], [null, "on", "key", "to do it"], ""]'


JSONL = """
connect(sys.argv[1])
call(sys.argv[1], "write_note", text="hi")
for line in [
    "starting up",
    {"type": "call", "name": "mcp__notes__write_note", "arguments": '{"text": "hi"}', "id": "a"},
    {"type": "result", "id": "a", "output": "noted", "isError": False},
    {"type": "call", "name": "shell", "arguments": {"command": "ls"}, "id": "b"},
    {"type": "end", "text": "all done", "usage": {"in": 7, "out": 3}, "cost": 0.5},
]:
    print(line if isinstance(line, str) else json.dumps(line), flush=True)
"""
READ_JSONL = {
    "format": "jsonl",
    "answer": "$[?@.type=='end'].text",
    "toolCalls": {"path": "$[?@.type=='call']"},
    "toolResults": {"path": "$[?@.type=='result']"},
    "usage": {
        "inputTokens": "$[*].usage.in",
        "outputTokens": "$[*].usage.out",
        "costUsd": "$[*].cost",
    },
}


async def test_lines_of_json_tell_answer_calls_and_usage(tmp_path: Path) -> None:
    ended = await made(tmp_path, JSONL, output=READ_JSONL)
    assert ended.ending == Trial()
    trace = ended.stored["trace"]
    assert (trace["answer"], trace["evidence"]) == ("all done", "structured")
    wrote, ran = trace["events"]
    assert (wrote["server"], wrote["name"], wrote["id"]) == ("notes", "write_note", "a")
    assert (wrote["arguments"], wrote["output"], wrote["isError"]) == (
        {"text": "hi"},
        "noted",
        False,
    )
    assert (ran["source"], ran["name"]) == ("builtin", "shell")
    assert trace["builtinTools"] == ["shell"]
    assert trace["usage"] == {
        "inputTokens": 7, "outputTokens": 3, "costUsd": 0.5, "costSource": "reported",
    }  # fmt: skip
    assert ended.unreported == []


async def test_a_program_that_is_cut_off_leaves_what_it_said_so_far(tmp_path: Path) -> None:
    program = JSONL.replace('{"type": "end"', '{"type": "more"') + "import time\ntime.sleep(60)\n"
    ended = await made(tmp_path, program, output=READ_JSONL, maxDurationMs=2_000)
    assert ended.ending == Trial(stopped_by="time")
    assert [name for name, _ in ended.events] == ["write_note", "shell"]
    assert ended.stored_writes == ["write_note"]


JSON = {"format": "json", "answer": "$.answer", "error": "$.error"}


@pytest.mark.parametrize(
    ("end", "options", "ending"),
    [
        ("print('x')", {}, Trial()),
        ("pass", {}, Trial()),
        ("sys.exit(3)", {"exitCodes": {"3": {"stoppedBy": "turns"}}}, Trial(stopped_by="turns")),
        ("sys.exit(4)", {"exitCodes": {"*": "trial"}}, Trial()),
        ("sys.exit(5)", {"exitCodes": {"5": {"clientError": "it gave up"}}}, Trial("it gave up")),
        ("""print('{"error": "no such note"}')""", {"output": JSON}, Trial("no such note")),
        ("""print('{"answer": {"a": 1}}')""", {"output": JSON}, Trial()),
        ("sys.exit(1)", {}, ("client-app", True)),
        ("sys.exit(0)", {"exitCodes": {"*": {"broke": "setup"}}}, Trial()),
        ("sys.exit(9)", {"exitCodes": {"*": {"broke": "setup"}}}, ("setup", False)),
        (
            "sys.exit(7)",
            {"exitCodes": {"7": {"broke": "provider", "reason": "busy", "scope": "variant"}}},
            ("provider", True),
        ),
        ("os.kill(os.getpid(), 9)", {"exitCodes": {"*": "trial"}}, ("client-app", True)),
        ("print('no JSON')", {"output": JSON}, ("client-app", True)),
        ("print('no JSON')", {"output": JSON, "exitCodes": {"0": "trial"}}, ("client-app", True)),
        ("""print('{"other": 1}')""", {"output": JSON}, ("client-app", True)),
    ],
)  # fmt: skip
async def test_how_it_ends_is_its_status_and_its_output(
    tmp_path: Path, end: str, options: Mapping[str, Any], ending: Any
) -> None:
    ended = await made(tmp_path, CALLS + end + "\n", **options)
    found = ended.ending
    if isinstance(found, InfrastructureFailure):
        assert (found.broke.value, found.retryable) == ending
    else:
        assert found == ending
    assert ended.stored_writes == ["write_note"]


async def test_a_program_that_never_came_to_its_servers_made_no_trial(tmp_path: Path) -> None:
    ended = await made(tmp_path, "print('done, I wrote it')\n")
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.SETUP, True)
    assert "never connected to server 'notes'" in ended.failure.reason


async def test_a_program_that_nothing_tells_of_its_servers_is_a_mistake_in_the_options(
    tmp_path: Path,
) -> None:
    ended = await made(tmp_path, "print('done')\n", args=())
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.SETUP, False)
    assert "nothing tells the program of its servers" in ended.failure.reason


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["{{servers.other.url}}"], "there is no such server; addresses there are: none"),
        ([URL, "{{model}}"], "no model is set"),
    ],
)
async def test_what_cannot_be_filled_in_is_said(
    tmp_path: Path, args: Sequence[str], said: str
) -> None:
    ended = await made(tmp_path, "", args=args)
    assert (ended.failure.broke, ended.failure.retryable) == (Broke.SETUP, False)
    assert said in ended.failure.reason


ASKS = CALLS + "print(ask(os.environ['MODEL_URL']) and 'asked')\n"
SWALLOWS = CALLS + "try:\n    ask(os.environ['MODEL_URL'])\nexcept OSError as e:\n    print(e)\n"


@pytest.mark.parametrize(
    ("step", "program", "ending"),
    [
        (say("hello"), ASKS, None),
        (Fail(429), ASKS, ("provider", True)),
        (Fail(529), SWALLOWS, ("provider", True)),
        (Fail(401), SWALLOWS, ("provider", False)),
        (Fail(400, "context"), SWALLOWS, ("setup", False)),
    ],
)
async def test_what_its_models_api_said_counts_where_it_is_recorded(
    tmp_path: Path, step: Any, program: str, ending: tuple[str, bool] | None
) -> None:
    with ModelProvider([step], forever=True) as provider:
        recorded = {"env": "MODEL_URL", "baseUrl": provider.url}
        ended = await made(tmp_path, program, recordProvider=recorded, model="claude-sonnet-4-5")
    if ending is None:
        assert ended.ending == Trial()
        usage = ended.stored["trace"]["usage"]
        assert (usage["requests"], usage["inputTokens"]) == (1, 10)
        assert usage["costSource"] == "genai-prices"
    else:
        assert (ended.failure.broke.value, ended.failure.retryable) == ending
    assert ended.stored_writes == ["write_note"]


async def test_a_turn_more_than_it_may_have_ends_it(tmp_path: Path) -> None:
    program = CALLS + "while True:\n    ask(os.environ['MODEL_URL'])\n"
    with ModelProvider([say("go on")], forever=True) as provider:
        recorded = {"env": "MODEL_URL", "baseUrl": provider.url}
        ended = await made(tmp_path, program, recordProvider=recorded, maxTurns=2)
    assert ended.ending == Trial(stopped_by="turns")


async def test_a_program_that_is_not_there_is_told_before_anything_is_made(tmp_path: Path) -> None:
    client = CommandClient()
    missing = {"command": "no-such-agent"}
    found = await client.preflight(missing, None)
    assert found is not None
    assert (found.broke, found.retryable, found.scope) == (Broke.CLIENT_APP, False, Scope.VARIANT)
    without_key = await client.preflight({"command": "python", "apiKeyEnv": "NO_SUCH_KEY"}, "m")
    assert without_key is not None
    assert "NO_SUCH_KEY is not set: model 'm'" in without_key.reason
    assert await client.preflight({"command": "python"}, None) is None


async def test_a_second_input_is_refused() -> None:
    asked = request(options={"command": "python"}, turn=1)
    with pytest.raises(InfrastructureError, match="takes one input for each attempt") as caught:
        await CommandClient().run(asked)
    assert (caught.value.failure.broke, caught.value.failure.retryable) == (Broke.SETUP, False)


async def test_a_nul_character_goes_in_on_stdin_and_nowhere_else(tmp_path: Path) -> None:
    program = CALLS + "print(len(sys.stdin.read()))"
    ended = await made(tmp_path, program, case={"input": "a\0b"})
    assert ended.stored["trace"]["answer"] == "3"
    (tmp_path / "again").mkdir()
    refused = await made(
        tmp_path / "again", program, args=(URL, "{{input}}"), case={"input": "a\0b"}
    )
    assert (refused.failure.broke, refused.failure.scope) == (Broke.SETUP, Scope.CASE)
    assert "NUL character" in refused.failure.reason


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "clientOptions.command takes the program to run"),
        ({"comand": "x"}, "did you mean 'command'"),
        ({"args": ["{{imput}}"]}, "args[0] takes no {{imput}}; did you mean {{input}}?"),
        ({"env": {"A": "{{servers.url}}"}}, "env.A takes no {{servers.url}}"),
        ({"connect": "http"}, "connect takes one of url, relay"),
        ({"mcpConfig": {"path": "../x"}}, "mcpConfig.path takes a path below"),
        ({"mcpConfig": False, "args": ["{{mcpConfig}}"]}, "mcpConfig takes an object where"),
        ({"output": {"format": "xml"}}, "output.format takes one of text, json, jsonl"),
        ({"output": {"format": "json"}}, "output.answer takes the JSONPath"),
        ({"output": {"answer": "$.a"}}, "output.answer takes nothing where output.format is text"),
        ({"output": {"format": "json", "answer": "$["}}, "output.answer takes a JSONPath"),
        ({"output": {"format": "json", "answr": "$"}}, "did you mean 'output.answer'"),
        (
            {"output": {"format": "json", "answer": "$", "toolCalls": {"name": "$.n"}}},
            "output.toolCalls.path takes the JSONPath",
        ),
        ({"exitCodes": {"x": "trial"}}, "exitCodes.x takes no such status"),
        ({"exitCodes": {"1": "fail"}}, "exitCodes.1 takes `trial`, {stoppedBy: turns}"),
        ({"exitCodes": {"1": {"broke": "it"}}}, "exitCodes.1.broke takes one of client-app"),
        ({"exitCodes": {"1": {"stoppedBy": "luck"}}}, "exitCodes.1.stoppedBy takes one of turns"),
        ({"recordProvider": {"baseUrl": "http://x"}}, "recordProvider.env takes the variable"),
        ({"recordProvider": {"env": "NOT_SET"}}, "recordProvider.baseUrl takes the base URL"),
        ({"maxTurns": 3}, "maxTurns takes nothing without recordProvider"),
        ({"env": {"KEY": "${SECRET}"}}, "name the variable in apiKeyEnv, or for client command"),
    ],
)
def test_wrong_options_are_told_before_anything_is_started(
    options: Mapping[str, Any], said: str
) -> None:
    given = {"command": "python", **options} if options and "comand" not in options else options
    with pytest.raises(OptionsError) as caught:
        CommandClient().check(given)
    assert said in str(caught.value)


def test_attempts_that_ask_one_api_wait_together() -> None:
    client = CommandClient()
    recorded = {"env": "U", "baseUrl": "https://user:key@api.example.com/secret/v1"}
    label = client.endpoint({"command": "x", "recordProvider": recorded}, "m")
    assert label == "the API at https://api.example.com"
    assert client.endpoint({"command": "x"}, "m") != client.endpoint({"command": "y"}, "m")
