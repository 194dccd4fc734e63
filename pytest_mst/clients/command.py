"""The `command` client: any program, by what its options say of it.

It is run once for each attempt, in folders of its own. Its options say what it is given and how
what it prints is read; what they do not say is known from the proxy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.command_exit import ending_by
from pytest_mst.clients.command_options import CommandOptions
from pytest_mst.clients.command_output import Output
from pytest_mst.clients.command_template import INPUT, MCP_CONFIG, MODEL, url_name
from pytest_mst.clients.command_trace import fill_trace
from pytest_mst.clients.program.access import key_of
from pytest_mst.clients.program.decide import Said, decided
from pytest_mst.clients.program.folder import ClientFolder, client_folder
from pytest_mst.clients.program.model_api import ModelApi, recorded_api
from pytest_mst.clients.program.one_input import check_one_input
from pytest_mst.clients.program.options import program_path
from pytest_mst.clients.program.run import Ran, cannot_start, run_program
from pytest_mst.clients.program.servers import (
    mcp_servers,
    plain_names,
    servers_of,
    without_path,
)
from pytest_mst.domain.ending import (
    Broke,
    InfrastructureError,
    InfrastructureFailure,
    Scope,
    Trial,
)
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject
from pytest_mst.domain.usage import Usage
from pytest_mst.local.child import CannotStartError, Command
from pytest_mst.providers.endpoint import EndpointError, MissingKeyError, api_for, origin_of
from pytest_mst.providers.price import priced

OUTPUT_LIMIT_CHARS = 64 * 2**20
"""How much is read of what a program prints; the rest of it is left out, and the trace says so."""


class CommandClient:
    """Runs a program of the user's."""

    name = "command"

    def check(self, options: JsonObject) -> None:
        """Look at the options before anything is started.

        Raises:
            OptionsError: a key or a value is not one.

        """
        CommandOptions.of(options)

    def endpoint(self, options: JsonObject, model: str | None) -> str:
        """Return what stands for the program, or the model's API that it is known to ask."""
        given = CommandOptions.of(options)
        if given.recorded is not None:
            return f"the API at {origin_of(given.recorded.base_url)}"
        return f"command {given.command}" if model is None else f"command {given.command}/{model}"

    async def preflight(
        self, options: JsonObject, model: str | None
    ) -> InfrastructureFailure | None:
        """Look whether the program is there, and the variable of its key is set; start nothing."""
        given = CommandOptions.of(options)
        if given.api_key_env is not None and key_of(given.api_key_env) is None:
            return MissingKeyError((given.api_key_env,), model).as_failure()
        with client_folder() as folder:
            command = Command(program_path(given.command), [], folder.environment({}), folder.work)
            try:
                command.found()
            except CannotStartError as error:
                return cannot_start(command.program, error).failure
        return None

    async def run(self, request: ClientRequest) -> Trial:
        """Run the program on the input.

        Raises:
            InfrastructureError: it is no trial.
            OptionsError: the options are not what it takes, or name a server that is not there.

        """
        options = CommandOptions.of(request.options)
        check_one_input("client command", request)
        recorded = options.recorded
        printed = _Printed()
        with client_folder() as folder:
            base_url = "" if recorded is None else recorded.base_url
            async with recorded_api(request, base_url, recorded=recorded is not None) as api:
                command, stdin = await _command(request, options, folder, api)
                turns = options.limits.turns
                watches = [] if api is None or turns is None else [api.until_turns(turns)]
                try:
                    ran = await run_program(
                        command,
                        printed.take,
                        stdin=stdin,
                        watches=watches,
                        hidden=request.trace.hidden,
                    )
                finally:
                    output = options.output.read(printed.lines)
                    fill_trace(request, options.output, output)
                    _say_usage(request, output, api)
                    if printed.is_cut:
                        request.trace.notes.append("it printed more than is read")
                said = _said(options, ran, output, api)
                return decided(request, ran, said, api, connects_to_all=False)


@dataclass(slots=True)
class _Printed:
    """What the program has printed so far, as far as it is kept."""

    lines: list[str] = field(default_factory=list)
    is_cut: bool = False
    _left: int = OUTPUT_LIMIT_CHARS

    def take(self, line: str) -> None:
        self.is_cut = self.is_cut or len(line) > self._left
        kept = line[: self._left]
        self._left -= len(kept)
        if kept or not self.is_cut:
            self.lines.append(kept)


