"""The `claude-code` client: Claude Code, headless, with the servers' tools and nothing else.

It runs with a configuration folder of its own, so that nothing of its user's settings, servers or
memory is in it. What is known of it is from its `stream-json` lines, the proxy, and a recording of
its requests to the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import anyio

from pytest_mst.clients.claude_ending import api_failure_of, said_by
from pytest_mst.clients.claude_transcript import MCP_PREFIX, Transcript
from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.program.access import base_url_of, key_of, label_of, say_usage
from pytest_mst.clients.program.decide import decided
from pytest_mst.clients.program.folder import ClientFolder, client_folder
from pytest_mst.clients.program.model_api import ModelApi, recorded_api
from pytest_mst.clients.program.one_input import check_one_input
from pytest_mst.clients.program.options import ProgramOptions, program_path
from pytest_mst.clients.program.preflight import preflight_program
from pytest_mst.clients.program.run import run_program
from pytest_mst.clients.program.servers import ProgramServer, mcp_servers, plain_names, servers_of
from pytest_mst.clients.program.true_names import with_true_names
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.local.child import Command
from pytest_mst.providers.endpoint import Api, Endpoint, MissingKeyError
from pytest_mst.providers.probe import probe

PROGRAM = "claude"
API: Api = "anthropic"
BASE_URL = "ANTHROPIC_BASE_URL"
"""The variable that says where its API is."""
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
"""The variables that Claude Code itself takes a credential from."""
MAX_RETRIES = 3
"""How often it asks the API again by itself; its own default goes on for three minutes."""

_SETTINGS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "MCP_CONNECTION_NONBLOCKING": "0",
    "MCP_CONNECT_TIMEOUT_MS": "30000",
}
"""No traffic but the model's, and no turn before every server is connected."""


class ClaudeCodeClient:
    """Runs Claude Code."""

    name = "claude-code"

    def check(self, options: JsonObject) -> None:
        """Look at the options before anything is started.

        Raises:
            OptionsError: a key or a value is not one.

        """
        ProgramOptions.of(options)

    def endpoint(self, options: JsonObject, model: str | None) -> str:
        """Return what stands for the API that it asks."""
        return label_of(API, base_url_of(ProgramOptions.of(options), BASE_URL))

    async def preflight(
        self, options: JsonObject, model: str | None
    ) -> InfrastructureFailure | None:
        """Look whether the program is there and there is a key, and ask the API for the model."""
        given = ProgramOptions.of(options)
        if not _has_own_credential(given) and key_of(_key_name(given)) is None:
            return MissingKeyError((_key_name(given),), model).as_failure()
        failed = await preflight_program(
            given.command or PROGRAM, install="npm install -g @anthropic-ai/claude-code"
        )
        key = key_of(_key_name(given))
        if failed is not None or key is None or _own_key_name(given) != KEYS[0]:
            return failed
        if model is None or not model.startswith("claude-"):  # a name of Claude Code's own
            return None
        return await probe(
            Endpoint(API, model, base_url_of(given, BASE_URL), _key_name(given), key)
        )

    async def run(self, request: ClientRequest) -> Trial:
        """Run Claude Code on the input.

        Raises:
            InfrastructureError: it is no trial.
            OptionsError: the options are not what it takes.

        """
        options = ProgramOptions.of(request.options)
        check_one_input(self.name, request)
        names = plain_names(request.tools.servers)
        transcript = Transcript(request.trace, {name: label for label, name in names.items()})
        base_url = base_url_of(options, BASE_URL)
        with client_folder() as folder:
            async with recorded_api(request, base_url, recorded=options.record_provider) as api:
                servers = await servers_of(request, options.connect)
                named = {names[label]: server for label, server in servers.items()}
                command = _command(request, options, folder, named, api.url if api else base_url)
                try:
                    ran = await run_program(
                        command,
                        transcript.take,
                        stdin=request.input.encode(errors="replace"),
                        hidden=request.trace.hidden,
                    )
                except anyio.get_cancelled_exc_class():
                    _note_failing(request, transcript, base_url)
                    raise
                finally:
                    _fill_trace(request, transcript, api)
                model = request.model or "of its choice"
                said = said_by(transcript, label=label_of(API, base_url), model=model)
                return decided(request, ran, said, api)


def _command(
    request: ClientRequest,
    options: ProgramOptions,
    folder: ClientFolder,
    servers: Mapping[str, ProgramServer],
    base_url: str,
) -> Command:
    config = folder.write("mcp.json", json.dumps({"mcpServers": mcp_servers(servers)}))
    allowed = [*(f"{MCP_PREFIX}{name}" for name in servers), *options.builtin_tools]
    args = ["-p", "--output-format", "stream-json", "--verbose", "--no-session-persistence"]
    args += ["--mcp-config", str(config), "--strict-mcp-config"]
    args += ["--tools", ",".join(options.builtin_tools)]
    args += ["--allowedTools", ",".join(allowed)] if allowed else []
    args += ["--model", request.model] if request.model else []
    args += ["--append-system-prompt", options.system] if options.system else []
    args += ["--max-turns", str(options.limits.turns)] if options.limits.turns else []
    retries = MAX_RETRIES if options.max_retries is None else options.max_retries
    key = key_of(_key_name(options))
    own = {
        **_SETTINGS,
        "CLAUDE_CONFIG_DIR": str(folder.home / ".claude"),
        "CLAUDE_CODE_MAX_RETRIES": str(retries),
        "ANTHROPIC_BASE_URL": str(base_url),
        **({} if key is None else {_own_key_name(options): key}),
        **options.env,
    }
    return Command(
        program=program_path(options.command or PROGRAM),
        args=[*args, *options.args],
        env=folder.environment(own),
        cwd=folder.work,
    )


def _fill_trace(request: ClientRequest, transcript: Transcript, api: ModelApi | None) -> None:
    """Complete the account, however the program ended."""
    used = transcript.usage
    if transcript.result is None and api is not None:  # it never came to say it
        used = api.usage
    say_usage(request, used, API)
    with_true_names(request)


def _note_failing(request: ClientRequest, transcript: Transcript, base_url: str) -> None:
    """Say what it was asking again for when it was cut off."""
    if transcript.failing is not None:
        code, status = transcript.failing
        model = request.model or "of its choice"
        failed = api_failure_of(code, status, label=label_of(API, base_url), model=model)
        request.trace.failing = None if failed is None else failed.infrastructure()


def _key_name(options: ProgramOptions) -> str:
    return options.api_key_env or KEYS[0]


def _own_key_name(options: ProgramOptions) -> str:
    """Return the variable that the program itself is to find its key in."""
    return _key_name(options) if _key_name(options) in KEYS else KEYS[0]


def _has_own_credential(options: ProgramOptions) -> bool:
    return any(name in options.env for name in KEYS)
