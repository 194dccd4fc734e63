from __future__ import annotations

from pathlib import Path

import pytest

from pytest_mst.domain.eval_config import (
    EvalConfig,
    HttpAuth,
    HttpServer,
    PythonServer,
    ServerConfig,
    StdioServer,
)
from pytest_mst.eval_files.environment import (
    ReferenceProblemError,
    reference_problems,
    resolve_server,
    secrets_of,
    short_secrets_of,
)
from tests.eval_files.evals import CASE, load, problems, write

TOKEN = "mst-secret-123456"


def stdio(*args: str, **env: str) -> StdioServer:
    return StdioServer(transport="stdio", command="python", args=args, env=env)


def http(url: str = "http://x/mcp", auth: str | None = None, **headers: str) -> HttpServer:
    token = None if auth is None else HttpAuth.model_validate({"accessTokenEnv": auth})
    return HttpServer.model_validate(
        {"transport": "http", "serverUrl": url, "headers": headers, "auth": token}
    )


def config(**servers: ServerConfig) -> EvalConfig:
    return EvalConfig.model_validate(
        {"name": "team", "servers": {k: v.model_dump(by_alias=True) for k, v in servers.items()}}
    )


def test_references_in_env_and_args_get_their_values() -> None:
    server = resolve_server(
        stdio("--token=${TOKEN}", "${A}${B}", "plain", KEY="${TOKEN}", OTHER="x"),
        {"TOKEN": TOKEN, "A": "1", "B": ""},
    )
    assert isinstance(server, StdioServer)
    assert server.args == (f"--token={TOKEN}", "1", "plain")
    assert server.env == {"KEY": TOKEN, "OTHER": "x"}


def test_references_in_headers_and_address_get_their_values() -> None:
    server = resolve_server(
        http("${BASE}/mcp", Authorization="Bearer ${TOKEN}"), {"TOKEN": TOKEN, "BASE": "http://y"}
    )
    assert isinstance(server, HttpServer)
    assert server.server_url == "http://y/mcp"
    assert server.headers == {"Authorization": f"Bearer {TOKEN}"}


def test_a_token_named_by_its_variable_becomes_a_bearer_header() -> None:
    server = resolve_server(http(auth="DOCS", **{"X-Team": "a"}), {"DOCS": TOKEN})
    assert isinstance(server, HttpServer)
    assert server.headers == {"X-Team": "a", "Authorization": f"Bearer {TOKEN}"}
    assert server.auth is None


def started(**start: object) -> HttpServer:
    given = {"command": "python", "readyUrl": "http://x/health", **start}
    return HttpServer.model_validate(
        {"transport": "http", "serverUrl": "http://x/mcp", "start": given}
    )


def test_references_in_a_program_that_is_started_get_their_values() -> None:
    server = started(
        args=["--port", "${PORT}"], env={"KEY": "${TOKEN}"}, readyUrl="http://127.0.0.1:${PORT}/"
    )
    resolved = resolve_server(server, {"TOKEN": TOKEN, "PORT": "8000"})
    assert isinstance(resolved, HttpServer)
    assert resolved.start is not None
    assert resolved.start.args == ("--port", "8000")
    assert resolved.start.env == {"KEY": TOKEN}
    assert resolved.start.ready_url == "http://127.0.0.1:8000/"


def test_what_a_program_gets_from_the_environment_is_secret_and_has_to_be_there() -> None:
    server = started(args=["${TOKEN}"], env={"KEY": "${MISSING}"})
    assert secrets_of(config(web=server), {"TOKEN": TOKEN, "MISSING": "x"}) == {TOKEN}
    [problem] = reference_problems(server, {"TOKEN": TOKEN})
    assert (problem.path, problem.variable) == (("start", "env", "KEY"), "MISSING")


def test_two_dollars_make_a_reference_text() -> None:
    server = resolve_server(stdio("$${HOME}", "$HOME", "$5", "a$b"), {})
    assert isinstance(server, StdioServer)
    assert server.args == ("${HOME}", "$HOME", "$5", "a$b")


def test_a_value_is_not_searched_for_references() -> None:
    server = resolve_server(stdio("${A}"), {"A": "${B}", "B": "x"})
    assert isinstance(server, StdioServer)
    assert server.args == ("${B}",)


