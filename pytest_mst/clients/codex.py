"""The `codex` client: Codex CLI, headless, with the servers' tools and next to nothing else.

It runs with a configuration folder of its own, so that nothing of its user's settings, servers or
login is in it. What is known of it is from the lines that it prints, the file that it keeps of its
session, the proxy, and a recording of its requests to the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.codex_config import builtin_tools, config_toml
from pytest_mst.clients.codex_ending import said_by
from pytest_mst.clients.codex_rollout import Rollout
from pytest_mst.clients.codex_transcript import KnownCall, Transcript
from pytest_mst.clients.program.access import base_url_of, key_of, label_of, say_usage
from pytest_mst.clients.program.decide import decided
from pytest_mst.clients.program.folder import ClientFolder, client_folder
from pytest_mst.clients.program.model_api import ModelApi, recorded_api
from pytest_mst.clients.program.one_input import check_one_input
from pytest_mst.clients.program.options import ProgramOptions, program_path
from pytest_mst.clients.program.preflight import preflight_program
from pytest_mst.clients.program.run import run_program
from pytest_mst.clients.program.servers import ProgramServer, plain_names, servers_of
from pytest_mst.clients.program.true_names import with_true_names
from pytest_mst.domain.ending import Broke, InfrastructureFailure, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.local.child import Command
from pytest_mst.providers.endpoint import Api, Endpoint, MissingKeyError
from pytest_mst.providers.probe import probe

PROGRAM = "codex"
API: Api = "openai-responses"
BASE_URL = "OPENAI_BASE_URL"
"""The variable that says where its API is."""
KEY = "OPENAI_API_KEY"
MAX_RETRIES = 3
"""How often it asks the API again by itself; its own default makes up to 30 requests."""
HOME = ".codex"


class CodexClient:
    """Runs Codex."""

    name = "codex"

    def check(self, options: JsonObject) -> None:
        """Look at the options before anything is started.

        Raises:
            OptionsError: a key or a value is not one.

        """
        _options(options)

    def endpoint(self, options: JsonObject, model: str | None) -> str:
        """Return what stands for the API that it asks."""
        return label_of(API, base_url_of(_options(options), BASE_URL))

    async def preflight(
        self, options: JsonObject, model: str | None
    ) -> InfrastructureFailure | None:
        """Look whether the program is there and there is a key, and ask the API for the model."""
        given = _options(options)
        name = _key_name(given)
        key = given.env.get(name) or key_of(name)
        if key is None:
            return MissingKeyError((name,), model).as_failure()
        failed = await preflight_program(
            given.command or PROGRAM, install="npm install -g @openai/codex"
        )
        if failed is not None or model is None:
            return failed
        return await probe(Endpoint(API, model, base_url_of(given, BASE_URL), name, key))

    async def run(self, request: ClientRequest) -> Trial:
        """Run Codex on the input.

        Raises:
            InfrastructureError: it is no trial.
            OptionsError: the options are not what it takes.

        """
        options = _options(request.options)
        check_one_input(self.name, request)
        names = plain_names(request.tools.servers)
        labels = {name: label for label, name in names.items()}
        transcript = Transcript(request.trace, labels)
        base_url = base_url_of(options, BASE_URL)
        request.trace.outside.extend(builtin_tools(options))
        with client_folder() as folder:
            async with recorded_api(request, base_url, recorded=options.record_provider) as api:
                servers = await servers_of(request, options.connect)
                named = {names[label]: server for label, server in servers.items()}
                command = _command(request, options, folder, named, api.url if api else base_url)
                limit = options.limits.turns
                watches = [api.until_turns(limit)] if api is not None and limit else []
                rollout = Rollout()
                try:
                    ran = await run_program(
                        command,
                        transcript.take,
                        stdin=request.input.encode(errors="replace"),
                        watches=watches,
                        hidden=request.trace.hidden,
                    )
                finally:
                    rollout = Rollout.read(folder.home / HOME, transcript.thread, labels)
                    _fill_trace(request, transcript, rollout, api)
                said = said_by(
                    transcript,
                    rollout,
                    label=label_of(API, base_url),
                    model=request.model or "of its choice",
                    finish=api.calls[-1].finish if api is not None and api.calls else None,
                )
                kept_back = _kept_back(request)
                if said is not None and isinstance(said.ending, Trial) and kept_back is not None:
                    said = replace(said, ending=kept_back)
                return decided(request, ran, said, api)


def _options(options: JsonObject) -> ProgramOptions:
    read = ProgramOptions.of(options)
    builtin_tools(read)
    if read.limits.turns is not None and not read.record_provider:
        expected = (
            "nothing where recordProvider is false: codex has no limit of turns of its own, and "
            "its requests to the model are what they are counted by"
        )
        raise OptionsError(key="maxTurns", expected=expected)
    return read


def _command(
    request: ClientRequest,
    options: ProgramOptions,
    folder: ClientFolder,
    servers: Mapping[str, ProgramServer],
    base_url: str,
) -> Command:
    name = _key_name(options)
    config = config_toml(
        options,
        servers,
        model=request.model,
        base_url=str(base_url),
        key_name=name,
        retries=MAX_RETRIES if options.max_retries is None else options.max_retries,
    )
    folder.write(f"{folder.home.name}/{HOME}/config.toml", config)
    key = key_of(name)
    own = {
        "CODEX_HOME": str(folder.home / HOME),
        **({} if key is None else {name: key}),
        **options.env,
    }
    return Command(
        program=program_path(options.command or PROGRAM),
        args=["exec", "--json", "--skip-git-repo-check", *options.args, "-"],
        env=folder.environment(own),
        cwd=folder.work,
    )


def _fill_trace(
    request: ClientRequest, transcript: Transcript, rollout: Rollout, api: ModelApi | None
) -> None:
    """Complete the account, however the program ended."""
    transcript.join(rollout.calls)
    if request.session is not None:  # of a call that was under way, the file has nothing
        transcript.join(
            [
                KnownCall(one.join_id, one.server, one.tool, one.arguments)
                for one in request.session.calls
                if one.join_id is not None
            ]
        )
    with_true_names(request)
    used = transcript.usage
    if api is not None:
        counted = api.usage
        said = transcript.end == "completed"
        used = replace(used if said else counted, requests=counted.requests)
        used = replace(used, model_ms=counted.model_ms)
        request.trace.recovered.extend(_recovered(api))
    say_usage(request, used, API)


def _kept_back(request: ClientRequest) -> InfrastructureFailure | None:
    """Return what it means that Codex failed calls by itself, where it did.

    It reports them as calls that failed, and they never came to the boundary.
    """
    if request.session is None:
        return None
    arrived = {call.join_id for call in request.session.calls}
    names = dict.fromkeys(
        event.name
        for event in request.trace.events
        if event.server is not None and event.is_error and event.id not in arrived
    )
    if not names or None in arrived:
        return None
    return InfrastructureFailure(
        Broke.SETUP,
        f"codex failed calls of {', '.join(names)} by itself, so that they never came to the "
        "server: see that nothing in args or env takes back that every tool of the servers is "
        "approved",
        retryable=True,
    )


def _recovered(api: ModelApi) -> list[JsonObject]:
    """Return the failures of the API's that an answer came after."""
    calls = api.calls
    answered = [at for at, one in enumerate(calls) if one.ended == "whole" and one.kind is None]
    last = answered[-1] if answered else 0
    return [
        {"error_status": one.status, "error": one.kind.value}
        for one in calls[:last]
        if one.kind is not None
    ]


def _key_name(options: ProgramOptions) -> str:
    return options.api_key_env or KEY