async def _command(
    request: ClientRequest, options: CommandOptions, folder: ClientFolder, api: ModelApi | None
) -> tuple[Command, bytes | None]:
    """Return the program as it is run for this attempt, and what it reads."""
    values = await _values(request, options, folder)
    own = {name: one.filled(values) for name, one in options.env.items()}
    passed = {name: os.environ[name] for name in options.pass_env if name in os.environ}
    recording = {}
    if api is not None and options.recorded is not None:
        recording[options.recorded.env] = str(api.url)
    args = [_argument(one.filled(values)) for one in options.args]
    cwd = folder.work if options.cwd is None else Path.cwd() / options.cwd.filled(values)
    given = folder.environment({**passed, **own, **recording})
    command = Command(
        program_path(options.command),
        args,
        {name: _argument(one) for name, one in given.items()},
        cwd,
    )
    if options.takes_input_on_stdin:
        return command, request.input.encode(errors="replace")
    text = None if options.stdin is None else options.stdin.filled(values)
    return command, None if text is None else text.encode(errors="replace")


async def _values(
    request: ClientRequest, options: CommandOptions, folder: ClientFolder
) -> Mapping[str, str]:
    """Return what can be filled in, by name."""
    values = {
        INPUT: request.input,
        "trial.id": request.trial_id,
        "trial.number": str(request.trial),
        "folder": str(folder.work),
        "home": str(folder.home),
        "here": str(Path.cwd()),
    }
    if request.model is not None:
        values[MODEL] = request.model
    for label in request.tools.servers:
        if label in options.labels:
            url = str(await request.session.url(label))
            request.trace.hidden[url] = without_path(url)
            values[url_name(label)] = url
    given = options.mcp_config
    stated = request.options.get("mcpConfig") not in (None, False)
    if given is None or not (stated or MCP_CONFIG in options.names):
        if request.tools.servers and not options.labels:
            raise OptionsError(
                key="args",
                expected="{{mcpConfig}} or {{servers.LABEL.url}}, as env, stdin and mcpConfig do: "
                "nothing tells the program of its servers",
            )
        return values
    names = plain_names(request.tools.servers)
    servers = await servers_of(request, options.connect)
    named = mcp_servers({names[label]: server for label, server in servers.items()})
    values[MCP_CONFIG] = str(folder.write(given.path, json.dumps({given.key: named})))
    return values


def _argument(text: str) -> str:
    """Return a text as a program can be given it.

    Raises:
        InfrastructureError: it has what no argument can hold.

    """
    if "\0" in text:
        raise InfrastructureError(
            Broke.SETUP,
            "the input has a NUL character, which no argument and no variable can hold: give it to "
            "the program on stdin",
            retryable=False,
            scope=Scope.CASE,
            accepted=False,
        )
    return text.encode(errors="replace").decode()


def _said(options: CommandOptions, ran: Ran, output: Output, api: ModelApi | None) -> Said | None:
    """Return what status and output say of the ending.

    Where the last request to its model's API failed, that is how it ended, unless `exitCodes`
    names the status as something that broke. Else a status that is named counts as that says, and
    0 is a trial, unless the output has no answer where it should.
    """
    code = ran.exit_code
    if code is None or code < 0:
        return None
    raw: JsonObject = {
        "exitStatus": code,
        **({} if output.error is None else {"error": output.error}),
    }
    stated = ending_by(options.exit_codes, code)
    named = str(code) in options.exit_codes
    if api is not None and api.failure() is not None and (not named or isinstance(stated, Trial)):
        stated = None  # it got no further than its model's API did, whatever its status is called
        if code == 0 and output.answer is None and output.error is None:
            return None
        return Said(None, raw=raw)
    finished = output.answer is not None or output.error is not None
    if stated is not None and (stated != Trial() or finished):
        return Said(stated, raw=raw)
    if code != 0:
        return Said(None, raw=raw)
    if not finished:
        return None
    return Said(Trial(client_error=output.error), raw=raw)


def _say_usage(request: ClientRequest, output: Output, api: ModelApi | None) -> None:
    used: Usage | None = output.usage
    if used is None and api is not None:
        used = api.usage
    if used is None:
        return
    if request.model is not None:
        try:
            kind, model = api_for(request.model, {})
            used = priced(used, model, request.pricing, kind)
        except EndpointError:  # a name of the program's own
            used = priced(used, request.model, request.pricing, None)
    request.trace.usage = used.to_json() or None  # type: ignore[assignment]  # it is JSON
