"""The `gemini-cli` client: Gemini CLI, headless, with the servers' tools and nothing else.

It runs with a home folder of its own, so that nothing of its user's settings, servers or memory is
in it. What is known of it is from its `stream-json` lines, the proxy, and a recording of its
requests to the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.gemini_ending import TEXT_TWICE, said_by
from pytest_mst.clients.gemini_transcript import Tools, Transcript, server_names, tool_name
from pytest_mst.clients.program.access import base_url_of, key_of, label_of, say_usage
from pytest_mst.clients.program.decide import decided
from pytest_mst.clients.program.folder import ClientFolder, client_folder
from pytest_mst.clients.program.model_api import ModelApi, recorded_api
from pytest_mst.clients.program.one_input import check_one_input
from pytest_mst.clients.program.options import ProgramOptions, program_path
from pytest_mst.clients.program.preflight import preflight_program
from pytest_mst.clients.program.run import run_program
from pytest_mst.clients.program.servers import (
    CommandServer,
    ProgramServer,
    UrlServer,
    servers_of,
)
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.local.child import Command
from pytest_mst.providers.endpoint import Api, Endpoint, MissingKeyError
from pytest_mst.providers.exchange import Exchange
from pytest_mst.providers.failure import FailureKind
from pytest_mst.providers.probe import probe

PROGRAM = "gemini"
API: Api = "google"
BASE_URL = "GOOGLE_GEMINI_BASE_URL"
"""The variable that says where its API is."""
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
"""The variables that hold a key; the first that is set counts. The program gets the first name."""
MAX_RETRIES = 2
"""How often it asks the API again by itself, after 5 and 10 seconds; its own default is 9."""


class GeminiCliClient:
    """Runs Gemini CLI."""

    name = "gemini-cli"

    def check(self, options: JsonObject) -> None:
        """Look at the options before anything is started.

        Raises:
            OptionsError: a key or a value is not one.

        """
        _read(options)

    def endpoint(self, options: JsonObject, model: str | None) -> str:
        """Return what stands for the API that it asks."""
        return label_of(API, base_url_of(_read(options), BASE_URL))

    async def preflight(
        self, options: JsonObject, model: str | None
    ) -> InfrastructureFailure | None:
        """Look whether the program is there and there is a key, and ask the API for the model."""
        given = _read(options)
        name = _key_name(given)
        key = given.env.get(KEYS[0]) or key_of(name)
        if key is None:
            return MissingKeyError((name,), model).as_failure()
        failed = await preflight_program(
            given.command or PROGRAM, install="npm install -g @google/gemini-cli"
        )
        if failed is not None or model is None or not model.startswith("gemini-"):
            return failed  # `auto`, `pro` and `flash` are names of its own
        return await probe(Endpoint(API, model, base_url_of(given, BASE_URL), name, key))

    async def run(self, request: ClientRequest) -> Trial:
        """Run Gemini CLI on the input.

        Raises:
            InfrastructureError: it is no trial.
            OptionsError: the options are not what it takes.

        """
        options = _read(request.options)
        check_one_input(self.name, request)
        names = server_names(request.tools.servers)
        labels = {name: label for label, name in names.items()}
        transcript = Transcript(request.trace, _tools(request, names), labels)
        request.trace.outside.extend(options.builtin_tools)
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
                        stdin=_as_text(request.input).encode(),
                        hidden=request.trace.hidden,
                    )
                finally:
                    _fill_trace(request, transcript, api)
                model = request.model or "of its choice"
                said = said_by(transcript, ran, api, label=label_of(API, base_url), model=model)
                return decided(request, ran, said, api)


def _read(options: JsonObject) -> ProgramOptions:
    """Read the options.

    Raises:
        OptionsError: a key or a value is not one.

    """
    given = ProgramOptions.of(options)
    imported = re.search(r"(?<!\S)@\S+", given.system or "")
    if imported is not None:
        at, what = "system", f"such as {imported[0]!r}: Gemini CLI puts files in their place"
        raise OptionsError(at, f"a text without words that begin with @, {what}")
    return given


def _tools(request: ClientRequest, names: Mapping[str, str]) -> Tools:
    """Return the tools by the names that the client will call them by."""
    return {
        tool_name(names[label], str(tool["name"])): (label, str(tool["name"]))
        for label in request.tools.servers
        for tool in request.tools.listed(label)
    }


def _command(
    request: ClientRequest,
    options: ProgramOptions,
    folder: ClientFolder,
    servers: Mapping[str, ProgramServer],
    base_url: str,
) -> Command:
    settings = json.dumps(_settings(options, servers))
    folder.write("home/.gemini/settings.json", settings)
    if options.system:
        folder.write("home/.gemini/GEMINI.md", options.system)
    args = ["--output-format", "stream-json", "--skip-trust"]
    args += ["--model", request.model] if request.model else []
    key = key_of(_key_name(options))
    own = {
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GOOGLE_GEMINI_BASE_URL": str(base_url),
        **({} if key is None else {KEYS[0]: key}),
        **options.env,
    }
    return Command(
        program=program_path(options.command or PROGRAM),
        args=[*args, *options.args],
        env=folder.environment(own),
        cwd=folder.work,
    )


def _settings(options: ProgramOptions, servers: Mapping[str, ProgramServer]) -> dict[str, Any]:
    """Return its settings: the servers' tools allowed, its own off, and no traffic but the model's.

    An empty `tools.core` would turn the servers' tools off, too.
    """
    retries = MAX_RETRIES if options.max_retries is None else options.max_retries
    turns = options.limits.turns
    return {
        "mcpServers": {name: _entry(server) for name, server in servers.items()},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "maxAttempts": retries + 1},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "tools": {"core": ["mcp_*", *options.builtin_tools], "allowed": [*options.builtin_tools]},
        "model": {} if turns is None else {"maxSessionTurns": turns},
    }


def _entry(server: ProgramServer) -> dict[str, Any]:
    match server:
        case UrlServer(url=url):
            return {"httpUrl": str(url), "trust": True}
        case CommandServer(command=command, args=args, env=env):
            plain = {name: str(value) for name, value in env.items()}
            return {"command": command, "args": list(args), "env": plain, "trust": True}


def _as_text(given: str) -> str:
    """Return an input as it is to be read: not as one of the program's own slash commands."""
    sent = given.encode(errors="replace").decode()
    return f"\n{sent}" if sent.startswith("/") else sent


def _fill_trace(request: ClientRequest, transcript: Transcript, api: ModelApi | None) -> None:
    """Complete the account, however the program ended."""
    trace = request.trace
    used = transcript.usage if api is None else api.usage
    say_usage(request, used, API)
    calls = [] if api is None else api.calls
    good = [at for at, one in enumerate(calls) if one.kind is None and one.ended is not None]
    got_over = [one for one in calls[: good[-1]] if one.kind is not None] if good else []
    for one in got_over:
        status = {} if one.status is None else {"error_status": one.status}
        trace.recovered.append({**status, "error": str(one.kind)})
    before = calls[: good[-1]] if good else []
    if any(one.kind is FailureKind.CUT or _is_half(one) for one in before):
        trace.notes.append(TEXT_TWICE)


def _is_half(one: Exchange) -> bool:
    """Tell whether an answer ended without the model saying that it had."""
    return one.kind is None and one.ended == "whole" and one.finish is None


def _key_name(options: ProgramOptions) -> str:
    """Return the variable that the key is in; where there is none, the one that it goes into."""
    if options.api_key_env is not None:
        return options.api_key_env
    return next((name for name in KEYS if key_of(name) is not None), KEYS[0])
