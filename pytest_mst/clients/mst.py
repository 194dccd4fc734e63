"""The client `mst`: a model with the servers' tools and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from pytest_mst.clients.client import ClientRequest
from pytest_mst.clients.limits import LIMITS, Limits
from pytest_mst.clients.script import near
from pytest_mst.domain.ending import InfrastructureFailure, Trial
from pytest_mst.domain.errors import OptionsError
from pytest_mst.domain.json_value import JsonObject, json_type
from pytest_mst.providers.endpoint import (
    KEYS,
    Endpoint,
    EndpointError,
    MissingKeyError,
    api_for,
    base_url_for,
    endpoint_for,
)
from pytest_mst.providers.model import missing_extra
from pytest_mst.providers.probe import probe

_Check = Callable[[Any], bool]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


_SETTINGS: Mapping[str, tuple[str, str, _Check]] = {
    "temperature": ("temperature", "a number", _is_number),
    "topP": ("top_p", "a number", _is_number),
    "maxTokens": ("max_tokens", "a positive whole number", _is_count),
    "seed": ("seed", "a positive whole number", _is_count),
    "stopSequences": ("stop_sequences", "a list of texts", _is_texts),
    "parallelToolCalls": ("parallel_tool_calls", "true or false", _is_flag),
}
"""Options that are handed on, by what pydantic-ai calls them."""
_OWN: Mapping[str, tuple[str, _Check]] = {
    "system": ("a text", _is_text),
    "stream": ("true or false", _is_flag),
    **dict.fromkeys(KEYS, ("a text", _is_text)),
}


class MstClient:
    """Asks a model turn by turn, and calls the tools that it asks for through the boundary."""

    name = "mst"

    def check(self, options: JsonObject) -> None:
        """Look at the options before anything is started.

        Raises:
            OptionsError: one of them is not one, or not what it may be.

        """
        Limits.of(options)
        valid = (*_OWN, *_SETTINGS, *LIMITS)
        for key, value in options.items():
            if key in LIMITS or value is None:
                continue
            if key not in valid:
                raise OptionsError(key, f"nothing{near(key, valid)}; valid: {', '.join(valid)}")
            expected, fits = _OWN[key] if key in _OWN else _SETTINGS[key][1:]
            if not fits(value):
                raise OptionsError(key, f"{expected}, not {json_type(value)} {value!r}")

    def endpoint(self, options: JsonObject, model: str | None) -> str:
        """Return what stands for the API: who asks the same waits together."""
        try:
            api, name = api_for(model, options)
            url = base_url_for(api, options, os.environ)
            return Endpoint(api, name, url, "", "").shared_by
        except EndpointError:
            return self.name if model is None else f"{self.name}/{model}"

    async def preflight(
        self, options: JsonObject, model: str | None
    ) -> InfrastructureFailure | None:
        """Say why the model cannot be asked, where that is certain."""
        missing = missing_extra(f"client {self.name!r}")
        if missing is not None:
            return missing
        try:
            endpoint = endpoint_for(model, options, os.environ)
        except (EndpointError, MissingKeyError) as error:
            return error.as_failure()
        return await probe(endpoint)

    async def run(self, request: ClientRequest) -> Trial:
        """Let the model act on the input.

        Raises:
            InfrastructureError: the model could not be asked, or the attempt cannot go on.

        """
        from pytest_mst.clients.model_loop import ModelLoop

        return await ModelLoop(request, settings_of(request.options)).run()


def settings_of(options: JsonObject) -> dict[str, Any]:
    """Return the options that are handed on, as pydantic-ai takes them."""
    return {
        name: options[key]
        for key, (name, _, _) in _SETTINGS.items()
        if options.get(key) is not None
    }