def test_a_server_object_has_no_references() -> None:
    server = PythonServer(transport="python", object="servers:local")
    assert resolve_server(server, {}) is server


def test_the_loaded_definition_stays_as_it_was_written() -> None:
    written = stdio("${A}")
    resolve_server(written, {"A": "x"})
    assert written.args == ("${A}",)


@pytest.mark.parametrize(
    ("server", "path", "variable"),
    [
        (stdio("x", "${GONE}"), ("args", 1), "GONE"),
        (stdio(TOKEN="${GONE}"), ("env", "TOKEN"), "GONE"),
        (http("${GONE}"), ("serverUrl",), "GONE"),
        (http(**{"X-A": "${GONE}"}), ("headers", "X-A"), "GONE"),
        (http(auth="GONE"), ("auth", "accessTokenEnv"), "GONE"),
        (http(auth="EMPTY"), ("auth", "accessTokenEnv"), "EMPTY"),
        (stdio("${GONE:-default}"), ("args", 0), None),
        (stdio("${"), ("args", 0), None),
        (stdio("${1}"), ("args", 0), None),
    ],
)
def test_a_reference_that_stands_for_nothing_names_key_and_variable(
    server: ServerConfig, path: tuple[str | int, ...], variable: str | None
) -> None:
    with pytest.raises(ReferenceProblemError) as refused:
        resolve_server(server, {"EMPTY": "", "OTHER": TOKEN})
    assert (refused.value.path, refused.value.variable) == (path, variable)


def test_loading_tells_every_variable_that_is_not_set_and_shows_no_value(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        name: team
        servers:
          chat:
            transport: stdio
            command: python
            args: ["${{SET}} ${{GONE}}", "${{x"]
            env:
              TOKEN: ${{CHAT_TOKEN}}
        cases: [{CASE}]
        """,
    )
    found = problems(path, {"SET": TOKEN})
    assert [(error.place.line, error.place.key, error.problem) for error in found] == [
        (6, "servers.chat.args[0]", "the environment variable GONE is not set"),
        (6, "servers.chat.args[1]", "`${` begins no reference to an environment variable"),
        (8, "servers.chat.env.TOKEN", "the environment variable CHAT_TOKEN is not set"),
    ]
    assert TOKEN not in "".join(map(str, found))


def test_a_loaded_eval_holds_references_and_no_values(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f'name: t\nservers: {{a: {{transport: stdio, command: x, env: {{T: "${{T}}"}}}}}}\n'
        f"cases: [{CASE}]",
    )
    loaded = load(path, {"T": TOKEN})
    assert TOKEN not in repr(loaded)
    assert "${T}" in repr(loaded)


def test_what_came_from_the_environment_and_credentials_in_headers_are_secret() -> None:
    evaluated = config(
        chat=stdio("--user=${USER_NAME}", KEY="${TOKEN}", PLAIN="not secret at all"),
        docs=http(
            "${BASE}",
            Authorization="Bearer written-in-the-file",
            Cookie="session=${SESSION}",
            **{"X-Api-Key": "key-in-the-file", "X-Team": "not secret at all"},
        ),
        more=http(auth="MORE"),
    )
    environ = {
        "USER_NAME": "somebody-long",
        "TOKEN": TOKEN,
        "BASE": "http://secret.example",
        "SESSION": "session-id",
        "MORE": "more-secret",
        "UNUSED": "unused-value",
    }
    assert secrets_of(evaluated, environ) == {
        "somebody-long",
        TOKEN,
        "http://secret.example",
        "written-in-the-file",
        "session-id",
        "session=session-id",
        "key-in-the-file",
        "more-secret",
    }


def test_values_too_short_to_be_replaced_are_listed_by_place() -> None:
    evaluated = config(chat=stdio("${A}${B}", PIN="${PIN}", NONE="${EMPTY}"), docs=http(auth="PIN"))
    environ = {"A": "1234567", "B": "12345678", "PIN": "1234", "EMPTY": ""}
    assert secrets_of(evaluated, environ) == {"12345678"}
    assert short_secrets_of(evaluated, environ) == (
        "servers.chat.env.PIN",
        "servers.chat.args[0]",
        "servers.docs.auth.accessTokenEnv",
    )


def test_a_variable_that_is_not_set_is_no_secret() -> None:
    assert secrets_of(config(chat=stdio("${GONE}")), {}) == frozenset()
