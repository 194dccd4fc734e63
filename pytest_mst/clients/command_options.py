"""The `clientOptions` of the client `command`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pytest_mst.clients.command_exit import exit_codes_of
from pytest_mst.clients.command_output import OutputReader
from pytest_mst.clients.command_template import (
    INPUT,
    MCP_CONFIG,
    Template,
    labels_in,
    template_of,
)
from pytest_mst.clients.limits import LIMITS, Limits
from pytest_mst.clients.program.options import (
    known_keys,
    text_map_option,
    text_option,
    texts_option,
)
from pytest_mst.clients.program.servers import CONNECTS, Connect
from pytest_mst.domain.ending import Ending
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, JsonValue, json_type
from pytest_mst.providers.endpoint import PUBLIC_BASE_URLS

_KEYS = (
    "command", "args", "env", "passEnv", "apiKeyEnv", "stdin", "cwd", "connect", "mcpConfig",
    "output", "exitCodes", "recordProvider", *LIMITS,
)  # fmt: skip

_MCP_PATH = "mcp.json"
_MCP_KEY = "mcpServers"


@dataclass(frozen=True, slots=True)
class McpConfig:
    """A file that names the servers, as most clients read it."""

    path: str = _MCP_PATH
    """Below the attempt's own folder, in which `home` and `work` are."""
    key: str = _MCP_KEY


@dataclass(frozen=True, slots=True)
class Recorded:
    """Which of its model's APIs is asked through us."""

    env: str
    """The variable that tells the program where the API is."""
    base_url: str


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """What a command is run with."""

    command: str
    args: tuple[Template, ...]
    env: Mapping[str, Template]
    pass_env: tuple[str, ...]
    """Variables of ours that it gets, the one of its key among them."""
    api_key_env: str | None
    stdin: Template | None
    cwd: Template | None
    connect: Connect
    mcp_config: McpConfig | None
    """`None` where it is given no such file."""
    output: OutputReader
    exit_codes: Mapping[str, Ending]
    recorded: Recorded | None
    limits: Limits

    @classmethod
    def of(cls, options: JsonObject) -> CommandOptions:
        """Read the options.

        Raises:
            OptionsError: a key or a value is not one.

        """
        known_keys(options, _KEYS)
        command = text_option(options, "command")
        if command is None:
            raise OptionsError(
                key="command", expected="the program to run, by name or path; it is not set"
            )
        key = text_option(options, "apiKeyEnv")
        stdin, cwd = text_option(options, "stdin"), text_option(options, "cwd")
        found = cls(
            command=command,
            args=tuple(
                template_of(f"args[{at}]", one)
                for at, one in enumerate(texts_option(options, "args"))
            ),
            env={
                name: template_of(f"env.{name}", one)
                for name, one in text_map_option(options, "env").items()
            },
            pass_env=(*texts_option(options, "passEnv"), *([] if key is None else [key])),
            api_key_env=key,
            stdin=None if stdin is None else template_of("stdin", stdin),
            cwd=None if cwd is None else template_of("cwd", cwd),
            connect=_connect(options),
            mcp_config=_mcp_config(options.get("mcpConfig")),
            output=OutputReader.of(options.get("output")),
            exit_codes=exit_codes_of(options.get("exitCodes")),
            recorded=_recorded(options.get("recordProvider")),
            limits=Limits.of(options),
        )
        if found.limits.turns is not None and found.recorded is None:
            raise OptionsError(
                key="maxTurns",
                expected="nothing without recordProvider: its turns are counted "
                "as requests to its model",
            )
        if MCP_CONFIG in found.names and found.mcp_config is None:
            raise OptionsError(
                key="mcpConfig", expected="an object where {{mcpConfig}} is used, not false"
            )
        return found

    @property
    def templates(self) -> Iterator[Template]:
        """Every text in which something is filled in."""
        yield from self.args
        yield from self.env.values()
        if self.stdin is not None:
            yield self.stdin
        if self.cwd is not None:
            yield self.cwd

    @property
    def names(self) -> frozenset[str]:
        """What is filled in anywhere, by name."""
        return frozenset(name for one in self.templates for name in one.names)

    @property
    def labels(self) -> tuple[str, ...]:
        """The servers whose addresses are filled in."""
        return tuple(labels_in(self.templates))

    @property
    def takes_input_on_stdin(self) -> bool:
        """Whether it reads the input because nothing else gives it."""
        return self.stdin is None and INPUT not in self.names


def _connect(options: JsonObject) -> Connect:
    match text_option(options, "connect") or "url":
        case "url" | "relay" as way:
            return way
        case other:
            raise OptionsError(
                key="connect", expected=f"one of {', '.join(CONNECTS)}, not {other!r}"
            )


def _mcp_config(value: JsonValue) -> McpConfig | None:
    if value is False:
        return None
    if value is None or value is True:
        return McpConfig()
    if not isinstance(value, Mapping):
        raise OptionsError(
            key="mcpConfig", expected=f"an object or false, not {json_type(value)} {value!r}"
        )
    inside = {f"mcpConfig.{name}": one for name, one in value.items()}
    known_keys(inside, ["mcpConfig.path", "mcpConfig.key"])
    path = text_option(inside, "mcpConfig.path") or _MCP_PATH
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts:
        expected = (
            f"a path below the attempt's own folder, such as home/.agent/mcp.json, not {path!r}"
        )
        raise OptionsError(key="mcpConfig.path", expected=expected)
    return McpConfig(path, text_option(inside, "mcpConfig.key") or _MCP_KEY)


def _recorded(value: JsonValue) -> Recorded | None:
    if value is None or value is False:
        return None
    if not isinstance(value, Mapping):
        raise OptionsError(
            key="recordProvider", expected=f"an object with `env`, not {json_type(value)} {value!r}"
        )
    inside = {f"recordProvider.{name}": one for name, one in value.items()}
    known_keys(inside, ["recordProvider.env", "recordProvider.baseUrl"])
    env = text_option(inside, "recordProvider.env")
    if env is None:
        raise OptionsError(
            key="recordProvider.env",
            expected="the variable in which the program looks for the "
            "base URL of its model's API, such as OPENAI_BASE_URL",
        )
    base_url = text_option(inside, "recordProvider.baseUrl") or os.environ.get(env)
    base_url = base_url or PUBLIC_BASE_URLS.get(env)
    if not base_url:
        raise OptionsError(
            key="recordProvider.baseUrl",
            expected=f"the base URL of its model's API: it is not set, and {env} is not set either",
        )
    return Recorded(env, base_url)
