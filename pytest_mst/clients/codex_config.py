"""The `config.toml` that Codex is given for one attempt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_mst.clients.program.options import ProgramOptions
from pytest_mst.clients.program.servers import CommandServer, ProgramServer, UrlServer
from pytest_mst.domain.errors import OptionsError

BUILTIN_TOOLS = ("shell", "web_search", "view_image", "multi_agent", "goals")
"""Its own tools that can be left on, by the names that `builtinTools` has for them."""
_NEVER_ON = ("apps", "image_generation", "memories", "plugins", "remote_plugin", "tool_suggest")
"""What else of its features brings tools, or asks others than the model's API."""
PROVIDER = "mst"
"""What the config calls the model's API; Codex knows some names, and this is none of them."""

_CALL_TIMEOUT_S = 3600
"""Of one call of a tool. The attempt's own deadline is what counts."""


def builtin_tools(options: ProgramOptions) -> tuple[str, ...]:
    """Return which of its own tools stay on.

    Raises:
        OptionsError: one of them is not a tool that can.

    """
    for at, name in enumerate(options.builtin_tools):
        if name not in BUILTIN_TOOLS:
            key = f"builtinTools[{at}]"
            raise OptionsError(key, f"one of {', '.join(BUILTIN_TOOLS)}, not {name!r}")
    return options.builtin_tools


def config_toml(
    options: ProgramOptions,
    servers: Mapping[str, ProgramServer],
    *,
    model: str | None,
    base_url: str,
    key_name: str,
    retries: int,
) -> str:
    """Write the config.

    Args:
        options: what the client is started with.
        servers: its servers, by the names that it is to know them by.
        model: the model; `None` leaves it to Codex.
        base_url: where its model's API is to be asked.
        key_name: the variable that the API's key is in.
        retries: how often a request may be made again.

    """
    own = builtin_tools(options)
    provider = {
        "name": "model API",
        "base_url": base_url,
        "wire_api": "responses",  # the only one there is
        "env_key": key_name,
        "request_max_retries": 0,  # each of the tries of a turn would be as many requests
        "stream_max_retries": retries,
    }
    config: dict[str, Any] = {
        **({} if model is None else {"model": model}),
        "model_provider": PROVIDER,
        "approval_policy": "never",
        "sandbox_mode": "read-only",
        "check_for_update_on_startup": False,
        "web_search": "live" if "web_search" in own else "disabled",
        **({} if options.system is None else {"developer_instructions": options.system}),
        "analytics": {"enabled": False},
        "features": {
            "shell_tool": "shell" in own,
            "unified_exec": "shell" in own,
            **{name: name in own for name in ("view_image", "multi_agent", "goals")},
            **dict.fromkeys(_NEVER_ON, False),
        },
        "skills": {"include_instructions": False},
        "model_providers": {PROVIDER: provider},
        "mcp_servers": {name: _server(one) for name, one in servers.items()},
    }
    return "".join(f"{_toml(key)} = {_toml(value)}\n" for key, value in config.items())


def _server(server: ProgramServer) -> dict[str, Any]:
    rules = {
        "required": True,
        "startup_timeout_sec": 30,
        "tool_timeout_sec": _CALL_TIMEOUT_S,
        "default_tools_approval_mode": "approve",
    }
    match server:
        case UrlServer(url=url):
            return {"url": str(url), **rules}
        case CommandServer(command=command, args=args, env=env):
            plain = {name: str(value) for name, value in env.items()}
            return {"command": command, "args": list(args), "env": plain, **rules}


def _toml(value: object) -> str:
    """Write a value: tables inline, and texts as TOML and JSON both have them."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_toml(str(key))} = {_toml(one)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, str):  # TOML has no halves of characters, and wants DEL escaped, too
        whole = value.encode(errors="replace").decode()
        return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
